// `ringfence access ...`: who holds what, what of it is used, and what could be taken away.

#include <algorithm>

#include "base/code.h"
#include "cli/access_suggest.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/policy_folder.h"
#include "cli/settings.h"
#include "cli/text.h"
#include "policy/plan.h"
#include "policy/policy.h"

namespace ringfence::cli {
namespace {

constexpr std::int64_t kDaysMax = 3650;
constexpr std::int64_t kDaysUsual = 90;
constexpr Milliseconds kDay = std::chrono::hours(24);

struct Access {
  JsonArray bindings;
  Json first;  // the first page, with what is not of one binding
};

Result<Access> Fetch(Api& api, const std::string& principal) {
  Access access;
  RINGFENCE_ASSIGN(access.first,
                   api.Get(Target("/v1/access", {{"principal", principal}, {"limit", "1"}})));
  RINGFENCE_ASSIGN(access.bindings, api.List("/v1/access", {{"principal", principal}}, kListMax));
  return access;
}

std::string WhereOf(const Json& binding) {
  return TextOf(binding, "file") + ":" + TextOf(binding, "line");
}

std::string GrantedOf(const Json& binding, Timestamp now) {
  const Json* const granted = Field(binding, "granted");
  if (granted == nullptr) {
    return "";
  }
  const std::string by = TextOf(*granted, "by");
  return "version " + TextOf(*granted, "version") +
         (by.empty() ? "" : ", " + by + ", " + RelativeTime(TextOf(*granted, "time"), now));
}

Result<int> List(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Access access, Fetch(*api, invocation.parsed.Argument(0)));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(access.bindings);
    return 0;
  }
  const Timestamp now = invocation.clock.Now();
  Table table({"PRINCIPAL", "ROLE", "AT", "WRITTEN AT", "GRANTED", "LAST USED", "USES"});
  for (const Json& binding : access.bindings) {
    const std::string last = TextOf(binding, "last_used");
    table.Add({TextOf(binding, "principal"), TextOf(binding, "role"), TextOf(binding, "tenant"),
               WhereOf(binding), GrantedOf(binding, now),
               last.empty() ? "never" : RelativeTime(last, now), TextOf(binding, "uses")});
  }
  table.Print(console);
  if (const std::string since = TextOf(access.first, "since"); !since.empty()) {
    console.Note("uses are recorded since " + since);
  }
  return 0;
}

std::set<std::string> UsedActions(const Json& binding, Timestamp since) {
  std::set<std::string> used;
  for (const Json& use : ArrayOf(binding, "actions")) {
    const auto last = ParseTime(TextOf(use, "last"));
    if (last.has_value() && *last >= since) {
      used.insert(TextOf(use, "action"));
    }
  }
  return used;
}

Roles RolesOf(const Json& first) {
  Roles roles;
  const Json* const json = Field(first, "roles");
  if (const auto* const object = json == nullptr ? nullptr : json->if_object()) {
    for (const auto& member : *object) {
      std::set<std::string>& allows = roles[std::string(member.key())];
      for (const Json& action : ArrayOf(*json, member.key())) {
        if (const auto* const text = action.if_string()) {
          allows.emplace(text->data(), text->size());
        }
      }
    }
  }
  return roles;
}

std::string JoinAll(const std::set<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : std::string(between)) + word;
  }
  return text;
}

// One line of the report; what a spreadsheet would take for a formula is made harmless.
std::string CsvCell(std::string text) {
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos) {
    text.insert(0, "'");
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  }
  return quoted + "\"";
}

std::string MarkdownCell(const std::string& text) {
  std::string safe;
  for (const char c : Safe(text)) {
    safe += c == '|' ? std::string("\\|") : std::string(1, c);
  }
  return safe;
}

std::vector<std::vector<std::string>> ReportRows(const Access& access) {
  const Roles roles = RolesOf(access.first);
  std::vector<std::vector<std::string>> rows;
  for (const Json& binding : access.bindings) {
    const std::set<std::string> used = UsedActions(binding, Timestamp{});
    std::set<std::string> unused;
    if (const auto role = roles.find(TextOf(binding, "role")); role != roles.end()) {
      std::set_difference(role->second.begin(), role->second.end(), used.begin(), used.end(),
                          std::inserter(unused, unused.end()));
    }
    const Json* const granted = Field(binding, "granted");
    const auto of_grant = [&](std::string_view name) {
      return granted == nullptr ? std::string() : TextOf(*granted, name);
    };
    rows.push_back({TextOf(binding, "principal"), TextOf(binding, "kind"), TextOf(binding, "role"),
                    TextOf(binding, "tenant"), WhereOf(binding), of_grant("version"),
                    of_grant("by"), of_grant("time"), TextOf(binding, "last_used"),
                    TextOf(binding, "uses"), JoinAll(used, " "), JoinAll(unused, " ")});
  }
  return rows;
}

