// What is known about controls: of this machine by checks, of the cluster by its server.

#include <algorithm>
#include <set>

#include "base/check.h"
#include "cli/comply.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/suggest.h"
#include "os/file.h"
#include "os/identity.h"

namespace ringfence::cli {
namespace {

constexpr std::size_t kNewestEntries = 5'000;  // read at once; older ones by their action
constexpr std::size_t kNodesMax = 10'000;
constexpr std::size_t kProofsBytesMax = std::size_t{16} << 20U;

Result<std::string> ControlsFolder(const Parsed& parsed) {
  if (const auto given = parsed.Value("controls")) {
    return *given;
  }
  RINGFENCE_ASSIGN(const std::string own, os::OwnPath());
  const std::string folder = own.substr(0, own.rfind('/'));
  const std::string built = folder + "/content/controls";
  return os::Exists(built) ? built : folder + "/../share/ringfence/controls";
}

// --catalog and --profile: the controls of NIST's framework become theirs.
Status ApplyOscal(const Parsed& parsed, Dossier& dossier) {
  const auto catalog_file = parsed.Value("catalog");
  const auto profile_file = parsed.Value("profile");
  if (!catalog_file.has_value()) {
    return profile_file.has_value()
               ? Status(Error{Code::kInvalidArgument, "--profile: needs the catalog it imports",
                              "give that too: --catalog FILE"})
               : Status();
  }
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(*catalog_file, assure::kOscalBytesMax));
  RINGFENCE_ASSIGN(const assure::OscalCatalog catalog,
                   assure::ParseOscalCatalog(text, *catalog_file));
  std::vector<assure::OscalControl> controls;
  dossier.baseline_source = catalog.title;
  if (profile_file.has_value()) {
    RINGFENCE_ASSIGN(const std::string chosen, os::ReadText(*profile_file, assure::kOscalBytesMax));
    RINGFENCE_ASSIGN(const assure::OscalProfile profile,
                     assure::ParseOscalProfile(chosen, *profile_file));
    RINGFENCE_ASSIGN(controls, assure::ResolveProfile(profile, catalog));
    dossier.baseline_source = profile.title;
  } else {
    std::copy_if(catalog.controls.begin(), catalog.controls.end(), std::back_inserter(controls),
                 [](const assure::OscalControl& one) { return !one.withdrawn; });
  }
  for (assure::Framework& framework : dossier.frameworks) {
    if (framework.prefix == "nist") {
      framework = assure::Tailor(framework, controls);
    }
  }
  return {};
}

Status Choose(const Parsed& parsed, Dossier& dossier) {
  if (const auto wanted = parsed.Value("framework")) {
    std::vector<std::string> known;
    for (const assure::Framework& framework : dossier.frameworks) {
      known.push_back(framework.id);
    }
    std::erase_if(dossier.frameworks, [&](const assure::Framework& framework) {
      return framework.id != *wanted && framework.prefix != *wanted;
    });
    if (dossier.frameworks.empty()) {
      std::string all;
      for (const std::string& name : known) {
        all += (all.empty() ? "" : ", ") + name;
      }
      return Error{Code::kInvalidArgument, "--framework: \"" + *wanted + "\" is none of " + all,
                   DidYouMean(*wanted, known, "choose one of them")};
    }
  }
  if (const auto baseline = parsed.Value("baseline")) {
    bool known = false;
    for (const assure::Framework& framework : dossier.frameworks) {
      known = known || std::any_of(framework.controls.begin(), framework.controls.end(),
                                   [&](const auto& one) { return one.baseline == *baseline; });
    }
    if (!known) {
      return Error{Code::kInvalidArgument, "--baseline: no control is of \"" + *baseline + "\"",
                   "`ringfence comply status -o json` shows each control's baseline"};
    }
    for (assure::Framework& framework : dossier.frameworks) {
      std::erase_if(framework.controls, [&](const assure::ControlSpec& control) {
        return !control.baseline.empty() && control.baseline != *baseline;
      });
    }
  }
  return {};
}

std::set<std::string> ActionsOf(const Dossier& dossier) {
  std::set<std::string> actions;
  for (const assure::Framework& framework : dossier.frameworks) {
    for (const assure::ControlSpec& control : framework.controls) {
      for (const assure::AuditQuery& query : control.audit) {
        actions.insert(query.action);
      }
    }
  }
  return actions;
}

Status AskServer(const Parsed& parsed, Dossier& dossier) {
  Api& api = *dossier.api;
  RINGFENCE_ASSIGN(const JsonArray nodes, api.List("/v1/nodes", {}, kNodesMax));
  const auto only = parsed.Value("node");
  bool found = !only.has_value();
  for (const Json& node : nodes) {
    const std::string name = TextOf(node, "name");
    dossier.evidence.simulated[name] = BoolOf(node, "simulated");
    if (only.has_value() && *only != name) {
      continue;
    }
    found = true;
    RINGFENCE_ASSIGN(Json proofs, api.Get(Target("/v1/nodes", name, "/proofs")));
    if (Field(proofs, "probes") != nullptr) {
      RINGFENCE_TRY(assure::AddProofs(proofs, dossier.evidence));
    }
    dossier.proofs.push_back(std::move(proofs));
  }
  if (!found) {
    return Error{Code::kNotFound, "--node: there is no node \"" + *only + "\"",
                 "`ringfence node list` shows them"};
  }
  // One reading for most, so that this fills the log with few entries of its own.
  RINGFENCE_ASSIGN(const JsonArray newest,
                   api.List("/v1/audit/entries", {{"order", "newest"}}, kNewestEntries));
  RINGFENCE_TRY(assure::AddAuditItems(newest, dossier.evidence));
  if (newest.size() == kNewestEntries) {
    for (const std::string& action : ActionsOf(dossier)) {
      if (!dossier.evidence.audit.contains(action)) {
        RINGFENCE_ASSIGN(
            const JsonArray items,
            api.List("/v1/audit/entries", {{"order", "newest"}, {"action", action}}, 1));
        RINGFENCE_TRY(assure::AddAuditItems(items, dossier.evidence));
      }
    }
  }
  return {};
}

// Probes and audit entries: from the server, from a file, or not at all, which is then said.
Status Gather(Invocation& invocation, Dossier& dossier) {
  const Parsed& parsed = invocation.parsed;
  const auto file = parsed.Value("proofs");
  if (file.has_value()) {
    RINGFENCE_ASSIGN(const std::string text, os::ReadText(*file, kProofsBytesMax));
    const auto json = ParseJson(text, kProofsBytesMax);
    if (!json.has_value()) {
      return Prefix("--proofs " + *file, json.error());
    }
    const Status added = assure::AddProofs(*json, dossier.evidence);
    if (!added.has_value()) {
      return Prefix("--proofs " + *file, added.error());
    }
    dossier.proofs.push_back(*json);
    return {};
  }
  if (parsed.Has("offline") || (parsed.Has("root") && !parsed.Has("node"))) {
    dossier.evidence.no_server = "probes and audit log not looked at";
    return {};
  }
  auto api = Api::Open(invocation.settings);
  if (!api.has_value()) {
    dossier.evidence.no_server = "no server to ask about probes and audit log";
    invocation.console.Warn("no server asked, so probes and the audit log count for nothing: " +
                            api.error().message);
    return {};
  }
  dossier.api = std::move(*api);
  const Status asked = AskServer(parsed, dossier);
  if (!asked.has_value() && dossier.api->unreachable()) {
    dossier.api.reset();
    dossier.evidence.no_server = "the server could not be reached";
    invocation.console.Warn("probes and the audit log count for nothing: " + asked.error().message);
    return {};
  }
  return asked;
}

}  // namespace

