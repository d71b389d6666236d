// `ringfence intel check|list|match`: known-bad indicators over files, without a server; and
// `import|remove`, and list without a file: those that a server holds its events against.

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "base/code.h"
#include "base/json.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/settings.h"
#include "cli/text.h"
#include "detect/indicator.h"
#include "detect/indicator_index.h"
#include "detect/indicator_json.h"
#include "detect/mapping.h"
#include "os/file.h"
#include "os/identity.h"

namespace ringfence::cli {
namespace {

using detect::Indicator;

constexpr std::size_t kEventsBytesMax = std::size_t{1} << 31U;
constexpr std::size_t kEventBytesMax = 10 * 1024 * 1024;
constexpr std::size_t kWarningsMax = 10;

// Beside the program in a build, in its own folder when installed.
Result<std::string> DefaultMapping() {
  RINGFENCE_ASSIGN(const std::string own, os::OwnPath());
  const std::string folder = own.substr(0, own.rfind('/'));
  const std::string built = folder + "/content/mappings/ocsf.json";
  return os::Exists(built) ? built : folder + "/../share/ringfence/mappings/ocsf.json";
}

detect::Moment Now(const Clock& clock) {
  return {std::chrono::duration_cast<std::chrono::microseconds>(clock.Now().time_since_epoch())
              .count()};
}

std::string TimeText(const std::optional<detect::Moment>& moment) {
  return moment ? FormatTime(Timestamp(Milliseconds(moment->us / 1000))) : std::string();
}

void WarnOf(Console& console, const detect::IndicatorFile& file, const std::string& path) {
  for (std::size_t i = 0; i < std::min(kWarningsMax, file.problems.size()); ++i) {
    console.Warn(file.problems[i].where + ": set aside: " + file.problems[i].what);
  }
  if (file.problem_count > kWarningsMax) {
    console.Warn(path + ": " + Count(file.problem_count, "problem") +
                 " in all; `ringfence intel check` lists them");
  }
}

Result<int> CheckFiles(Invocation& invocation) {
  Console& console = invocation.console;
  bool bad = false;
  JsonArray reports;
  for (const std::string& path : invocation.parsed.arguments) {
    RINGFENCE_ASSIGN(const detect::IndicatorFile file, detect::ReadIndicators(path));
    bad = bad || file.problem_count > 0;
    const auto expired = static_cast<std::size_t>(
        std::count_if(file.indicators.begin(), file.indicators.end(), [&](const Indicator& one) {
          return one.valid_until && *one.valid_until <= Now(invocation.clock);
        }));
    JsonArray problems;
    for (const detect::Problem& problem : file.problems) {
      problems.push_back(JsonObject{{"where", problem.where}, {"what", problem.what}});
      if (console.table()) {
        console.out() << console.Bad(console.Cross()) << ' ' << Safe(problem.where) << ": "
                      << Safe(problem.what) << '\n';
      }
    }
    if (console.table()) {
      console.out() << (file.problem_count == 0 ? console.Good(console.Tick())
                                                : console.Bad(console.Cross()))
                    << ' ' << Safe(path) << ": " << Count(file.indicators.size(), "indicator")
                    << ", " << expired << " expired, " << file.skipped << " passed over, "
                    << Count(file.techniques.size(), "technique") << ", "
                    << Count(file.problem_count, "problem") << '\n';
    }
    reports.push_back(JsonObject{{"file", path},
                                 {"indicators", file.indicators.size()},
                                 {"expired", expired},
                                 {"skipped", file.skipped},
                                 {"techniques", file.techniques.size()},
                                 {"problem_count", file.problem_count},
                                 {"problems", std::move(problems)}});
  }
  if (!console.table()) {
    console.Show(reports);
  }
  return bad ? kExitFindings : kExitOk;
}

Result<int> ListFeeds(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const JsonArray feeds, api->List("/v1/intel/feeds", {}, kListMax));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(feeds);
    return kExitOk;
  }
  if (feeds.empty()) {
    console.Note("the server holds no indicators; `ringfence intel import FILE` gives it some");
    return kExitOk;
  }
  Table table({"FEED", "INDICATORS", "IMPORTED", "BY", "SOURCE", "OLD EVENTS"});
  for (const Json& feed : feeds) {
    table.Add({TextOf(feed, "name"), TextOf(feed, "indicators"),
               RelativeTime(TextOf(feed, "imported"), invocation.clock.Now()),
               TextOf(feed, "imported_by"), TextOf(feed, "source"),
               TextOf(feed, "hunted") == "true" ? "searched" : "being searched"});
  }
  table.Print(console);
  return kExitOk;
}

