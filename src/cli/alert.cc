// `ringfence alert list|show|ack|silence|watch`

#include <map>

#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/follow.h"
#include "cli/human.h"
#include "cli/presses.h"
#include "cli/retry.h"
#include "cli/settings.h"
#include "cli/text.h"
#include "os/interrupts.h"

namespace ringfence::cli {
namespace {

const std::vector<std::string> kHeader = {"ALERT", "SEVERITY", "STATUS", "COUNT",
                                          "LAST",  "TENANT",   "ABOUT",  "TITLE"};

// Whom it is about, the most particular first.
std::string AboutOf(const Json& alert) {
  for (const std::string_view name : {"lease", "node", "principal", "address"}) {
    if (std::string text = TextOf(alert, name); !text.empty()) {
      return text;
    }
  }
  return "";
}

std::string StatusOf(const Json& alert) {
  std::string text = TextOf(alert, "status");
  if (const std::string owner = TextOf(alert, "owner"); !owner.empty()) {
    text += " by " + owner;
  }
  return text;
}

std::vector<std::string> RowOf(const Json& alert, Timestamp now) {
  return {TextOf(alert, "id"),
          TextOf(alert, "severity"),
          StatusOf(alert),
          TextOf(alert, "count"),
          RelativeTime(TextOf(alert, "last"), now),
          TextOf(alert, "tenant"),
          AboutOf(alert),
          TextOf(alert, "title")};
}

QueryItems QueryOf(const Parsed& parsed) {
  return {{"status", parsed.Has("all") ? "" : parsed.Value("status").value_or("open")},
          {"severity", parsed.Value("severity").value_or("")},
          {"tenant", parsed.Value("tenant").value_or("")}};
}

Result<int> List(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const std::size_t limit, LimitOf(parsed));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const JsonArray items, api->List("/v1/alerts", QueryOf(parsed), limit));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(items);
    return 0;
  }
  if (items.empty()) {
    console.Note("no such alerts; --all shows those that were seen to");
    return 0;
  }
  Table table(kHeader);
  for (const Json& item : items) {
    table.Add(RowOf(item, invocation.clock.Now()));
  }
  table.Print(console);
  return 0;
}

// One event in one line.
std::string LineOf(const Json& event) {
  const auto inside = [&](std::string_view object, std::string_view name) {
    const Json* const found = Field(event, object);
    return found == nullptr ? std::string() : TextOf(*found, name);
  };
  std::string text = TextOf(event, "time_dt") + "  " + inside("metadata", "log_name") + " " +
                     TextOf(event, "activity_name");
  constexpr std::pair<std::string_view, std::string_view> kShown[] = {
      {"tenant", "path"},     {"lease", "id"},        {"node", "name"},
      {"src_endpoint", "ip"}, {"dst_endpoint", "ip"}, {"process", "cmd_line"}};
  for (const auto& [object, name] : kShown) {
    if (const std::string value = inside(object, name); !value.empty()) {
      text += "  " + std::string(object) + "=" + value;
    }
  }
  const std::string message = TextOf(event, "message");
  return message.empty() ? text : text + "  " + message;
}

void PrintLines(Console& console, std::string_view title, const Json& alert,
                std::string_view name) {
  const JsonArray& items = ArrayOf(alert, name);
  if (items.empty()) {
    return;
  }
  console.out() << console.Bold(title) << '\n';
  for (const Json& item : items) {
    const std::string text = item.is_string() ? std::string(item.get_string()) : LineOf(item);
    console.out() << "  " << Safe(text) << '\n';
  }
}