Status Compile(Invocation& invocation, Dossier& dossier) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const std::string folder, ControlsFolder(parsed));
  auto frameworks = assure::LoadFrameworks(folder);
  if (!frameworks.has_value()) {
    return Prefix("--controls", frameworks.error());
  }
  dossier.frameworks = std::move(*frameworks);
  RINGFENCE_TRY(ApplyOscal(parsed, dossier));
  RINGFENCE_TRY(Choose(parsed, dossier));
  RINGFENCE_TRY(SetUp(invocation, dossier.bench));
  dossier.evidence.now = dossier.bench.head.when;
  if (const auto fresh = parsed.Value("fresh")) {
    const auto duration = ParseDuration(*fresh);
    if (!duration.has_value()) {
      return Prefix("--fresh", duration.error());
    }
    dossier.evidence.fresh = *duration;
  }
  RINGFENCE_TRY(Gather(invocation, dossier));
  dossier.assessment =
      assure::Assess(dossier.bench.checks, dossier.bench.Context(), dossier.bench.exceptions);
  dossier.evidence.assessment = &dossier.assessment;
  for (const assure::Framework& framework : dossier.frameworks) {
    dossier.statuses.push_back(assure::JudgeFramework(framework, dossier.evidence));
  }
  return {};
}

OptionSpec ComplyOption(std::string_view name) {
  static const std::vector<OptionSpec> kOptions = ComplyOptions();
  const auto found = std::find_if(kOptions.begin(), kOptions.end(),
                                  [name](const OptionSpec& option) { return option.name == name; });
  RINGFENCE_CHECK(found != kOptions.end());
  return *found;
}

std::vector<OptionSpec> ComplyOptions() {
  return {
      {.name = "framework", .value = "NAME", .help = "only this one: nist-800-53, hipaa or gdpr"},
      {.name = "baseline", .value = "NAME", .help = "only controls of this baseline, as \"low\""},
      {.name = "catalog",
       .value = "FILE",
       .help = "OSCAL catalog (JSON) with the controls of NIST's framework",
       .completes = Completes::kFile},
      {.name = "profile",
       .value = "FILE",
       .help = "OSCAL profile (JSON) that chooses from --catalog",
       .completes = Completes::kFile},
      {.name = "node",
       .value = "NODE",
       .help = "only probes of this node",
       .completes = Completes::kNode},
      {.name = "offline", .help = "ask no server: checks of this machine only"},
      {.name = "proofs",
       .value = "FILE",
       .help = "results of `prove --last -o json` instead of the server's",
       .completes = Completes::kFile},
      {.name = "fresh", .value = "DURATION", .help = "how old proof may be (default 30d)"},
      {.name = "controls",
       .value = "DIR",
       .help = "folder with the controls (default: those shipped)",
       .completes = Completes::kFolder},
      AssessOption("root"),
      AssessOption("csaf"),
      AssessOption("checks"),
      AssessOption("exceptions")};
}

}  // namespace ringfence::cli