Result<int> ListFile(Invocation& invocation) {
  if (invocation.parsed.arguments.empty()) {
    return ListFeeds(invocation);
  }
  Console& console = invocation.console;
  RINGFENCE_ASSIGN(const std::size_t limit, LimitOf(invocation.parsed));
  JsonArray items;
  JsonArray techniques;
  Table table({"KIND", "VALUE", "SOURCE", "CONFIDENCE", "VALID UNTIL"});
  Table technique_table({"TECHNIQUE", "NAME"});
  std::size_t total = 0;
  bool bad = false;
  for (const std::string& path : invocation.parsed.arguments) {
    RINGFENCE_ASSIGN(const detect::IndicatorFile file, detect::ReadIndicators(path));
    WarnOf(console, file, path);
    bad = bad || file.problem_count > 0;
    for (const Indicator& indicator : file.indicators) {
      if (++total > limit) {
        continue;
      }
      items.push_back(detect::IndicatorToJson(indicator));
      table.Add({std::string(detect::Name(indicator.kind)), indicator.value.substr(0, 200),
                 indicator.source,
                 indicator.confidence < 0 ? "-" : std::to_string(indicator.confidence),
                 indicator.valid_until ? TimeText(indicator.valid_until) : "-"});
    }
    for (const detect::Technique& technique : file.techniques) {
      techniques.push_back(JsonObject{{"id", technique.id}, {"name", technique.name}});
      technique_table.Add({technique.id, technique.name});
    }
  }
  if (!console.table()) {
    console.Show(JsonObject{
        {"total", total}, {"indicators", std::move(items)}, {"techniques", std::move(techniques)}});
    return bad ? kExitFindings : kExitOk;
  }
  if (!table.empty()) {
    table.Print(console);
  }
  if (!technique_table.empty()) {
    technique_table.Print(console);
  }
  console.Note(Count(total, "indicator") + (total > limit ? "; --limit shows more" : ""));
  return bad ? kExitFindings : kExitOk;
}

// The event of a line: STIX by its shape, anything else through the mapping.
Result<detect::Event> EventOf(std::string_view line, const detect::Mapping& mapping) {
  RINGFENCE_ASSIGN(Json json, ParseJson(line, kEventBytesMax));
  const JsonObject* object = json.if_object();
  const Json* type = object != nullptr ? object->if_contains("type") : nullptr;
  const bool stix =
      object != nullptr && ((type != nullptr && type->is_string() &&
                             (object->contains("spec_version") || object->contains("objects") ||
                              object->contains("id") || object->contains("value"))) ||
                            object->contains("object") || object->contains("objects"));
  if (stix) {
    return detect::Event::FromStix(std::move(json));
  }
  return mapping.Apply(json);
}

class MatchRun {
 public:
  MatchRun(Invocation& invocation, detect::Mapping mapping)
      : invocation_(invocation), mapping_(std::move(mapping)) {}

  Status Load() {
    const Parsed& parsed = invocation_.parsed;
    for (const std::string& path : parsed.Values("indicators")) {
      RINGFENCE_ASSIGN(detect::IndicatorFile file, detect::ReadIndicators(path));
      WarnOf(invocation_.console, file, path);
      problems_ += file.problem_count;
      for (Indicator& indicator : file.indicators) {
        RINGFENCE_TRY(index_.Add(std::move(indicator)));
      }
    }
    for (const std::string& pattern : parsed.Values("pattern")) {
      Indicator indicator;
      indicator.value = pattern;
      indicator.id = "--pattern";
      indicator.source = "command line";
      if (auto status = index_.Add(std::move(indicator)); !status.has_value()) {
        return Prefix("--pattern", status.error());
      }
    }
    if (index_.indicators().empty()) {
      return Error{Code::kInvalidArgument, "there are no indicators to match",
                   "give --indicators FILE or --pattern PATTERN"};
    }
    return {};
  }

