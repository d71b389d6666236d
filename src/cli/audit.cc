// `ringfence audit ...`, all but verify.

#include <algorithm>

#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/follow.h"
#include "cli/human.h"
#include "cli/presses.h"
#include "cli/retry.h"
#include "cli/settings.h"
#include "os/file.h"
#include "os/interrupts.h"

namespace ringfence::cli {
namespace {

const std::vector<std::string> kHeader = {"INDEX", "TIME",     "WHO",    "ACTION", "TENANT",
                                          "LEASE", "DECISION", "RESULT", "PROVEN"};

std::vector<std::string> Row(const Json& item, Timestamp now) {
  static const Json kNothing;
  const Json* found = Field(item, "entry");
  const Json& entry = found == nullptr ? kNothing : *found;
  const Json* actor = Field(entry, "actor");
  return {TextOf(item, "index"),
          RelativeTime(TextOf(entry, "time"), now),
          actor == nullptr ? "" : TextOf(*actor, "principal"),
          TextOf(entry, "action"),
          TextOf(entry, "tenant"),
          TextOf(entry, "lease"),
          TextOf(entry, "decision"),
          TextOf(entry, "result"),
          TextOf(item, "proven")};
}

void ShowItems(Invocation& invocation, const JsonArray& items) {
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(items);
    return;
  }
  if (items.empty()) {
    console.Note("no such entries");
    return;
  }
  Table table(kHeader);
  for (const Json& item : items) {
    table.Add(Row(item, invocation.clock.Now()));
  }
  table.Print(console);
}

Result<int> List(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const std::size_t limit, LimitOf(parsed));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const JsonArray items,
                   api->List("/v1/audit/entries",
                             {{"lease", parsed.Value("lease").value_or("")},
                              {"action", parsed.Value("action").value_or("")},
                              {"order", parsed.Has("newest") ? "newest" : "oldest"}},
                             limit));
  ShowItems(invocation, items);
  return 0;
}

Result<int> Show(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::int64_t index,
                   ParseCount(invocation.parsed.Argument(0), 0, std::int64_t{1} << 53U));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json item,
                   api->Get(Target("/v1/audit/entries", std::to_string(index), "")));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(item);
    return 0;
  }
  FactList facts;
  facts.Add("Index", TextOf(item, "index"));
  facts.Add("Proven", BoolOf(item, "proven") ? "yes, under a signed checkpoint" : "not yet");
  const Json* entry = Field(item, "entry");
  if (entry != nullptr && entry->is_object()) {
    for (const auto& member : entry->get_object()) {
      const std::string name(member.key().data(), member.key().size());
      const bool nested = member.value().is_object() || member.value().is_array();
      const std::string text = nested ? CanonicalJson(member.value()) : TextOf(*entry, name);
      facts.Add(name, text == "{}" || text == "[]" ? "" : text);
    }
  }
  facts.Print(console);
  return 0;
}

// Prints entries as they come: a line each, so that a program can read them as they come too.
class Tail {
 public:
  Tail(Invocation& invocation, Api& api, Presses& presses)
      : invocation_(invocation), api_(api), presses_(presses) {}

  Status Newest(std::size_t count) {
    RINGFENCE_ASSIGN(JsonArray items, api_.List("/v1/audit/entries", {{"order", "newest"}}, count));
    std::reverse(items.begin(), items.end());
    Print(items, true);
    return {};
  }

  Result<int> Follow() {
    Retry retry(invocation_.console, std::chrono::seconds(60), Milliseconds(250));
    while (invocation_.console.out()) {
      const auto page = api_.Get(Target(
          "/v1/audit/entries",
          {{"order", "oldest"}, {"cursor", cursor_}, {"wait_ms", "20000"}, {"limit", "1000"}}));
      if (presses_.count() > 0) {
        return 0;  // leaving a tail is its normal end
      }
      if (!page.has_value()) {
        if (Retry::Helps(page.error()) && retry.Again(page.error(), presses_, 0)) {
          continue;
        }
        return page.error();
      }
      retry.Worked();
      const bool any = Print(ArrayOf(*page, "items"), false);
      const std::string next = TextOf(*page, "next_cursor");
      if (!next.empty()) {
        cursor_ = next;
      } else if (!any) {
        presses_.Sleep(Milliseconds(1000), 0);  // a server that did not wait
      }
    }
    return kExitBrokenPipe;
  }

 private:
  bool Print(const JsonArray& items, bool header) {
    Console& console = invocation_.console;
    Table table(kHeader);
    bool any = false;
    for (const Json& item : items) {
      const std::int64_t index = IntOf(item, "index").value_or(-1);
      if (index <= last_) {
        continue;
      }
      any = true;
      last_ = index;
      cursor_ = std::to_string(index);
      if (console.format() == Format::kJson) {
        console.out() << CanonicalJson(item) << '\n';
      } else if (console.format() == Format::kYaml) {
        console.out() << "---\n";
        console.Show(item);
      } else if (header) {
        table.Add(Row(item, invocation_.clock.Now()));
      } else {
        PrintLine(item);
      }
    }
    if (!table.empty()) {
      table.Print(console);
    }
    console.out() << std::flush;
    return any;
  }

  void PrintLine(const Json& item) {
    Table line(std::vector<std::string>(kHeader.size()));
    const Json* entry = Field(item, "entry");
    std::vector<std::string> row = Row(item, invocation_.clock.Now());
    row[1] = entry == nullptr ? "" : TextOf(*entry, "time");
    line.Add(std::move(row));
    line.PrintRows(invocation_.console);
  }

