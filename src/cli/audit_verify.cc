// `ringfence audit verify`

#include "audit/verify.h"
#include "base/code.h"
#include "base/json.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/log_copy.h"
#include "cli/settings.h"
#include "cli/text.h"
#include "os/file.h"
#include "os/self.h"

namespace ringfence::cli {
namespace {

constexpr std::size_t kKeyFileBytesMax = 4096;
constexpr std::size_t kNoteBytesMax = 1024 * 1024;

// A key as text, or a file that holds one.
Result<std::string> KeyOf(const std::string& given) {
  if (!os::Exists(given)) {
    if (given.find('+') != std::string::npos) {
      return given;
    }
    return Error{Code::kInvalidArgument, "--key: " + given + " is no file and no key",
                 "a key looks like ringfence.local/NAME+1a2b3c4d+Ab...; `ringfence audit keys` "
                 "shows them"};
  }
  RINGFENCE_ASSIGN(std::string text, os::ReadText(given, kKeyFileBytesMax));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

Result<std::string> LogKey(Invocation& invocation) {
  if (const auto given = invocation.parsed.Value("key")) {
    return KeyOf(*given);
  }
  const std::string path = FindContext(invocation.settings);
  if (os::Exists(path)) {
    RINGFENCE_ASSIGN(const Connection context, ReadContext(path));
    if (!context.log_vkey.empty()) {
      return context.log_vkey;
    }
  }
  return Error{Code::kInvalidArgument, "no key to verify the log with",
               "give the key you trust with --key FILE or --key VKEY", "audit verify"};
}

Json ToJson(const audit::VerifyReport& report) {
  JsonArray witnesses;
  JsonArray bad;
  JsonArray problems;
  for (const std::string& witness : report.witnesses) {
    witnesses.emplace_back(witness);
  }
  for (const audit::BadRange& range : report.bad) {
    bad.push_back(JsonObject{{"first", static_cast<std::int64_t>(range.first)},
                             {"last", static_cast<std::int64_t>(range.last)},
                             {"what", range.what}});
  }
  for (const std::string& problem : report.problems) {
    problems.emplace_back(problem);
  }
  return JsonObject{{"ok", report.ok},
                    {"origin", report.origin},
                    {"size", static_cast<std::int64_t>(report.size)},
                    {"root", report.root},
                    {"entries_read", static_cast<std::int64_t>(report.entries_read)},
                    {"witnesses", std::move(witnesses)},
                    {"bad", std::move(bad)},
                    {"problems", std::move(problems)}};
}

int Show(Console& console, const audit::VerifyReport& report, const std::string& what) {
  if (!console.table()) {
    console.Show(ToJson(report));
    return report.ok ? kExitOk : kExitFindings;
  }
  const std::string verdict = std::string(report.ok ? console.Tick() : console.Cross()) + " " +
                              Safe(what) +
                              (report.ok ? " is what was signed" : " is NOT what was signed");
  console.out() << (report.ok ? console.Good(verdict) : console.Bad(verdict)) << '\n';
  for (const audit::BadRange& range : report.bad) {
    const std::string where = range.first == range.last ? "entry " + std::to_string(range.first)
                                                        : "entries " + std::to_string(range.first) +
                                                              " to " + std::to_string(range.last);
    const bool named = range.what.starts_with(where);
    console.out() << "  " << console.Bad(named ? console.Cross() : where) << (named ? " " : ": ")
                  << Safe(range.what) << '\n';
  }
  for (const std::string& problem : report.problems) {
    console.out() << "  " << console.Bad(console.Cross()) << ' ' << Safe(problem) << '\n';
  }
  FactList facts;
  facts.Add("Origin", report.origin);
  facts.Add("Size", std::to_string(report.size) + (report.size == 1 ? " entry" : " entries") +
                        ", " + std::to_string(report.entries_read) + " read");
  facts.Add("Root", report.root);
  for (const std::string& witness : report.witnesses) {
    facts.Add("Witness", witness);
  }
  if (report.ok && report.witnesses.empty()) {
    facts.Add("Witness",
              "none: an operator who holds the log's key could have rewritten it; "
              "compare with a --checkpoint kept elsewhere");
  }
  facts.Print(console);
  return report.ok ? kExitOk : kExitFindings;
}

// What is not even of the right kind says nothing about the log: no alarm, a usage error.
Error WrongFile(const std::string& given, std::string_view wanted, std::string_view fix) {
  return Error{Code::kInvalidArgument, given + " is not " + std::string(wanted), std::string(fix)};
}

Result<int> VerifyOneProof(Invocation& invocation, const std::string& file) {
  RINGFENCE_ASSIGN(const std::string key, LogKey(invocation));
  RINGFENCE_ASSIGN(const std::string proof, os::ReadText(file, kNoteBytesMax));
  const auto json = ParseJson(proof, kNoteBytesMax);
  if (!json.has_value() || !json->is_object() || !json->get_object().contains("checkpoint")) {
    return WrongFile("--proof " + file, "a proof", "`ringfence audit prove N > FILE` makes one");
  }
  RINGFENCE_ASSIGN(const audit::VerifyReport report, audit::VerifyProof(proof, key));
  return Show(invocation.console, report, "the entry of " + file);
}

// Says how far it is about ten times, whatever the size.
std::function<void(std::uint64_t, std::uint64_t)> Told(Console& console, std::string what) {
  return
      [&console, what, told = std::uint64_t{0}](std::uint64_t done, std::uint64_t total) mutable {
        if (total > 0 && done * 10 / total > told) {
          told = done * 10 / total;
          console.Progress(what + " " + std::to_string(done) + " of " + std::to_string(total));
        }
      };
}

// A log that grows while it is read loses partial tiles under the reader's feet. A finding counts
// only when the checkpoint is the same after the reading as before.
Result<audit::VerifyReport> VerifyStill(const audit::VerifyOptions& options) {
  constexpr int kAttempts = 5;
  const std::string path = options.folder + "/checkpoint";
  for (int attempt = 1;; ++attempt) {
    const auto before = os::ReadText(path, kNoteBytesMax);
    auto report = audit::VerifyLog(options);
    const auto after = os::ReadText(path, kNoteBytesMax);
    const bool moved = before.has_value() && after.has_value() && *before != *after;
    if (!report.has_value() || report->ok || !moved || attempt == kAttempts) {
      return report;
    }
  }
}

Result<int> Verify(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  Console& console = invocation.console;
  if (const auto proof = parsed.Value("proof")) {
    return VerifyOneProof(invocation, *proof);
  }
  audit::VerifyOptions options;
  RINGFENCE_ASSIGN(std::string key, LogKey(invocation));
  options.vkeys.push_back(std::move(key));
  for (const std::string& witness : parsed.Values("witness")) {
    RINGFENCE_ASSIGN(std::string witness_key, KeyOf(witness));
    options.vkeys.push_back(std::move(witness_key));
  }
  for (const std::string& file : parsed.Values("checkpoint")) {
    RINGFENCE_ASSIGN(std::string note, os::ReadText(file, kNoteBytesMax));
    if (note.find("\n\n\u2014 ") == std::string::npos) {  // not even the shape of a signed note
      return WrongFile("--checkpoint " + file, "a checkpoint",
                       "`ringfence audit checkpoint > FILE` makes one");
    }
    options.earlier_checkpoints.push_back(std::move(note));
  }
  options.progress = Told(console, "verified");
  std::optional<os::TempFolder> copy;
  const std::string own = invocation.settings.state() + "/server/log";
  if (const auto folder = parsed.Value("log")) {
    options.folder = *folder;
    if (!os::Exists(*folder + "/checkpoint") && !os::Exists(*folder + "/tile")) {
      return WrongFile("--log " + *folder, "a log", "name the folder with `checkpoint` and `tile`");
    }
  } else if (os::ReadText(own + "/checkpoint", kNoteBytesMax).has_value()) {
    options.folder = own;
  } else {
    RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
    RINGFENCE_ASSIGN(os::TempFolder made, os::TempFolder::Create("ringfence-log"));
    copy.emplace(std::move(made));
    RINGFENCE_TRY(CopyLog(*api, copy->path(), Told(console, "copied file")));
    options.folder = copy->path();
  }
  RINGFENCE_ASSIGN(const audit::VerifyReport report, VerifyStill(options));
  if (report.ok && !options.earlier_checkpoints.empty()) {
    console.Note("it extends every checkpoint given: nothing was taken back since");
  }
  return Show(console, report, copy ? "the server's log (a copy)" : "the log in " + options.folder);
}

}  // namespace

CommandTable AuditVerifyCommands() {
  return {{
      .path = "audit verify",
      .group = Group::kEvidence,
      .summary = "Verify offline that the audit log, or a proof, is what was signed.",
      .details =
          "Reads every entry and tile, and shares no code with what wrote them. Without --log it\n"
          "takes <state>/server/log where that is readable, or else copies the log from the\n"
          "server. The key is the one that `up` noted when it made the log, unless --key gives\n"
          "another. Earlier checkpoints show that nothing was taken back or forked since.",
      .options = {{.name = "log",
                   .value = "DIR",
                   .help = "folder of the log, or of a copy of it",
                   .completes = Completes::kFolder},
                  {.name = "key",
                   .value = "FILE|VKEY",
                   .help = "the log's key",
                   .completes = Completes::kFile},
                  {.name = "witness",
                   .value = "FILE|VKEY",
                   .help = "this witness must have cosigned; may be given again",
                   .repeated = true,
                   .completes = Completes::kFile},
                  {.name = "checkpoint",
                   .value = "FILE",
                   .help = "the log must extend this checkpoint; may be given again",
                   .repeated = true,
                   .completes = Completes::kFile},
                  {.name = "proof",
                   .value = "FILE",
                   .help = "verify a proof of `audit prove` instead",
                   .completes = Completes::kFile}},
      .examples = {{"ringfence audit verify", "all of it"},
                   {"ringfence audit verify --log copy/ --key log.vkey --checkpoint "
                    "checkpoint-last-year",
                    "as an auditor, with what you kept"},
                   {"ringfence audit verify --proof proof.json --key log.vkey", "one entry"}},
      .exit_codes = "0 it is what was signed, 1 findings",
      .handler = Verify,
  }};
}

}  // namespace ringfence::cli
