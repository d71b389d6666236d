// `ringfence backup create`, `backup verify`, `backup restore`

#include <algorithm>

#include "backup/check.h"
#include "backup/create.h"
#include "backup/restore.h"
#include "base/code.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/node_process.h"
#include "cli/passphrase.h"
#include "cli/settings.h"
#include "cli/text.h"
#include "cli/up_state.h"
#include "os/file.h"
#include "os/identity.h"
#include "store/migrations.h"

namespace ringfence::cli {
namespace {

constexpr std::size_t kNoteBytesMax = 64 * 1024;

// Says how far it is about ten times, whatever the size.
backup::Progress Told(Console& console, std::string what) {
  return
      [&console, what, told = std::uint64_t{0}](std::uint64_t done, std::uint64_t total) mutable {
        if (total > 0 && done * 10 / total > told) {
          told = done * 10 / total;
          console.Progress(what + " " + std::to_string(told * 10) + "%");
        }
      };
}

JsonObject ManifestJson(const backup::Manifest& manifest) {
  JsonObject json = backup::ManifestToJson(manifest).as_object();
  json.erase("vkey");
  json.erase("checkpoint");
  return json;
}

void AddFacts(FactList& facts, const backup::Manifest& manifest) {
  facts.Add("Made", FormatTime(manifest.about.created) + " by Ringfence " + manifest.about.version +
                        ", schema " + std::to_string(manifest.about.schema));
  facts.Add("Log", manifest.about.origin);
  facts.Add("Entries", std::to_string(manifest.entries) + ", " + std::to_string(manifest.log_size) +
                           " of them under its checkpoint");
  facts.Add("Root", manifest.log_root);
  for (const backup::PartFacts& part : manifest.parts) {
    facts.Add("Part", part.name + ": " + Count(part.records, "record") + ", " +
                          FormatSize(part.bytes) + ", sha256 " + part.sha256.substr(0, 16));
  }
  if (!manifest.about.has_output) {
    facts.Add("Left out", "what jobs printed");
  }
}

Result<int> CreateBackup(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const Settings& settings = invocation.settings;
  Console& console = invocation.console;
  const std::string server = settings.state() + "/server";
  RINGFENCE_TRY(TrustState(settings));
  const std::string where = settings.Text(Setting::kServerDatabase);
  if (!os::Exists(server + "/keys") || (!store::IsPostgresUrl(where) && !os::Exists(where))) {
    return Error{Code::kNotFound, "no server's state in " + settings.state(),
                 os::IsRoot()
                     ? "name its folder with --state DIR"
                     : "name its folder with --state DIR; if it is the right one, run this "
                       "as root or as the server's user"};
  }
  RINGFENCE_ASSIGN(const int schema, store::SchemaAt(where));
  if (schema < store::NewestSchema()) {  // to open it would bring it to the newest
    return Error{Code::kFailedPrecondition,
                 "the database has schema " + std::to_string(schema) + ", which this program (" +
                     std::to_string(store::NewestSchema()) + ") would change",
                 "make the backup with the program that the server runs"};
  }
  RINGFENCE_ASSIGN(const SecretBytes passphrase, Passphrase(parsed, Asking::kTwice));
  RINGFENCE_ASSIGN(const auto database, store::Open(where));
  backup::CreateOptions options;
  options.server_folder = server;
  options.policy_folder = settings.Text(Setting::kPolicyFolder);
  options.file = parsed.Argument(0);
  options.with_output = !parsed.Has("no-output");
  options.verify = !parsed.Has("no-verify");
  options.now = invocation.clock.Now();
  options.progress = Told(console, "written");
  RINGFENCE_ASSIGN(const backup::Created created, backup::Create(*database, options, passphrase));
  if (!console.table()) {
    JsonObject json = ManifestJson(created.manifest);
    json["file"] = options.file;
    json["file_bytes"] = static_cast<std::int64_t>(created.file_bytes);
    json["verified"] = options.verify;
    console.Show(json);
  } else {
    console.out() << console.Good(console.Tick()) << ' ' << Safe(options.file) << ", "
                  << FormatSize(created.file_bytes)
                  << (options.verify ? ", read back and verified" : ", NOT read back") << '\n';
    FactList facts;
    AddFacts(facts, created.manifest);
    facts.Print(console);
  }
  if (settings.Given(Setting::kServerCaCertificate)) {
    console.Warn("the CA is your own (server.ca.certificate): its files are not in the backup");
  }
  console.Note(
      "keep the passphrase apart from the file: together they are every key of the server");
  return kExitOk;
}

Result<std::vector<backup::KnownCheckpoint>> KnownCheckpoints(const Parsed& parsed) {
  std::vector<backup::KnownCheckpoint> known;
  for (const std::string& file : parsed.Values("checkpoint")) {
    RINGFENCE_ASSIGN(std::string note, os::ReadText(file, kNoteBytesMax));
    if (note.find("\n\n\u2014 ") == std::string::npos) {  // not even the shape of a signed note
      return Error{Code::kInvalidArgument, "--checkpoint " + file + " is not a checkpoint",
                   "`ringfence audit checkpoint > FILE` makes one; a node's is its "
                   "node/agent/witness.state"};
    }
    known.push_back({file, std::move(note)});
  }
  return known;
}

int ShowCheck(Console& console, const std::string& file, const backup::CheckReport& report) {
  if (!console.table()) {
    JsonObject json = ManifestJson(report.manifest);
    JsonArray problems;
    JsonArray witnesses;
    for (const std::string& problem : report.problems) {
      problems.emplace_back(problem);
    }
    for (const std::string& witness : report.witnesses) {
      witnesses.emplace_back(witness);
    }
    json["file"] = file;
    json["ok"] = report.ok;
    json["rollback"] = report.rollback;
    json["fork"] = report.fork;
    json["problems"] = std::move(problems);
    json["witnesses"] = std::move(witnesses);
    console.Show(json);
    return report.ok ? kExitOk : kExitFindings;
  }
  const std::string verdict =
      std::string(report.ok ? console.Tick() : console.Cross()) + " " + Safe(file) +
      (report.ok         ? " is whole, and its log is what was signed"
       : report.rollback ? " is OLDER than a witnessed checkpoint: restoring it is a rollback"
                         : " must NOT be trusted");
  console.out() << (report.ok ? console.Good(verdict) : console.Bad(verdict)) << '\n';
  for (const std::string& problem : report.problems) {
    console.out() << "  " << console.Bad(console.Cross()) << ' ' << Safe(problem) << '\n';
  }
  FactList facts;
  AddFacts(facts, report.manifest);
  for (const std::string& witness : report.witnesses) {
    facts.Add("Witness", witness);
  }
  facts.Print(console);
  return report.ok ? kExitOk : kExitFindings;
}

Result<int> VerifyBackup(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const std::string file = parsed.Argument(0);
  RINGFENCE_ASSIGN(const auto known, KnownCheckpoints(parsed));
  RINGFENCE_ASSIGN(const SecretBytes passphrase, Passphrase(parsed, Asking::kOnce));
  RINGFENCE_ASSIGN(backup::SealedReader reader, backup::SealedReader::Open(file, passphrase));
  RINGFENCE_ASSIGN(const backup::CheckReport report,
                   backup::Check(reader, known, Told(invocation.console, "verified")));
  if (report.ok && !known.empty()) {
    invocation.console.Note("it holds every entry that the checkpoints given sign");
  }
  return ShowCheck(invocation.console, file, report);
}

// Restoring what is older than a witness saw is refused unless it is wanted; a fork always is.
Status MayRestore(const backup::CheckReport& report, bool accept_rollback) {
  if (report.ok ||
      (report.rollback && !report.fork && accept_rollback &&
       std::all_of(report.problems.begin(), report.problems.end(),
                   [](const std::string& problem) { return problem.starts_with("rollback: "); }))) {
    return {};
  }
  if (report.rollback && !report.fork) {
    return Error{Code::kFailedPrecondition, report.problems.front(),
                 "restore a later backup; if there is none, --accept-rollback restores this one: "
                 "what came after it is lost, and every witness that saw it will say so"};
  }
  return Error{Code::kCorrupt, "this backup must not be restored: " + report.problems.front(),
               "`ringfence backup verify` shows all of it"};
}

void ShowRestored(Invocation& invocation, const backup::Restored& restored) {
  Console& console = invocation.console;
  const backup::Distrusted& doubts = restored.distrusted;
  const std::string state = invocation.settings.state();
  if (!console.table()) {
    JsonObject json = ManifestJson(restored.manifest);
    json["state"] = state;
    json["gpus_to_scrub"] = static_cast<std::int64_t>(doubts.gpus);
    json["leases_ended"] = static_cast<std::int64_t>(doubts.leases_ended);
    json["tokens_revoked"] = static_cast<std::int64_t>(doubts.tokens_revoked);
    json["tokens_kept"] = static_cast<std::int64_t>(doubts.tokens_in_force);
    json["join_tokens_dropped"] = static_cast<std::int64_t>(doubts.join_tokens_dropped);
    console.Show(json);
    return;
  }
  console.out() << console.Good(console.Tick()) << " restored to " << Safe(state) << '\n';
  FactList facts;
  AddFacts(facts, restored.manifest);
  facts.Add("GPUs", std::to_string(doubts.gpus) + " must be scrubbed before anybody gets them");
  facts.Add("Leases", std::to_string(doubts.leases_ended) + " were open, and are over");
  facts.Add("Tokens", doubts.tokens_in_force > 0
                          ? std::to_string(doubts.tokens_in_force) +
                                " are in force, also any that was revoked since the backup"
                          : std::to_string(doubts.tokens_revoked) + " were revoked");
  facts.Print(console);
  console.out() << "Next:\n  ringfence up --state " << Safe(state)
                << "     # or start its service\n"
                   "  ringfence token create --as WHO     # for everybody who needs one\n"
                   "  ringfence status                    # nodes that saw more than this backup "
                   "refuse its log\n";
}

Result<int> RestoreBackup(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const Settings& settings = invocation.settings;
  if (os::Exists(settings.state())) {
    RINGFENCE_TRY(TrustState(settings));
  }
  RINGFENCE_TRY(backup::CheckEmpty(settings.state()));
  RINGFENCE_ASSIGN(const auto known, KnownCheckpoints(parsed));
  RINGFENCE_ASSIGN(const SecretBytes passphrase, Passphrase(parsed, Asking::kOnce));
  RINGFENCE_ASSIGN(backup::SealedReader reader,
                   backup::SealedReader::Open(parsed.Argument(0), passphrase));
  RINGFENCE_ASSIGN(const backup::CheckReport report,
                   backup::Check(reader, known, Told(invocation.console, "verified")));
  RINGFENCE_TRY(MayRestore(report, parsed.Has("accept-rollback")));
  backup::RestoreOptions options;
  options.state_folder = settings.state();
  // A file among the state is put together with it; any other database must be there, and empty.
  const bool own = !settings.Given(Setting::kServerDatabase);
  options.database_apart = !own;
  options.open_database = [&](const std::string& server) {
    return store::Open(own ? server + "/ringfence.db" : settings.Text(Setting::kServerDatabase));
  };
  if (os::IsRoot()) {
    const DaemonUsers users = UsersFor(settings);
    options.owner = os::Account{users.server_uid, users.server_gid};
  }
  options.keep_tokens = parsed.Has("keep-tokens");
  options.rollback_accepted = report.rollback;
  options.now = invocation.clock.Now();
  options.progress = Told(invocation.console, "restored");
  RINGFENCE_ASSIGN(const backup::Restored restored, backup::Restore(reader, options));
  ShowRestored(invocation, restored);
  if (settings.Given(Setting::kPolicyFolder)) {
    invocation.console.Warn("the policy was restored to " + settings.state() +
                            "/policy, but the setting policy.folder names " +
                            settings.Text(Setting::kPolicyFolder) + ": compare the two");
  }
  return kExitOk;
}

std::vector<OptionSpec> WithPassphrase(std::vector<OptionSpec> options) {
  for (const OptionSpec& option : PassphraseOptions()) {
    options.push_back(option);
  }
  return options;
}

}  // namespace

CommandTable BackupCommands() {
  const OptionSpec checkpoint{
      .name = "checkpoint",
      .value = "FILE",
      .help = "the backup must hold what this checkpoint signs; may be given again",
      .repeated = true,
      .completes = Completes::kFile};
  const std::vector<ArgumentSpec> file = {
      {.name = "FILE", .help = "the backup", .completes = Completes::kFile}};
  return {
      {.path = "backup create",
       .group = Group::kOperate,
       .summary = "Back up a server's records, keys, policy and audit log into one sealed file.",
       .details =
           "Run it on the server's machine, as root or as the server's user; the server may run.\n"
           "The file is encrypted and authenticated with a passphrase, as the keys are in it. It\n"
           "appears complete, durable and read back, or not at all; nothing is written over.",
       .options = WithPassphrase({{.name = "no-output", .help = "leave out what jobs printed"},
                                  {.name = "no-verify", .help = "do not read it back"}}),
       .arguments = file,
       .examples = {{"ringfence backup create /mnt/backup/monday.rfb --passphrase-file "
                     "/root/backup-passphrase",
                     "as a timer or cron would, with a name for each day"}},
       .handler = CreateBackup},
      {.path = "backup verify",
       .group = Group::kOperate,
       .summary = "Verify a backup without restoring it: whole, signed, and not taken back.",
       .details =
           "Reads all of it, rebuilds the audit log's Merkle root from its entries and compares\n"
           "that with the signed checkpoint. With --checkpoint, one that a witness or you kept\n"
           "elsewhere, a backup that is older than what was witnessed is found to be a rollback.",
       .options = WithPassphrase({checkpoint}),
       .arguments = file,
       .examples = {{"ringfence backup verify FILE.rfb --passphrase-file P", "is it good?"},
                    {"ringfence backup verify FILE.rfb --checkpoint "
                     "/var/lib/ringfence/node/agent/witness.state",
                     "is it as new as what this node saw?"}},
       .exit_codes = "0 it is good, 1 findings (rollback, fork, log and records differ), 8 it is "
                     "damaged or the passphrase is another",
       .handler = VerifyBackup},
      {.path = "backup restore",
       .group = Group::kOperate,
       .summary = "Restore a backup where no server's state is.",
       .details =
           "Verifies it first, then writes all of it or nothing. Since nobody knows what happened\n"
           "after the backup, no GPU counts as clean until it is scrubbed again, every lease that\n"
           "was open is over, join tokens are void and all tokens are revoked. Nodes whose\n"
           "witness saw later entries refuse the log, and `status` says so.",
       .options =
           WithPassphrase({checkpoint,
                           {.name = "accept-rollback",
                            .help = "restore it though a --checkpoint shows that it is older"},
                           {.name = "keep-tokens",
                            .help = "leave tokens in force, also those revoked since the backup"}}),
       .arguments = file,
       .examples = {{"ringfence backup restore FILE.rfb --state /var/lib/ringfence",
                     "onto an empty machine; then start the server"}},
       .handler = RestoreBackup},
  };
}

}  // namespace ringfence::cli