Result<int> Show(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json alert,
                   api->Get(Target("/v1/alerts", invocation.parsed.Argument(0), "")));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(alert);
    return 0;
  }
  const Timestamp now = invocation.clock.Now();
  const auto when = [&](std::string_view name) {
    const std::string time = TextOf(alert, name);
    return time.empty() ? "" : RelativeTime(time, now) + " (" + time + ")";
  };
  FactList facts;
  facts.Add("Alert", TextOf(alert, "id"));
  facts.Add("Title", TextOf(alert, "title"));
  facts.Add("Severity", TextOf(alert, "severity"));
  facts.Add("Status", StatusOf(alert));
  facts.Add("Until", when("until"));
  facts.Add("Note", TextOf(alert, "note"));
  facts.Add("Matches", TextOf(alert, "count"));
  facts.Add("First", when("first"));
  facts.Add("Last", when("last"));
  facts.Add("Tenant", TextOf(alert, "tenant"));
  facts.Add("Principal", TextOf(alert, "principal"));
  facts.Add("Address", TextOf(alert, "address"));
  facts.Add("Node", TextOf(alert, "node"));
  facts.Add("GPUs", JoinOf(alert, "gpus"));
  facts.Add("Lease", TextOf(alert, "lease"));
  if (const Json* const lease = Field(alert, "on_lease")) {
    facts.Add("On it", TextOf(*lease, "principal") + " (" + TextOf(*lease, "tenant") + "), " +
                           TextOf(*lease, "state"));
    facts.Add("Command", JoinOf(*lease, "command", " "));
  }
  facts.Add("Rule", TextOf(alert, "rule"));
  facts.Add("Tags", JoinOf(alert, "tags"));
  facts.Add("Why", TextOf(alert, "description"));
  facts.Print(console);
  PrintLines(console, "Events:", alert, "events");
  PrintLines(console, "Around it:", alert, "around");
  PrintLines(console, "What to do next:", alert, "next_steps");
  return 0;
}

Result<int> Change(Invocation& invocation, const std::string& what, JsonObject request) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  const Json body(std::move(request));
  RINGFENCE_ASSIGN(
      const Json alert,
      api->Post(Target("/v1/alerts", invocation.parsed.Argument(0), "/" + what), &body));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(alert);
    return 0;
  }
  const std::string until = TextOf(alert, "until");
  console.Note(TextOf(alert, "id") + " is " + StatusOf(alert) +
               (until.empty() ? "" : " until " + until));
  return 0;
}

Result<int> Ack(Invocation& invocation) {
  return Change(invocation, "ack",
                JsonObject{{"note", invocation.parsed.Value("note").value_or("")}});
}

Result<int> Silence(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const auto note = parsed.Value("note");
  if (!note || note->empty()) {
    return Error{Code::kInvalidArgument, "--note is missing", "say why it may be silent", {}};
  }
  const auto span = ParseDuration(parsed.Value("for").value_or("8h"));
  if (!span.has_value()) {
    return Prefix("--for", span.error());
  }
  return Change(invocation, "silence",
                JsonObject{{"for_ms", static_cast<std::int64_t>(span->count())}, {"note", *note}});
}

// Prints each alert when it opens or changes: the first look shows all that are there.
class Watcher {
 public:
  Watcher(Invocation& invocation, Api& api, Presses& presses)
      : invocation_(invocation), api_(api), presses_(presses) {}

  Result<int> Run() {
    Retry retry(invocation_.console, std::chrono::seconds(60), Milliseconds(250));
    std::string version;
    bool header = true;
    while (invocation_.console.out()) {
      QueryItems query = QueryOf(invocation_.parsed);
      query.emplace_back("version", version);
      query.emplace_back("wait_ms", version.empty() ? "" : "20000");
      const auto page = api_.Get(Target("/v1/alerts", query));
      if (presses_.count() > 0) {
        return 0;  // leaving is its normal end
      }
      if (!page.has_value()) {
        if (Retry::Helps(page.error()) && retry.Again(page.error(), presses_, 0)) {
          continue;
        }
        return page.error();
      }
      retry.Worked();
      version = TextOf(*page, "version");
      Print(ArrayOf(*page, "items"), header);
      header = false;
    }
    return kExitBrokenPipe;
  }