Result<int> Report(Invocation& invocation) {
  const std::string format =
      invocation.parsed.Value("format").value_or(invocation.console.table() ? "markdown" : "json");
  if (format != "csv" && format != "markdown" && format != "json") {
    return Error{Code::kInvalidArgument, "--format must be csv, markdown or json"};
  }
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Access access, Fetch(*api, ""));
  std::ostream& out = invocation.console.out();
  if (format == "json") {
    out << PrettyJson(JsonObject{{"policy_version", IntOf(access.first, "version").value_or(0)},
                                 {"policy", TextOf(access.first, "digest")},
                                 {"made", FormatTime(invocation.clock.Now())},
                                 {"uses_since", TextOf(access.first, "since")},
                                 {"bindings", access.bindings}});
    return 0;
  }
  const std::vector<std::string> header = {"principal", "kind",    "role",       "tenant",
                                           "source",    "version", "granted_by", "granted",
                                           "last_used", "uses",    "used",       "unused"};
  std::vector<std::vector<std::string>> rows = ReportRows(access);
  const bool csv = format == "csv";
  if (!csv) {
    out << "# Access, " << FormatTime(invocation.clock.Now()) << "\n\nPolicy version "
        << Safe(TextOf(access.first, "version")) << ", digest `"
        << Safe(TextOf(access.first, "digest")) << "`; uses recorded since "
        << Safe(TextOf(access.first, "since")) << ".\n\n";
  }
  rows.insert(rows.begin(), header);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string line;
    for (const std::string& cell : rows[i]) {
      line += csv ? (line.empty() ? "" : ",") + CsvCell(cell)
                  : (line.empty() ? "| " : " ") + MarkdownCell(cell) + " |";
    }
    out << line << (csv ? "\r\n" : "\n");
    if (i == 0 && !csv) {
      for (std::size_t column = 0; column < header.size(); ++column) {
        out << (column == 0 ? "|---|" : "---|");
      }
      out << '\n';
    }
  }
  return 0;
}

Result<Files> FilesInForce(Api& api, const Json& first) {
  RINGFENCE_ASSIGN(const Json version,
                   api.Get(Target("/v1/policy/versions", TextOf(first, "version"), "")));
  RINGFENCE_ASSIGN(Files files, FilesOfVersion(version));
  if (TextOf(version, "digest") != TextOf(first, "digest")) {
    return Error{Code::kConflict, "the policy was changed meanwhile", "try again"};
  }
  return files;
}

std::vector<Held> HeldOf(const Access& access, Timestamp since) {
  std::vector<Held> held;
  for (const Json& binding : access.bindings) {
    held.push_back({TextOf(binding, "principal"), TextOf(binding, "role"),
                    TextOf(binding, "tenant"), TextOf(binding, "file"),
                    static_cast<int>(IntOf(binding, "line").value_or(0)),
                    UsedActions(binding, since)});
  }
  return held;
}

void Tell(Console& console, const Suggestion& one) {
  std::string text = one.held.file + ":" + std::to_string(one.held.line) + ": " +
                     one.held.principal + ", " + one.held.role + " at " + one.held.tenant + ": ";
  if (one.what == Narrowing::kRemove) {
    text += "nothing of it was used; take it away";
  } else {
    text += "only " + JoinAll(one.held.used, ", ") + " was used; role " + one.role + " is enough";
  }
  console.Note(Safe(text));
}

// A rule may forbid to the holders of a role what it does not forbid to those of another.
Status CheckNarrower(const policy::Policy& before, const policy::Policy& after) {
  for (const policy::Change& change : policy::PlanChange(before, after)) {
    using enum cedar::Outlook::Answer;
    if (change.before.answer == kNo ||
        (change.before.answer == kIf && change.after.answer == kYes)) {
      return Error{Code::kFailedPrecondition,
                   "with the narrower roles " + change.after.principal + " could " +
                       std::string(Name(change.after.action)) + " at " +
                       change.after.tenant.text() + ", which is " +
                       std::string(policy::Name(change.before.answer)) +
                       " today: a rule names the holders of a role that would be replaced",
                   "have the rule name people or tenants, or narrow those roles by hand"};
    }
  }
  return {};
}

