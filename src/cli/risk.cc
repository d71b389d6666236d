// `ringfence risk ...`: the register, and what is decided in it. risk_view.cc shows it.

#include "cli/risk.h"

#include <algorithm>

#include "base/code.h"
#include "cli/assess.h"
#include "cli/commands.h"
#include "cli/human.h"
#include "cli/settings.h"
#include "cli/suggest.h"
#include "cli/text.h"
#include "os/file.h"
#include "os/identity.h"

namespace ringfence::cli {
namespace {

using assure::Exposure;
using assure::RiskDecision;

Result<std::string> ModelFile(const Parsed& parsed) {
  if (const auto given = parsed.Value("model")) {
    return *given;
  }
  RINGFENCE_ASSIGN(const std::string own, os::OwnPath());
  const std::string folder = own.substr(0, own.rfind('/'));
  const std::string built = folder + "/content/risk/model.yaml";
  return os::Exists(built) ? built : folder + "/../share/ringfence/risk/model.yaml";
}

Result<std::string> RegisterFile(const Invocation& invocation) {
  if (const auto given = invocation.parsed.Value("register")) {
    return *given;
  }
  const std::string path = invocation.settings.state() + "/risk.json";
  if (!invocation.settings.MayTrust(invocation.settings.state())) {
    return Error{Code::kPermissionDenied, invocation.settings.state() + " belongs to somebody else",
                 "name the register: --register FILE"};
  }
  return path;
}

// The register, under a lock from reading to writing.
class RiskChange {
 public:
  static Result<RiskChange> Begin(Invocation& invocation, bool may_be_new) {
    RINGFENCE_ASSIGN(const std::string path, RegisterFile(invocation));
    if (may_be_new) {
      RINGFENCE_TRY(MakeOwnFolder(invocation, {path}));
    } else {
      RINGFENCE_TRY(OpenRiskDesk(invocation, false));
    }
    auto lock = os::LockFile(path + ".lock");
    if (!lock.has_value()) {
      return Prefix("the register", lock.error());
    }
    RINGFENCE_ASSIGN(RiskDesk desk, OpenRiskDesk(invocation, may_be_new));
    return RiskChange(std::move(*lock), std::move(desk));
  }
  RiskDesk& desk() { return desk_; }
  Status Commit() {
    const std::string text = assure::RegisterText(desk_.reg);
    if (text.size() > assure::kRegisterBytesMax) {
      return Error{Code::kExhausted, "the register would be longer than 64 MiB",
                   "keep one for each part of the fleet: --register FILE"};
    }
    return os::WriteFileDurable(desk_.path, AsBytes(text), 0600);
  }

