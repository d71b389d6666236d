// `ringfence event tail|search|count`

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
#include "os/interrupts.h"

namespace ringfence::cli {
namespace {

const std::vector<std::string> kHeader = {"TIME", "LOG",    "ACTIVITY", "WHO",    "TENANT",
                                          "NODE", "STATUS", "LEASE",    "MESSAGE"};

std::string Inside(const Json& event, std::string_view object, std::string_view name) {
  const Json* const found = Field(event, object);
  return found == nullptr ? "" : TextOf(*found, name);
}

std::string WhoOf(const Json& event) {
  const Json* const actor = Field(event, "actor");
  const std::string name = actor == nullptr ? "" : Inside(*actor, "user", "name");
  return name.empty() ? Inside(event, "src_endpoint", "ip") : name;
}

// What is particular about it, in a few words.
std::string MessageOf(const Json& event) {
  std::string text = TextOf(event, "message");
  if (text.empty()) {
    text = TextOf(event, "status_detail");
  }
  if (const std::string to = Inside(event, "dst_endpoint", "ip"); !to.empty()) {
    text = "to " + to + " port " + Inside(event, "dst_endpoint", "port");
  } else if (const std::string line = Inside(event, "process", "cmd_line"); !line.empty()) {
    text = line;
  }
  constexpr std::size_t kShown = 60;
  return text.size() > kShown ? text.substr(0, kShown) + "..." : text;
}

std::vector<std::string> RowOf(const Json& event) {
  return {TextOf(event, "time_dt"),
          Inside(event, "metadata", "log_name"),
          TextOf(event, "activity_name"),
          WhoOf(event),
          Inside(event, "tenant", "path"),
          Inside(event, "node", "name"),
          TextOf(event, "status"),
          Inside(event, "lease", "id"),
          MessageOf(event)};
}

// "1h": so long ago; or a time.
Result<std::string> TimeText(const Parsed& parsed, std::string_view option, Timestamp now) {
  const auto text = parsed.Value(option);
  if (!text) {
    return std::string();
  }
  if (const auto span = ParseDuration(*text); span.has_value()) {
    return FormatTime(now - *span);
  }
  if (const auto time = ParseTime(*text); time.has_value()) {
    return FormatTime(*time);
  }
  return Error{Code::kInvalidArgument,
               "--" + std::string(option) + ": \"" + *text + "\" is neither a time nor a span",
               "write 90s, 15m, 2h, 7d (so long ago) or 2026-11-16T08:00:00Z"};
}

Result<QueryItems> QueryOf(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const Timestamp now = invocation.clock.Now();
  QueryItems query;
  for (const std::string_view name : {"class", "log", "tenant", "lease", "node", "gpu"}) {
    query.emplace_back(name, parsed.Value(name).value_or(""));
  }
  for (const std::string_view name : {"since", "until"}) {
    RINGFENCE_ASSIGN(std::string time, TimeText(parsed, name, now));
    query.emplace_back(name, std::move(time));
  }
  for (const std::string& field : parsed.arguments) {
    if (field.find('=') == std::string::npos) {
      return Error{Code::kInvalidArgument, "\"" + field + "\" is no FIELD=VALUE",
                   "for example actor.user.name=alice@acme.example or activity_name=started"};
    }
    query.emplace_back("field", field);
  }
  return query;
}

// A line each, so that a program can read them as they come.
void PrintEvents(Console& console, const JsonArray& items, bool header) {
  Table table(header ? kHeader : std::vector<std::string>(kHeader.size()));
  for (const Json& item : items) {
    if (console.format() == Format::kJson) {
      console.out() << CanonicalJson(item) << '\n';
    } else if (console.format() == Format::kYaml) {
      console.out() << "---\n";
      console.Show(item);
    } else {
      table.Add(RowOf(item));
    }
  }
  if (!table.empty()) {
    header ? table.Print(console) : table.PrintRows(console);
  }
  console.out() << std::flush;
}

Result<JsonArray> Newest(Api& api, QueryItems query, std::size_t limit) {
  query.emplace_back("order", "newest");
  RINGFENCE_ASSIGN(JsonArray items, api.List("/v1/events", std::move(query), limit));
  std::reverse(items.begin(), items.end());
  return items;
}

Result<int> Search(Invocation& invocation) {
  RINGFENCE_ASSIGN(const QueryItems query, QueryOf(invocation));
  RINGFENCE_ASSIGN(const std::size_t limit, LimitOf(invocation.parsed));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const JsonArray items, Newest(*api, query, limit));
  if (items.empty() && invocation.console.table()) {
    invocation.console.Note("no such events");
    return 0;
  }
  PrintEvents(invocation.console, items, true);
  return 0;
}

Result<int> CountHandler(Invocation& invocation) {
  RINGFENCE_ASSIGN(QueryItems query, QueryOf(invocation));
  const std::string by = invocation.parsed.Value("by").value_or("");
  query.emplace_back("by", by);
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json answer, api->Get(Target("/v1/events/count", query)));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(answer);
    return 0;
  }
  if (by.empty()) {
    console.out() << TextOf(answer, "count") << '\n';
  } else {
    std::vector<std::pair<std::int64_t, std::string>> groups;
    for (const Json& group : ArrayOf(answer, "groups")) {
      groups.emplace_back(IntOf(group, "count").value_or(0), TextOf(group, "value"));
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    Table table({"COUNT", by});
    for (const auto& [count, value] : groups) {
      table.Add({std::to_string(count), value.empty() ? "-" : value});
    }
    table.Print(console);
  }
  if (!BoolOf(answer, "complete")) {
    console.Warn("there are more events than one count looks at: narrow it with --since");
  }
  return 0;
}