Result<int> SuggestNarrower(Invocation& invocation) {
  std::int64_t days = kDaysUsual;
  if (const auto text = invocation.parsed.Value("days")) {
    auto number = ParseCount(*text, 1, kDaysMax);
    if (!number.has_value()) {
      return Prefix("--days", number.error());
    }
    days = *number;
  }
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Access access, Fetch(*api, ""));
  const Timestamp since = invocation.clock.Now() - days * kDay;
  Console& console = invocation.console;
  const auto recorded = ParseTime(TextOf(access.first, "since"));
  if (!recorded.has_value() || *recorded > since) {
    console.Warn("uses are recorded since " +
                 (recorded.has_value() ? FormatTime(*recorded) : std::string("just now")) +
                 ", which is less than " + Count(static_cast<std::uint64_t>(days), "day") +
                 ": what is rarely done looks unused");
  }
  const std::vector<Suggestion> suggestions = Suggest(HeldOf(access, since), RolesOf(access.first));
  RINGFENCE_ASSIGN(const Files files, FilesInForce(*api, access.first));
  RINGFENCE_ASSIGN(const Files after, Apply(files, suggestions));
  // What is suggested must be a policy.
  const auto narrowed = policy::Policy::Parse(after);
  if (!narrowed.has_value()) {
    return Prefix("the narrowed policy would have errors", narrowed.error());
  }
  RINGFENCE_ASSIGN(const auto in_force, policy::Policy::Parse(files));
  RINGFENCE_TRY(CheckNarrower(*in_force, **narrowed));
  if (!console.table()) {
    JsonArray items;
    for (const Suggestion& one : suggestions) {
      JsonArray unneeded(one.unneeded.begin(), one.unneeded.end());
      JsonArray used(one.held.used.begin(), one.held.used.end());
      items.emplace_back(JsonObject{{"principal", one.held.principal},
                                    {"role", one.held.role},
                                    {"tenant", one.held.tenant},
                                    {"file", one.held.file},
                                    {"line", one.held.line},
                                    {"used", std::move(used)},
                                    {"unneeded", std::move(unneeded)},
                                    {"instead", one.role}});
    }
    console.Show(JsonObject{
        {"days", days}, {"suggestions", std::move(items)}, {"patch", Diff(files, after)}});
    return 0;
  }
  if (suggestions.empty()) {
    console.Note("nothing to narrow: every permission was used in " +
                 Count(static_cast<std::uint64_t>(days), "day"));
    return 0;
  }
  for (const Suggestion& one : suggestions) {
    Tell(console, one);
  }
  console.out() << SafeLines(Diff(files, after));
  return 0;
}

}  // namespace

CommandTable AccessCommands() {
  return {
      {.path = "access list",
       .group = Group::kAccess,
       .summary = "List who holds which role where, who granted it, and when it was last used.",
       .arguments = {{.name = "PRINCIPAL", .help = "only of this one", .required = false}},
       .examples = {{"ringfence access list", "of everybody"},
                    {"ringfence access list alice@acme.example", "of one"}},
       .handler = List},
      {.path = "access suggest",
       .group = Group::kAccess,
       .summary = "Suggest narrower roles from what was used, as a patch of the policy folder.",
       .details =
           "A binding of which nothing was used goes; one of which a part was used gets a role "
           "that allows only that part. The last administrator stays. Nothing is changed: look "
           "at the patch, apply it to the folder, and `ringfence policy apply` that.",
       .options = {{.name = "days",
                    .value = "N",
                    .help = "what was used in the last N days counts (default 90)"}},
       .examples = {{"ringfence access suggest --days 30 | patch -p1 -d policy/",
                     "into the folder, then review it as any change"}},
       .handler = SuggestNarrower},
      {.path = "access report",
       .group = Group::kAccess,
       .summary = "Write down who holds what and what of it is used, for a review.",
       .options = {{.name = "format",
                    .value = "FORMAT",
                    .help = "csv, markdown or json (default markdown)",
                    .completes = Completes::kWords,
                    .words = "csv markdown json"}},
       .examples = {{"ringfence access report --format csv > access.csv", "for a spreadsheet"}},
       .handler = Report},
  };
}

}  // namespace ringfence::cli