  Invocation& invocation_;
  Api& api_;
  Presses& presses_;
  std::int64_t last_ = -1;
  std::string cursor_;
};

Result<int> TailHandler(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::size_t count, LimitOf(invocation.parsed, 10));
  RINGFENCE_ASSIGN(Connection connection, Connect(invocation.settings));
  Presses presses;
  RINGFENCE_ASSIGN(const auto interrupts, os::Interrupts::Catch(1, [&](int) { presses.Press(); }));
  RINGFENCE_ASSIGN(const auto api, Api::Create(std::move(connection)));
  presses.OnPress([&api] { api->Cancel(); });
  Tail tail(invocation, *api, presses);
  auto run = [&]() -> Result<int> {
    RINGFENCE_TRY(tail.Newest(count));
    return invocation.parsed.Has("follow") ? tail.Follow() : Result<int>(0);
  };
  auto status = run();
  presses.OnPress(nullptr);
  return status;
}

Result<int> Prove(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::int64_t index,
                   ParseCount(invocation.parsed.Argument(0), 0, std::int64_t{1} << 53U));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json proof,
                   api->Get(Target("/v1/audit/entries", std::to_string(index), "/proof")));
  if (const auto path = invocation.parsed.Value("out")) {
    RINGFENCE_TRY(os::WriteFile(*path, AsBytes(PrettyJson(proof) + "\n")));
    invocation.console.Note("proof of entry " + std::to_string(index) + " is in " + *path +
                            "; `ringfence audit verify --proof " + *path + "` checks it offline");
    return 0;
  }
  if (invocation.console.table()) {
    invocation.console.out() << PrettyJson(proof) << '\n';  // a proof has one form
  } else {
    invocation.console.Show(proof);
  }
  return 0;
}

Result<int> Checkpoint(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const std::string note, api->Raw("/v1/audit/checkpoint"));
  if (invocation.console.table()) {
    invocation.console.out() << note;  // to be kept byte for byte
  } else {
    invocation.console.Show(JsonObject{{"checkpoint", note}});
  }
  return 0;
}

Result<int> Keys(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json keys, api->Get("/v1/audit/keys"));
  if (invocation.parsed.Has("log")) {
    invocation.console.out() << TextOf(keys, "log") << '\n';
    return 0;
  }
  if (!invocation.console.table()) {
    invocation.console.Show(keys);
    return 0;
  }
  FactList facts;
  facts.Add("Log", TextOf(keys, "log"));
  for (const Json& witness : ArrayOf(keys, "witnesses")) {
    facts.Add("Witness", witness.is_string() ? std::string(witness.get_string()) : "");
  }
  facts.Print(invocation.console);
  return 0;
}

}  // namespace

CommandTable AuditCommands() {
  const ArgumentSpec entry{.name = "INDEX", .help = "an entry's number, from 0"};
  return {
      {.path = "audit list",
       .group = Group::kEvidence,
       .summary = "List audit entries, oldest first.",
       .options = {{.name = "lease",
                    .value = "LEASE",
                    .help = "only of this lease",
                    .completes = Completes::kLease},
                   {.name = "action", .value = "ACTION", .help = "only this, as lease.request"},
                   {.name = "newest", .help = "newest first"},
                   LimitOption()},
       .examples = {{"ringfence audit list --lease lease-7k3m9q2x4abc", "each step of a lease"},
                    {"ringfence audit list --action token.create --newest", "who made tokens"}},
       .handler = List},
      {.path = "audit show",
       .group = Group::kEvidence,
       .summary = "Show one audit entry.",
       .arguments = {entry},
       .examples = {{"ringfence audit show 17", "who, what, decided how and why"}},
       .handler = Show},
      {.path = "audit tail",
       .group = Group::kEvidence,
       .summary = "Show the newest audit entries.",
       .details = "With -o json each entry is one line.",
       .options = {{.name = "follow", .letter = 'f', .help = "go on as entries come"},
                   {.name = "limit",
                    .letter = 'n',
                    .value = "N",
                    .help = "begin with the newest N (default 10)"}},
       .examples = {{"ringfence audit tail -f", "watch what happens"}},
       .handler = TailHandler},
      {.path = "audit prove",
       .group = Group::kEvidence,
       .summary = "Get a proof that an entry is in the log, to be checked offline.",
       .options = {{.name = "out",
                    .value = "FILE",
                    .help = "write it there",
                    .completes = Completes::kFile}},
       .arguments = {entry},
       .examples = {{"ringfence audit prove 17 --out proof.json", "for an auditor"}},
       .handler = Prove},
      {.path = "audit checkpoint",
       .group = Group::kEvidence,
       .summary = "Print the newest signed checkpoint, with its cosignatures.",
       .details = "Keep it elsewhere: `audit verify --checkpoint` shows later that nothing that\n"
                  "it covers was changed or taken back.",
       .examples = {{"ringfence audit checkpoint > checkpoint-today", "keep one"}},
       .handler = Checkpoint},
      {.path = "audit keys",
       .group = Group::kEvidence,
       .summary = "Show the keys that verify checkpoints and cosignatures.",
       .options = {{.name = "log", .help = "the log's alone, as other commands take it"}},
       .examples = {{"ringfence audit keys", "compare them with those you have"},
                    {"ringfence audit keys --log > log.vkey", "for `evidence verify --log-key`"}},
       .handler = Keys},
  };
}

}  // namespace ringfence::cli