 private:
  RiskChange(os::UniqueFd lock, RiskDesk desk) : lock_(std::move(lock)), desk_(std::move(desk)) {}
  os::UniqueFd lock_;
  RiskDesk desk_;
};

Result<Timestamp> DayOf(const Parsed& parsed) {
  const auto text = parsed.Value("until");
  if (!text) {
    return Error{Code::kInvalidArgument, "--until is missing", "write it as 2027-01-31", "until"};
  }
  const auto day = ParseTime(*text + "T23:59:59Z");
  if (text->size() != 10 || !day.has_value()) {
    return Error{Code::kInvalidArgument, "--until: \"" + *text + "\" is no day",
                 "write it as 2027-01-31", "until"};
  }
  return *day;
}

Result<std::string> Needed(const Parsed& parsed, std::string_view option, std::string_view why) {
  const std::string text = parsed.Value(option).value_or("");
  if (text.empty() || text.size() > 1'000 || (option == "owner" && text.size() > 128)) {
    return Error{Code::kInvalidArgument,
                 "--" + std::string(option) + (text.empty() ? " is missing" : " is too long"),
                 std::string(why), std::string(option)};
  }
  return text;
}

Result<int> DecideCommand(Invocation& invocation, const std::string& kind) {
  const Parsed& parsed = invocation.parsed;
  RiskDecision decision;
  decision.kind = kind;
  RINGFENCE_ASSIGN(decision.owner, Needed(parsed, "owner", "name who answers for it"));
  if (kind == "transfer") {
    RINGFENCE_ASSIGN(const std::string to, Needed(parsed, "to", "name who bears the loss now"));
    RINGFENCE_ASSIGN(decision.reason, Needed(parsed, "reason", "say why, for the next reader"));
    decision.reason = "to " + to + ": " + decision.reason;
  } else {
    RINGFENCE_ASSIGN(decision.until, DayOf(parsed));
    if (kind == "accept") {
      RINGFENCE_ASSIGN(decision.reason, Needed(parsed, "reason", "say why, for the next reader"));
    } else {
      decision.reason = parsed.Value("reason").value_or("").substr(0, 1'000);
    }
  }
  RINGFENCE_ASSIGN(RiskChange change, RiskChange::Begin(invocation, false));
  RiskDesk& desk = change.desk();
  for (const std::string& id : parsed.arguments) {
    Status decided = Decide(desk.reg, desk.model, id, decision, desk.now);
    if (!decided.has_value()) {
      Error error = decided.error();
      if (error.code == Code::kNotFound) {
        std::vector<std::string> ids;
        for (const auto& [known, risk] : desk.reg.risks) {
          ids.push_back(known);
        }
        error.hint = DidYouMean(id, ids, error.hint);
      }
      return error;
    }
  }
  RINGFENCE_TRY(change.Commit());
  if (invocation.console.table()) {
    for (const std::string& id : parsed.arguments) {
      invocation.console.out() << Safe(id) << ": " << kind << ", " << Safe(decision.owner) << '\n';
    }
  } else {
    JsonArray done;
    for (const std::string& id : parsed.arguments) {
      done.push_back(JsonObject{{"risk", id}, {"decision", kind}, {"owner", decision.owner}});
    }
    invocation.console.Show(done);
  }
  return kExitOk;
}

// What was said of the node before, and what is said now.
Status ReadExposureOptions(const Parsed& parsed, Exposure& exposure) {
  if (const auto text = parsed.Value("tenants")) {
    const auto count = ParseCount(*text, 0, 100'000);
    if (!count.has_value()) {
      return Prefix("--tenants", count.error());
    }
    exposure.tenants = static_cast<int>(*count);
  }
  if (const auto text = parsed.Value("classification")) {
    if (!assure::KnownClassification(*text)) {
      return Error{Code::kInvalidArgument,
                   "--classification: \"" + *text +
                       "\" is none of public, internal, confidential, restricted",
                   "choose one of them"};
    }
    exposure.classification = *text;
  }
  if (const auto text = parsed.Value("reachable")) {
    if (*text != "yes" && *text != "no") {
      return Error{Code::kInvalidArgument, "--reachable: \"" + *text + "\" is neither yes nor no",
                   "can the node be reached from networks that are not its operator's?"};
    }
    exposure.reachable = *text == "yes";
  }
  if (const auto file = parsed.Value("proofs")) {
    RINGFENCE_ASSIGN(const std::string text, os::ReadText(*file, std::size_t{4} << 20U));
    const Status read = assure::ParseProofs(text, exposure);
    if (!read.has_value()) {
      return Prefix(*file, read.error());
    }
  }
  return {};
}

Result<assure::NodeFindings> Findings(Invocation& invocation, const std::string& file) {
  if (!file.empty()) {
    RINGFENCE_ASSIGN(const std::string text, os::ReadText(file, assure::kRegisterBytesMax));
    auto found = assure::ParseFindings(text);
    return found.has_value() ? std::move(found)
                             : Result<assure::NodeFindings>(Prefix(file, found.error()));
  }
  Bench bench;
  RINGFENCE_TRY(SetUp(invocation, bench));
  return FindingsOf(assure::Assess(bench.checks, bench.Context(), {}), bench.head.node,
                    bench.head.when);
}

Result<std::vector<NodeNews>> NewsFor(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  if (parsed.Has("fleet")) {
    for (const std::string_view other :
         {"node", "root", "driver-root", "csaf", "class", "proofs"}) {
      if (parsed.Has(other)) {
        return Error{Code::kInvalidArgument,
                     "--fleet and --" + std::string(other) + " do not go together",
                     "the server knows it of each node"};
      }
    }
    if (!parsed.arguments.empty()) {
      return Error{Code::kInvalidArgument, "--fleet takes no files", "leave one of them out"};
    }
    return FleetNews(invocation);
  }
  std::vector<std::string> files = parsed.arguments;
  if (files.empty()) {
    files.emplace_back();  // this machine
  }
  std::vector<NodeNews> news;
  for (const std::string& file : files) {
    RINGFENCE_ASSIGN(assure::NodeFindings found, Findings(invocation, file));
    news.push_back({std::move(found), std::nullopt, std::nullopt, false});
  }
  return news;
}

// What the server knows beside the findings. What it does not know stays as it was said.
void Know(const NodeNews& news, Exposure& exposure) {
  if (news.tenants) {
    exposure.tenants = news.tenants;
  }
  if (news.proofs) {
    exposure.proofs = news.proofs->proofs;
    exposure.simulated = news.proofs->simulated;
  }
}

bool Same(const Exposure& a, const Exposure& b) {
  const auto same_proof = [](const assure::Proof& x, const assure::Proof& y) {
    return x.probe == y.probe && x.result == y.result && x.when == y.when;
  };
  return a.tenants == b.tenants && a.classification == b.classification &&
         a.reachable == b.reachable && a.simulated == b.simulated &&
         std::equal(a.proofs.begin(), a.proofs.end(), b.proofs.begin(), b.proofs.end(), same_proof);
}

}  // namespace

const OptionSpec& RegisterOption() {
  static const OptionSpec kOption = {
      .name = "register",
      .value = "FILE",
      .help = "the register (default: risk.json of the state folder)",
      .completes = Completes::kFile};
  return kOption;
}

const OptionSpec& RiskModelOption() {
  static const OptionSpec kOption = {.name = "model",
                                     .value = "FILE",
                                     .help = "what moves a risk (default: the one shipped)",
                                     .completes = Completes::kFile};
  return kOption;
}

Result<RiskDesk> OpenRiskDesk(Invocation& invocation, bool may_be_new) {
  RiskDesk desk;
  desk.now = invocation.clock.Now();
  RINGFENCE_ASSIGN(const std::string model_file, ModelFile(invocation.parsed));
  RINGFENCE_ASSIGN(const std::string model, os::ReadText(model_file, std::size_t{1} << 20U));
  RINGFENCE_ASSIGN(desk.model, assure::ParseRiskModel(model, model_file));
  RINGFENCE_ASSIGN(desk.path, RegisterFile(invocation));
  const auto text = os::ReadText(desk.path, assure::kRegisterBytesMax);
  if (!text.has_value()) {
    if (text.error().code != Code::kNotFound) {
      return text.error();
    }
    if (may_be_new) {
      return desk;
    }
    return Error{Code::kNotFound, "there is no register at " + desk.path,
                 "`ringfence risk update` begins one"};
  }
  auto reg = assure::ParseRegister(*text);
  if (!reg.has_value()) {
    Error error = Prefix(desk.path, reg.error());
    error.code = Code::kCorrupt;
    error.hint = "it is not what Ringfence wrote: restore it, or move it away and begin anew";
    return error;
  }
  desk.reg = std::move(*reg);
  return desk;
}

Result<int> RiskAccept(Invocation& invocation) { return DecideCommand(invocation, "accept"); }
Result<int> RiskTransfer(Invocation& invocation) { return DecideCommand(invocation, "transfer"); }
Result<int> RiskAssign(Invocation& invocation) { return DecideCommand(invocation, "fix"); }

Result<int> RiskUpdate(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(std::vector<NodeNews> news, NewsFor(invocation));
  RINGFENCE_ASSIGN(RiskChange change, RiskChange::Begin(invocation, true));
  RiskDesk& desk = change.desk();
  JsonArray done;
  for (NodeNews& one : news) {
    assure::NodeFindings& found = one.found;
    found.node = parsed.Value("node").value_or(found.node);
    const auto before = desk.reg.nodes.find(found.node);
    Exposure exposure = before == desk.reg.nodes.end() ? Exposure() : before->second.exposure;
    Know(one, exposure);
    RINGFENCE_TRY(ReadExposureOptions(parsed, exposure));
    if (one.from_fleet && before != desk.reg.nodes.end() && before->second.when == found.when &&
        Same(before->second.exposure, exposure)) {
      invocation.console.Note(found.node + ": nothing new since " + FormatTime(found.when));
      continue;
    }
    RINGFENCE_ASSIGN(const assure::UpdateCounts counts,
                     UpdateRegister(desk.reg, desk.model, found, exposure, desk.now));
    const int score = desk.reg.nodes[found.node].trend.back().score;
    done.push_back(JsonObject{{"node", found.node},
                              {"score", score},
                              {"opened", counts.opened},
                              {"reopened", counts.reopened},
                              {"closed", counts.closed},
                              {"lost_sight", counts.lost_sight}});
    if (invocation.console.table()) {
      invocation.console.out() << Safe(found.node) << ": score " << score << ", " << counts.opened
                               << " new, " << counts.reopened << " again, " << counts.closed
                               << " closed"
                               << (counts.lost_sight > 0
                                       ? ", " + std::to_string(counts.lost_sight) +
                                             " that cannot be told any more"
                                       : "")
                               << '\n';
    }
  }
  RINGFENCE_TRY(change.Commit());
  if (!invocation.console.table()) {
    invocation.console.Show(done);
  }
  return kExitOk;
}

}  // namespace ringfence::cli