  Status File(const std::string& path) {
    RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kEventsBytesMax));
    std::string_view rest = text;
    for (std::uint64_t line = 1; !rest.empty(); ++line) {
      const std::size_t end = rest.find('\n');
      const std::string_view row = rest.substr(0, end);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      if (row.find_first_not_of(" \t\r") != std::string_view::npos) {
        Line(path, line, row);
      }
    }
    return {};
  }

  int Finish() {
    Console& console = invocation_.console;
    if (console.table()) {
      if (!table_.empty()) {
        table_.Print(console);
      }
      console.Note(Count(matches_, "match") + (matches_ == 1 ? "" : "") + " in " +
                   Count(events_, "event") + ", " + Count(index_.indicators().size(), "indicator"));
    } else if (console.format() == Format::kYaml) {
      console.Show(rows_);
    }
    if (problems_ > kWarningsMax) {
      console.Warn(Count(problems_, "line") + " set aside in all");
    }
    return problems_ > 0 ? kExitFindings : kExitOk;
  }

 private:
  void Line(const std::string& path, std::uint64_t line, std::string_view row) {
    const auto event = EventOf(row, mapping_);
    if (!event.has_value()) {
      if (++problems_ <= kWarningsMax) {
        invocation_.console.Warn(path + ":" + std::to_string(line) +
                                 ": set aside: " + event.error().message);
      }
      return;
    }
    const detect::Observation& observation = event->observation();
    const std::uint64_t number = events_++;
    index_.Match(observation, number, found_);
    const detect::Moment time = observation.first.value_or(Now(invocation_.clock));
    for (const std::uint32_t one : found_) {
      const Indicator& indicator = index_.indicators()[one];
      if (indicator.ValidAt(time)) {
        Tell(path, line, observation, indicator);
      }
    }
  }

  void Tell(const std::string& path, std::uint64_t line, const detect::Observation& observation,
            const Indicator& indicator) {
    ++matches_;
    Console& console = invocation_.console;
    if (console.table()) {
      table_.Add({path + ":" + std::to_string(line), TimeText(observation.first),
                  std::string(detect::Name(indicator.kind)), indicator.value.substr(0, 120),
                  indicator.source,
                  indicator.confidence < 0 ? "-" : std::to_string(indicator.confidence)});
      return;
    }
    JsonObject json{
        {"file", path}, {"line", line}, {"indicator", detect::IndicatorToJson(indicator)}};
    if (observation.first) {
      json["time"] = TimeText(observation.first);
    }
    if (console.format() == Format::kJson) {
      console.out() << boost::json::serialize(json) << '\n';
    } else {
      rows_.push_back(std::move(json));
    }
  }

  Invocation& invocation_;
  detect::Mapping mapping_;
  detect::IndicatorIndex index_;
  detect::IndicatorIndex::Numbers found_;
  std::size_t problems_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t matches_ = 0;
  JsonArray rows_;
  Table table_{{"EVENT", "TIME", "KIND", "VALUE", "SOURCE", "CONFIDENCE"}};
};

Result<int> MatchEvents(Invocation& invocation) {
  const std::vector<std::string> events = invocation.parsed.Values("events");
  if (events.empty()) {
    return Error{Code::kInvalidArgument, "--events is missing", "--events FILE.jsonl"};
  }
  std::string path;
  if (const auto given = invocation.parsed.Value("mapping")) {
    path = *given;
  } else {
    RINGFENCE_ASSIGN(path, DefaultMapping());
  }
  RINGFENCE_ASSIGN(detect::Mapping mapping, detect::Mapping::Read(path));
  MatchRun run(invocation, std::move(mapping));
  RINGFENCE_TRY(run.Load());
  for (const std::string& file : events) {
    RINGFENCE_TRY(run.File(file));
  }
  return run.Finish();
}

