// `ringfence evidence ...`

#include <algorithm>
#include <set>
#include <thread>

#include "assure/evidence_package.h"
#include "assure/evidence_page.h"
#include "assure/oscal_report.h"
#include "audit/note.h"
#include "base/code.h"
#include "cli/comply.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/text.h"
#include "crypto/ed25519_pem.h"
#include "os/file.h"

namespace ringfence::cli {
namespace {

using assure::EvidenceFiles;

constexpr std::size_t kEntriesPerAction = 5;
constexpr std::size_t kScrubsLookedAt = 1000;  // many leases have no GPUs
constexpr std::size_t kNodesMax = 10'000;
constexpr std::size_t kLeasesMax = 500;
constexpr int kAnchorTries = 40;
constexpr std::size_t kKeyBytesMax = 64 * 1024;

std::string Pretty(const Json& value) { return PrettyJson(value) + "\n"; }

// A name of the server's, as a file's name.
std::string FileName(const std::string& name) {
  std::string out;
  for (const char c : name) {
    out += (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_') ? c : '_';
  }
  return out.substr(0, 48);
}

void AddReports(const Dossier& dossier, EvidenceFiles& files) {
  const auto& head = dossier.bench.head;
  files["reports/controls.json"] =
      Pretty(assure::ComplianceJson(dossier.statuses, dossier.evidence, head));
  files["reports/controls.md"] =
      assure::ComplianceMarkdown(dossier.statuses, dossier.evidence, head);
  files["reports/controls.html"] = assure::ComplianceHtml(dossier.statuses, dossier.evidence, head);
  files["reports/oscal-assessment-results.json"] =
      assure::OscalAssessmentResults(dossier.statuses, dossier.evidence, head);
  files["reports/oscal-poam.json"] = assure::OscalPoam(dossier.statuses, dossier.evidence, head);
  files["reports/assessment.html"] = assure::Html(dossier.assessment, head);
  files["evidence/checks.json"] = Pretty(assure::AssessmentJson(dossier.assessment, head));
}

void AddStatement(const std::string& file, const std::string& node, std::string_view type,
                  std::string envelope, EvidenceFiles& files) {
  files["evidence/statements/" + file + ".json"] =
      Pretty(JsonObject{{"node", node}, {"type", type}, {"envelope", std::move(envelope)}});
}

// How probes ended and that GPUs were scrubbed, as the nodes signed it.
Status AddStatements(Dossier& dossier, const std::set<std::string>& scrubbed,
                     EvidenceFiles& files) {
  Api& api = *dossier.api;
  RINGFENCE_ASSIGN(const JsonArray nodes, api.List("/v1/nodes", {}, kNodesMax));
  files["evidence/nodes.json"] = Pretty(nodes);
  std::size_t leases = 0;
  for (const Json& proofs : dossier.proofs) {
    const std::string node = TextOf(proofs, "node");
    files["evidence/probes-" + FileName(node) + ".json"] = Pretty(proofs);
    const Json* const probes = Field(proofs, "probes");
    const JsonObject* const object = probes == nullptr ? nullptr : probes->if_object();
    for (std::size_t i = 0; object != nullptr && i < object->size(); ++i) {
      const auto& member = *(object->begin() + static_cast<std::ptrdiff_t>(i));
      for (const char* role : {"attack", "control"}) {
        const std::string lease = TextOf(member.value(), role);
        if (lease.empty() || ++leases > kLeasesMax) {
          continue;
        }
        const auto shown = api.Get(Target("/v1/leases", lease, ""));
        const std::string envelope = shown.has_value() ? TextOf(*shown, "proof") : "";
        if (!envelope.empty()) {
          AddStatement("probe-" + FileName(lease), node, "application/vnd.ringfence.proof+json",
                       envelope, files);
        }
      }
    }
  }
  for (const std::string& lease : scrubbed) {
    const auto receipts = api.Get(Target("/v1/leases", lease, "/receipts"));
    if (!receipts.has_value()) {
      continue;
    }
    for (const Json& item : ArrayOf(*receipts, "items")) {
      const Json* const envelope = Field(item, "envelope");
      const Json* const receipt = Field(item, "receipt");
      if (envelope != nullptr && receipt != nullptr) {
        AddStatement("receipt-" + FileName(TextOf(item, "id")), TextOf(*receipt, "node"),
                     "application/vnd.ringfence.receipt+json", CanonicalJson(*envelope), files);
      }
    }
  }
  return {};
}

// The entries that controls rest on, each with its proof, and the checkpoint after them.
Result<std::set<std::string>> AddLog(Dossier& dossier, std::size_t per_action,
                                     EvidenceFiles& files) {
  Api& api = *dossier.api;
  std::set<std::string> actions;
  for (const assure::Framework& framework : dossier.frameworks) {
    for (const assure::ControlSpec& control : framework.controls) {
      for (const assure::AuditQuery& query : control.audit) {
        actions.insert(query.action);
      }
    }
  }
  std::string lines;
  std::set<std::string> scrubbed;
  for (const std::string& action : actions) {
    if (!dossier.evidence.audit.contains(action)) {
      continue;
    }
    const bool scrub = action.ends_with(".scrub");
    RINGFENCE_ASSIGN(const JsonArray items,
                     api.List("/v1/audit/entries", {{"order", "newest"}, {"action", action}},
                              scrub ? kScrubsLookedAt : per_action));
    std::size_t taken = 0;
    for (const Json& item : items) {
      const Json* const entry = Field(item, "entry");
      if (taken == per_action || entry == nullptr || (scrub && ArrayOf(*entry, "gpus").empty())) {
        continue;  // a lease without GPUs had nothing to scrub
      }
      ++taken;
      lines += CanonicalJson(item) + "\n";
      const std::string lease = TextOf(*entry, "lease");
      if (action == "lease.scrub" && !lease.empty()) {
        scrubbed.insert(lease);
      }
      if (BoolOf(item, "proven")) {
        const std::string index = TextOf(item, "index");
        RINGFENCE_ASSIGN(files["audit/proofs/" + FileName(index) + ".json"],
                         api.Raw(Target("/v1/audit/entries", index, "/proof")));
      }
    }
  }
  files["audit/entries.jsonl"] = lines;
  RINGFENCE_ASSIGN(const Json keys, api.Get("/v1/audit/keys"));
  files["audit/keys.json"] = Pretty(keys);
  files["audit/log.vkey"] = TextOf(keys, "log") + "\n";
  RINGFENCE_ASSIGN(files["audit/checkpoint"], api.Raw("/v1/audit/checkpoint"));
  return scrubbed;
}

// The server takes the manifest's digest down in its log; the entry's proof goes with the package.
// Where that cannot be, the package is as good as without a server's word, and says so.
Status Anchor(Dossier& dossier, Console& console, EvidenceFiles& files) {
  Api& api = *dossier.api;
  const std::string digest = assure::ManifestDigest(files);
  const Json body = JsonObject{{"manifest_sha256", digest}};
  const auto recorded = api.Post("/v1/audit/evidence", &body);
  if (!recorded.has_value()) {
    console.Warn("the server did not record the package: " + recorded.error().message);
    return {};
  }
  // An entry is under a signed checkpoint within a second or so.
  for (int tries = 0; tries < kAnchorTries; ++tries) {
    RINGFENCE_ASSIGN(
        const JsonArray items,
        api.List("/v1/audit/entries", {{"order", "newest"}, {"action", "evidence.export"}}, 20));
    for (const Json& item : items) {
      const Json* const entry = Field(item, "entry");
      const Json* const detail = entry == nullptr ? nullptr : Field(*entry, "detail");
      if (detail != nullptr && BoolOf(item, "proven") &&
          TextOf(*detail, "manifest_sha256") == digest) {
        RINGFENCE_ASSIGN(files[std::string(assure::kManifestProofName)],
                         api.Raw(Target("/v1/audit/entries", TextOf(item, "index"), "/proof")));
        return {};
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
  console.Warn("the server recorded the package, and has not signed the entry yet");
  return {};
}

Result<int> EvidenceExport(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const auto out = parsed.Value("out");
  if (!out.has_value()) {
    return Error{Code::kInvalidArgument, "--out: say where the package goes",
                 "--out package.tar, or the name of a new folder"};
  }
  if (os::Exists(*out)) {
    return Error{Code::kConflict, "--out: " + *out + " is there already",
                 "choose a new name; a package is never written over another"};
  }
  std::optional<crypto::SigningKey> key;
  if (const auto file = parsed.Value("key")) {
    RINGFENCE_ASSIGN(const std::string pem, os::ReadText(*file, kKeyBytesMax));
    auto read = crypto::ReadSigningKeyPem(pem);
    if (!read.has_value()) {
      return Prefix("--key " + *file, read.error());
    }
    key.emplace(std::move(*read));
  }
  std::size_t per_action = kEntriesPerAction;
  if (const auto text = parsed.Value("entries")) {
    const auto count = ParseCount(*text, 1, 1000);
    if (!count.has_value()) {
      return Prefix("--entries", count.error());
    }
    per_action = static_cast<std::size_t>(*count);
  }
  Dossier dossier;
  RINGFENCE_TRY(Compile(invocation, dossier));
  EvidenceFiles files;
  AddReports(dossier, files);
  if (dossier.api != nullptr) {
    RINGFENCE_ASSIGN(const std::set<std::string> scrubbed, AddLog(dossier, per_action, files));
    RINGFENCE_TRY(AddStatements(dossier, scrubbed, files));
  } else {
    for (const Json& proofs : dossier.proofs) {
      files["evidence/probes-" + FileName(TextOf(proofs, "node")) + ".json"] = Pretty(proofs);
    }
  }
  files["package.json"] = Pretty(JsonObject{{"made", FormatTime(dossier.bench.head.when)},
                                            {"by", "ringfence " RINGFENCE_VERSION},
                                            {"node", dossier.bench.head.node},
                                            {"root", dossier.bench.head.root},
                                            {"baseline", dossier.baseline_source},
                                            {"server_asked", dossier.api != nullptr},
                                            {"missing", dossier.evidence.no_server}});
  files["VERIFY.md"] = assure::VerifyPage();
  assure::SealEvidence(key.has_value() ? &*key : nullptr, files);
  if (dossier.api != nullptr) {
    RINGFENCE_TRY(Anchor(dossier, invocation.console, files));
  }
  if (out->ends_with(".tar")) {
    const std::string tar = assure::WriteTar(files, dossier.bench.head.when);
    RINGFENCE_TRY(os::CreateFileDurable(*out, AsBytes(tar), 0600));
  } else {
    RINGFENCE_TRY(assure::WriteEvidenceFolder(*out, files));
  }
  invocation.console.Note(Count(files.size(), "file") + " in " + *out +
                          (key.has_value() ? ", signed by key " + key->public_key().Id()
                                           : ", not signed (--key FILE signs it)") +
                          "; VERIFY.md in it says how to verify it");
  return kExitOk;
}

Result<assure::EvidenceTrust> TrustOf(const Parsed& parsed) {
  assure::EvidenceTrust trust;
  if (const auto file = parsed.Value("signer")) {
    RINGFENCE_ASSIGN(const std::string pem, os::ReadText(*file, kKeyBytesMax));
    const auto key = crypto::ReadPublicKeyPem(pem);
    if (!key.has_value()) {
      return Prefix("--signer " + *file, key.error());
    }
    trust.signer = *key;
  }
  if (const auto given = parsed.Value("log-key")) {
    trust.log_vkey = *given;
    if (os::Exists(*given)) {
      RINGFENCE_ASSIGN(const std::string text, os::ReadText(*given, kKeyBytesMax));
      trust.log_vkey = text.substr(0, text.find_last_not_of(" \r\n") + 1);
    }
    // Before anything is verified with it: a wrong file is no sign of a forged package.
    if (!audit::ParseVerifierKey(trust.log_vkey).has_value()) {
      return Error{Code::kInvalidArgument, "--log-key: " + *given + " is no key of an audit log",
                   "`ringfence audit keys --log` prints it: NAME+HASH+BASE64", "log-key"};
    }
  }
  return trust;
}

JsonArray Texts(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.push_back(Json(text));
  }
  return array;
}

Result<int> EvidenceVerify(Invocation& invocation) {
  RINGFENCE_ASSIGN(const assure::EvidenceTrust trust, TrustOf(invocation.parsed));
  const std::string path = invocation.parsed.Argument(0);
  const auto files = assure::ReadEvidence(path);
  if (!files.has_value()) {
    return Prefix(path, files.error());
  }
  const assure::EvidenceReport report = assure::VerifyEvidence(*files, trust);
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(JsonObject{{"ok", report.ok()},
                            {"files", report.files},
                            {"proofs", report.proofs},
                            {"statements", report.statements},
                            {"signer", report.signer},
                            {"recorded", report.recorded},
                            {"problems", Texts(report.problems)},
                            {"notes", Texts(report.notes)}});
    return report.ok() ? kExitOk : kExitFindings;
  }
  const std::string verdict = std::string(report.ok() ? console.Tick() : console.Cross()) + " " +
                              Safe(path) + (report.ok() ? " is whole" : " is NOT what was packed");
  console.out() << (report.ok() ? console.Good(verdict) : console.Bad(verdict)) << '\n';
  for (const std::string& problem : report.problems) {
    console.out() << "  " << console.Bad(console.Cross()) << ' ' << Safe(problem) << '\n';
  }
  FactList facts;
  facts.Add("Files", std::to_string(report.files) + " with the digest of the manifest");
  facts.Add("Audit entries", std::to_string(report.proofs) + " proven to be in the log");
  facts.Add("Nodes' statements", std::to_string(report.statements) + " with a good signature");
  facts.Add("Signed by", report.signer);
  facts.Add("In the audit log", report.recorded);
  for (const std::string& note : report.notes) {
    facts.Add("Note", note);
  }
  facts.Print(console);
  return report.ok() ? kExitOk : kExitFindings;
}

}  // namespace

CommandTable EvidenceCommands() {
  std::vector<OptionSpec> options = ComplyOptions();
  options.push_back({.name = "out",
                     .value = "FILE.tar|DIR",
                     .help = "where the package goes: a tar, or a new folder",
                     .completes = Completes::kFile});
  options.push_back({.name = "key",
                     .value = "FILE",
                     .help = "sign with this Ed25519 key (PEM, as openssl makes it)",
                     .completes = Completes::kFile});
  options.push_back({.name = "entries",
                     .value = "N",
                     .help = "newest audit entries of each action, with proofs (default 5)"});
  return {
      {.path = "evidence export",
       .group = Group::kEvidence,
       .summary = "Pack reports, raw evidence and proofs for an auditor.",
       .details =
           "Reports about controls, what checks read, how probes ended and GPUs were scrubbed as\n"
           "the nodes signed it, audit entries with inclusion proofs, the signed checkpoint, and\n"
           "VERIFY.md: how to verify all of it without Ringfence.",
       .options = options,
       .examples = {{"ringfence evidence export --out evidence.tar", "all frameworks"},
                    {"ringfence evidence export --framework hipaa --key evidence-key.pem --out "
                     "hipaa.tar",
                     "of one framework, signed"}},
       .handler = EvidenceExport},
      {.path = "evidence verify",
       .group = Group::kEvidence,
       .summary = "Verify a package of evidence offline.",
       .details = "Without --signer and --log-key the keys in the package itself are used, which\n"
                  "shows damage, but not a package that somebody made up.",
       .options = {{.name = "signer",
                    .value = "FILE",
                    .help = "the public key (PEM) that must have signed it",
                    .completes = Completes::kFile},
                   {.name = "log-key",
                    .value = "FILE|VKEY",
                    .help = "the audit log's key; `ringfence audit keys` shows it",
                    .completes = Completes::kFile}},
       .arguments = {{.name = "PACKAGE",
                      .help = "the tar or folder",
                      .completes = Completes::kFile}},
       .examples =
           {{"ringfence evidence verify evidence.tar", "digests, proofs, signatures"},
            {"ringfence evidence verify evidence.tar --signer signer.pem --log-key log.vkey",
             "with keys that you have from elsewhere"}},
       .exit_codes = "0 all of it is right, 1 something is not",
       .handler = EvidenceVerify},
  };
}

}  // namespace ringfence::cli