Result<int> Follow(Invocation& invocation, Api& api, Presses& presses, QueryItems query,
                   std::string cursor) {
  Retry retry(invocation.console, std::chrono::seconds(60), Milliseconds(250));
  query.emplace_back("order", "oldest");
  query.emplace_back("limit", "1000");
  query.emplace_back("wait_ms", "20000");
  query.emplace_back("cursor", "");
  while (invocation.console.out()) {
    query.back().second = cursor;
    const auto page = api.Get(Target("/v1/events", query));
    if (presses.count() > 0) {
      return 0;  // leaving a tail is its normal end
    }
    if (!page.has_value()) {
      if (Retry::Helps(page.error()) && retry.Again(page.error(), presses, 0)) {
        continue;
      }
      return page.error();
    }
    retry.Worked();
    PrintEvents(invocation.console, ArrayOf(*page, "items"), false);
    cursor = TextOf(*page, "next_cursor");
  }
  return kExitBrokenPipe;
}

Result<int> TailHandler(Invocation& invocation) {
  RINGFENCE_ASSIGN(const QueryItems query, QueryOf(invocation));
  RINGFENCE_ASSIGN(const std::size_t count, LimitOf(invocation.parsed, 10));
  RINGFENCE_ASSIGN(Connection connection, Connect(invocation.settings));
  Presses presses;
  RINGFENCE_ASSIGN(const auto interrupts, os::Interrupts::Catch(1, [&](int) { presses.Press(); }));
  RINGFENCE_ASSIGN(const auto api, Api::Create(std::move(connection)));
  presses.OnPress([&api] { api->Cancel(); });
  auto run = [&]() -> Result<int> {
    RINGFENCE_ASSIGN(const JsonArray items, Newest(*api, query, count));
    PrintEvents(invocation.console, items, true);
    if (!invocation.parsed.Has("follow")) {
      return 0;
    }
    // From the last one shown; without one, from the newest of all.
    std::int64_t last = -1;
    if (!items.empty()) {
      const Json* const facts = Field(items.back(), "metadata");
      last = facts == nullptr ? -1 : IntOf(*facts, "sequence").value_or(-1);
    }
    return Follow(invocation, *api, presses, query, std::to_string(last + 1));
  };
  auto status = run();
  presses.OnPress(nullptr);
  return status;
}

std::vector<OptionSpec> FilterOptions() {
  return {
      {.name = "since", .value = "WHEN", .help = "from then on: 2h (ago), or a time"},
      {.name = "until", .value = "WHEN", .help = "before then"},
      {.name = "class", .value = "N", .help = "only this OCSF class, as 4001"},
      {.name = "log",
       .value = "NAME",
       .help = "only this log",
       .completes = Completes::kWords,
       .words =
           "api assess authentication audit box driver gpu-process inventory lease network node "
           "telemetry"},
      {.name = "tenant",
       .value = "TENANT",
       .help = "only this tenant and below",
       .completes = Completes::kTenant},
      {.name = "lease",
       .value = "LEASE",
       .help = "only this lease",
       .completes = Completes::kLease},
      {.name = "node", .value = "NODE", .help = "only this node", .completes = Completes::kNode},
      {.name = "gpu", .value = "UUID", .help = "only this GPU", .completes = Completes::kGpu}};
}

}  // namespace

CommandTable EventCommands() {
  const std::vector<ArgumentSpec> fields = {
      {.name = "FIELD=VALUE",
       .help = "only events with this value there; all of them must hold",
       .required = false,
       .repeated = true}};
  std::vector<OptionSpec> search = FilterOptions();
  search.push_back(LimitOption());
  std::vector<OptionSpec> tail = FilterOptions();
  tail.push_back({.name = "follow", .letter = 'f', .help = "go on as events come"});
  tail.push_back({.name = "limit",
                  .letter = 'n',
                  .value = "N",
                  .help = "begin with the newest N (default 10)"});
  std::vector<OptionSpec> count = FilterOptions();
  count.push_back({.name = "by", .value = "FIELD", .help = "count each value of this field"});
  return {
      {.path = "event search",
       .group = Group::kEvidence,
       .summary = "Find stored events, the newest that match, oldest of them first.",
       .details = "You see the events of tenants where you may; with -o json each is one line.\n"
                  "Fields are in docs/formats/events.md.",
       .options = search,
       .arguments = fields,
       .examples = {{"ringfence event search --lease lease-7k3m9q2x4abc", "all about a lease"},
                    {"ringfence event search --log network --since 1h", "refused flows"},
                    {"ringfence event search decision=deny actor.user.name=alice@acme.example",
                     "what was denied to whom"}},
       .handler = Search},
      {.path = "event tail",
       .group = Group::kEvidence,
       .summary = "Show the newest events.",
       .details = "With -o json each event is one line.",
       .options = tail,
       .arguments = fields,
       .examples = {{"ringfence event tail -f", "watch what happens"},
                    {"ringfence event tail -f --log authentication -o json", "for a program"}},
       .handler = TailHandler},
      {.path = "event count",
       .group = Group::kEvidence,
       .summary = "Count stored events, in all or by a field.",
       .options = count,
       .arguments = fields,
       .examples = {{"ringfence event count --since 1d --by metadata.log_name", "by log"},
                    {"ringfence event count --log network --by dst_endpoint.port", "by port"}},
       .handler = CountHandler},
  };
}

}  // namespace ringfence::cli