// "feeds/Evil Hosts.txt" -> "evil-hosts"
std::string FeedNameOf(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  name = name.substr(0, name.rfind('.'));
  for (char& c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
    c = upper ? static_cast<char>(c + 32) : fits ? c : '-';
  }
  return name.substr(0, 64);
}

// As the server has it, so that nothing is sent in vain.
Result<std::string> FeedName(const std::string& name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789._-";
  constexpr std::size_t kBytesMax = 64;
  if (name.empty() || name.size() > kBytesMax || name == "." || name == ".." ||
      name.find_first_not_of(kAllowed) != std::string::npos) {
    return Error{Code::kInvalidArgument, "\"" + name + "\" is no name for a feed",
                 "use up to 64 of a-z, 0-9, '.', '_' and '-'", "name"};
  }
  return name;
}

class Upload {
 public:
  Upload(Api& api, std::string feed)
      : api_(api), feed_(std::move(feed)), upload_(FreshIdempotencyKey()) {}

  Status Add(const Indicator& indicator) {
    JsonObject json = detect::IndicatorToJson(indicator);
    const std::size_t bytes = boost::json::serialize(json).size() + 1;
    if (bytes_ + bytes > kPartBytesMax || items_.size() == kPartItemsMax) {
      RINGFENCE_TRY(Flush());
    }
    bytes_ += bytes;
    items_.push_back(std::move(json));
    return {};
  }

  // Nothing counts before this.
  Result<Json> Commit(const std::string& source) {
    RINGFENCE_TRY(Flush());
    const Json body = JsonObject{{"upload", upload_}, {"parts", parts_}, {"source", source}};
    return api_.Post(Target("/v1/intel/feeds", feed_, ""), &body);
  }

 private:
  static constexpr std::size_t kPartBytesMax = 512 * 1024;
  static constexpr std::size_t kPartItemsMax = 2000;

  Status Flush() {
    const Json body =
        JsonObject{{"upload", upload_}, {"part", parts_}, {"indicators", std::move(items_)}};
    RINGFENCE_TRY(api_.Post(Target("/v1/intel/feeds", feed_, "/parts"), &body));
    ++parts_;
    items_ = {};
    bytes_ = 0;
    return {};
  }

  Api& api_;
  const std::string feed_;
  const std::string upload_;
  std::int64_t parts_ = 0;
  std::size_t bytes_ = 0;
  JsonArray items_;
};

Result<int> Import(Invocation& invocation) {
  const std::string& path = invocation.parsed.Argument(0);
  RINGFENCE_ASSIGN(const detect::IndicatorFile file, detect::ReadIndicators(path));
  Console& console = invocation.console;
  WarnOf(console, file, path);
  const detect::Moment now = Now(invocation.clock);
  RINGFENCE_ASSIGN(const std::string feed,
                   FeedName(invocation.parsed.Value("name").value_or(FeedNameOf(path))));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  Upload upload(*api, feed);
  std::size_t expired = 0;
  std::size_t sent = 0;
  for (const Indicator& indicator : file.indicators) {
    // One that was valid once still counts for events of that time.
    expired += indicator.valid_until && *indicator.valid_until <= now ? 1 : 0;
    RINGFENCE_TRY(upload.Add(indicator));
    ++sent;
  }
  if (sent == 0) {
    return Error{
        Code::kInvalidArgument, path + " has no indicators",
        "`ringfence intel check` says what is in it; `ringfence intel remove` takes a feed "
        "out of force"};
  }
  RINGFENCE_ASSIGN(const Json answer, upload.Commit(path.substr(path.rfind('/') + 1)));
  if (!console.table()) {
    console.Show(answer);
  } else {
    console.out() << console.Good(console.Tick()) << ' ' << Safe(feed) << ": "
                  << Count(sent, "indicator") << " in force, " << expired
                  << " of them expired; stored events are being searched\n";
  }
  return file.problem_count > 0 ? kExitFindings : kExitOk;
}

Result<int> Remove(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::string feed, FeedName(invocation.parsed.Argument(0)));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json answer, api->Delete(Target("/v1/intel/feeds", feed, "")));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(answer);
  } else {
    console.Note("feed " + invocation.parsed.Argument(0) + " is no longer in force");
  }
  return kExitOk;
}

}  // namespace