 private:
  void Print(const JsonArray& items, bool header) {
    Console& console = invocation_.console;
    Table table(header ? kHeader : std::vector<std::string>(kHeader.size()));
    std::map<std::string, std::string> now;
    for (auto item = items.rbegin(); item != items.rend(); ++item) {  // the newest last
      const std::string id = TextOf(*item, "id");
      const std::string state = TextOf(*item, "count") + StatusOf(*item);
      now[id] = state;
      if (const auto seen = seen_.find(id); seen != seen_.end() && seen->second == state) {
        continue;
      }
      if (console.format() == Format::kJson) {
        console.out() << CanonicalJson(*item) << '\n';
      } else if (console.format() == Format::kYaml) {
        console.out() << "---\n";
        console.Show(*item);
      } else {
        table.Add(RowOf(*item, invocation_.clock.Now()));
      }
    }
    seen_ = std::move(now);
    if (!table.empty()) {
      header ? table.Print(console) : table.PrintRows(console);
    }
    console.out() << std::flush;
  }

  Invocation& invocation_;
  Api& api_;
  Presses& presses_;
  std::map<std::string, std::string> seen_;
};

Result<int> Watch(Invocation& invocation) {
  RINGFENCE_ASSIGN(Connection connection, Connect(invocation.settings));
  Presses presses;
  RINGFENCE_ASSIGN(const auto interrupts, os::Interrupts::Catch(1, [&](int) { presses.Press(); }));
  RINGFENCE_ASSIGN(const auto api, Api::Create(std::move(connection)));
  presses.OnPress([&api] { api->Cancel(); });
  auto status = Watcher(invocation, *api, presses).Run();
  presses.OnPress(nullptr);
  return status;
}

std::vector<OptionSpec> FilterOptions() {
  return {{.name = "status",
           .value = "STATUS",
           .help = "only these (default open)",
           .completes = Completes::kWords,
           .words = "open acked silenced"},
          {.name = "all", .help = "whatever their status"},
          {.name = "severity",
           .value = "LEVEL",
           .help = "at least this",
           .completes = Completes::kWords,
           .words = "informational low medium high critical"},
          {.name = "tenant",
           .value = "TENANT",
           .help = "only this tenant and below",
           .completes = Completes::kTenant}};
}

}  // namespace

CommandTable AlertCommands() {
  const ArgumentSpec alert{.name = "ALERT", .help = "an alert's id"};
  std::vector<OptionSpec> list = FilterOptions();
  list.push_back(LimitOption());
  return {
      {.path = "alert list",
       .group = Group::kEvidence,
       .summary = "List alerts, newest first; those that nobody has seen to unless asked.",
       .options = list,
       .examples = {{"ringfence alert list", "what is open"},
                    {"ringfence alert list --all --severity high -o json", "for a program"}},
       .handler = List},
      {.path = "alert show",
       .group = Group::kEvidence,
       .summary = "Show an alert: its events, whose lease it was, what else happened, what to do.",
       .arguments = {alert},
       .examples = {{"ringfence alert show alert-7k3m9q2x4abc", "all that is known"}},
       .handler = Show},
      {.path = "alert ack",
       .group = Group::kEvidence,
       .summary = "Take an alert: you are its owner, on record.",
       .options = {{.name = "note", .value = "TEXT", .help = "what you will do"}},
       .arguments = {alert},
       .examples = {{"ringfence alert ack alert-7k3m9q2x4abc --note \"looking\"", "take it"}},
       .handler = Ack},
      {.path = "alert silence",
       .group = Group::kEvidence,
       .summary = "Silence an alert for a time: further matches only count.",
       .details = "It holds for this rule and whom the alert is about, nothing else, and ends by\n"
                  "itself: the next match then is a new alert.",
       .options = {{.name = "for", .value = "TIME", .help = "how long (default 8h, at most 30d)"},
                   {.name = "note", .value = "TEXT", .help = "why; must be given"}},
       .arguments = {alert},
       .examples = {{"ringfence alert silence alert-7k3m9q2x4abc --for 2h --note \"load test\"",
                     "until the test is over"}},
       .handler = Silence},
      {.path = "alert watch",
       .group = Group::kEvidence,
       .summary = "Show alerts as they open and change.",
       .details = "With -o json each change is one line.",
       .options = FilterOptions(),
       .examples = {{"ringfence alert watch", "on a second screen"},
                    {"ringfence alert watch --all -o json", "for a program"}},
       .handler = Watch},
  };
}

}  // namespace ringfence::cli