CommandTable IntelCommands() {
  return {
      {.path = "intel check",
       .group = Group::kEvidence,
       .summary = "Read indicators and say what is wrong with them.",
       .details =
           "A file is a STIX 2.1 bundle or a plain list: an address, range, domain, URL, hash\n"
           "or e-mail address a line. Needs no server. docs/formats/indicators.md has both.",
       .arguments = {{.name = "FILE",
                      .help = "bundles and lists",
                      .repeated = true,
                      .completes = Completes::kFile}},
       .examples = {{"ringfence intel check feed.json", "a bundle"},
                    {"ringfence intel check *.txt --output json", "lists, for a program"}},
       .exit_codes = "0 all of it is right, 1 problems",
       .handler = CheckFiles},
      {.path = "intel import",
       .group = Group::kEvidence,
       .summary = "Have the server hold its events against the indicators of a file.",
       .details =
           "The file replaces the feed of the same name, whole or not at all. Each new event is\n"
           "held against it, and so are the events that are still stored; what shows an indicator\n"
           "while it is valid becomes an alert. Needs alert.manage.",
       .options = {{.name = "name", .value = "FEED", .help = "its name (default: the file's)"}},
       .arguments = {{.name = "FILE", .help = "a bundle or list", .completes = Completes::kFile}},
       .examples = {{"ringfence intel import miners.txt", "a list of pools"},
                    {"ringfence intel import today.json --name cert", "the newest of a feed"}},
       .exit_codes = "0 all of it is in force, 1 some of it was set aside",
       .handler = Import},
      {.path = "intel remove",
       .group = Group::kEvidence,
       .summary = "Take a feed of indicators out of force.",
       .arguments = {{.name = "FEED", .help = "as `ringfence intel list` names it"}},
       .examples = {{"ringfence intel remove cert", "no longer"}},
       .handler = Remove},
      {.path = "intel list",
       .group = Group::kEvidence,
       .summary = "List the server's feeds, or the indicators and techniques of files.",
       .options = {LimitOption()},
       .arguments = {{.name = "FILE",
                      .help = "bundles and lists; none: the server's feeds",
                      .required = false,
                      .repeated = true,
                      .completes = Completes::kFile}},
       .examples = {{"ringfence intel list", "what the server holds its events against"},
                    {"ringfence intel list feed.json", "what is in it"},
                    {"ringfence intel list feed.json --limit 5 --output json", "the first five"}},
       .exit_codes = "0 all of it is right, 1 problems",
       .handler = ListFile},
      {.path = "intel match",
       .group = Group::kEvidence,
       .summary = "Match events with indicators.",
       .details = "Events are JSON lines: STIX observables or, through a mapping, OCSF. An "
                  "indicator counts\n"
                  "only while it is valid at the event's time (now, for events without one). With\n"
                  "--output json there is one object for each match, on a line of its own. Needs "
                  "no server.",
       .options = {{.name = "indicators",
                    .value = "FILE",
                    .help = "bundle or list; may be given again",
                    .repeated = true,
                    .completes = Completes::kFile},
                   {.name = "pattern",
                    .value = "PATTERN",
                    .help = "a STIX pattern; may be given again",
                    .repeated = true},
                   {.name = "events",
                    .value = "FILE.jsonl",
                    .help = "events, in order of time; may be given again",
                    .repeated = true,
                    .completes = Completes::kFile},
                   {.name = "mapping",
                    .value = "FILE",
                    .help = "fields of events as observables (default: OCSF's)",
                    .completes = Completes::kFile}},
       .examples = {{"ringfence intel match --indicators feed.json --events flows.jsonl",
                     "with a feed"},
                    {"ringfence intel match --indicators a.txt --indicators b.json --events "
                     "today.jsonl --output json",
                     "with two, for a program"},
                    {"ringfence intel match --pattern \"[process:command_line LIKE '%xmrig%']\" "
                     "--events exec.jsonl",
                     "with a pattern"}},
       .exit_codes = "0 everything was read, 1 lines or indicators were set aside",
       .handler = MatchEvents},
  };
}

}  // namespace ringfence::cli
