// `ringfence rule match|backtest`

#include <boost/json/serialize.hpp>
#include <map>

#include "base/bytes.h"
#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/rule.h"
#include "cli/text.h"
#include "os/file.h"
#include "sigma/engine.h"
#include "sigma/lines.h"

namespace ringfence::cli {
namespace {

constexpr std::size_t kReasonsShown = 10;

Result<std::vector<std::string>> NeedValues(const Parsed& parsed, std::string_view option) {
  auto values = parsed.Values(option);
  if (values.empty()) {
    return Error{Code::kInvalidArgument,
                 "--" + std::string(option) + " is missing",
                 "ringfence rule match --rules DIR --events FILE.jsonl",
                 {}};
  }
  return values;
}

// Feeds every line of the files to the engine. Lines that are no events are counted, the first few
// named, and all of them kept in the file that --aside names.
class Feeder {
 public:
  Feeder(Invocation& invocation, sigma::Engine& engine)
      : console_(invocation.console), engine_(engine), aside_(invocation.parsed.Value("aside")) {}

  Status Run(const std::vector<std::string>& files, const sigma::Engine::Report& report) {
    if (aside_) {
      RINGFENCE_TRY(os::WriteFile(*aside_, {}));
      RINGFENCE_ASSIGN(aside_fd_, os::OpenAppend(*aside_, 0644));
    }
    for (const std::string& file : files) {
      RINGFENCE_ASSIGN(sigma::EventLines lines, sigma::EventLines::Open(file));
      sigma::EventLine line;
      while (true) {
        RINGFENCE_ASSIGN(const bool more, lines.Next(line));
        if (!more) {
          break;
        }
        if (line.too_long) {
          ++too_long_;
          RINGFENCE_TRY(PutAside(file, line,
                                 {Code::kInvalidArgument,
                                  "longer than " + std::to_string(sigma::kEventBytesMax) + " bytes",
                                  {},
                                  {}}));
          continue;
        }
        if (const Status fed = engine_.Feed(line.number, line.text, true, report);
            !fed.has_value()) {
          RINGFENCE_TRY(PutAside(file, line, fed.error()));
        }
      }
    }
    return {};
  }

  std::uint64_t events() const { return engine_.counts().events + too_long_; }
  std::uint64_t malformed() const { return engine_.counts().malformed + too_long_; }

  void Summary() {
    std::string text = Count(events(), "event") + ", " + Count(engine_.counts().findings, "match") +
                       ", " + std::to_string(malformed()) + " malformed";
    if (engine_.dropped() > 0) {
      text += ", " + std::to_string(engine_.dropped()) +
              " not correlated (more groups or entries than the limits allow)";
    }
    if (engine_.counts().without_time > 0) {
      text += ", " + std::to_string(engine_.counts().without_time) + " without a time";
    }
    console_.Note(text);
  }

 private:
  Status PutAside(const std::string& file, const sigma::EventLine& line, const Error& why) {
    if (reasons_++ < kReasonsShown) {
      console_.Warn(file + ":" + std::to_string(line.number) + ": " + why.message);
    }
    if (aside_fd_.valid()) {
      RINGFENCE_TRY(os::WriteAll(aside_fd_.get(), AsBytes(std::string(line.text) + "\n")));
    }
    return {};
  }

  Console& console_;
  sigma::Engine& engine_;
  std::optional<std::string> aside_;
  os::UniqueFd aside_fd_;
  std::uint64_t too_long_ = 0;
  std::uint64_t reasons_ = 0;
};

std::string Quoted(const std::string& text) { return boost::json::serialize(Json(text)); }

// The part of a match's line that is the same for every match of a rule.
std::string HeadOf(const sigma::Rule& rule) {
  return "{\"rule\":" + Quoted(rule.Key()) + ",\"title\":" + Quoted(rule.title) +
         ",\"level\":" + Quoted(rule.level) + ",\"line\":";
}

Result<int> Match(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const auto rules, NeedValues(parsed, "rules"));
  RINGFENCE_ASSIGN(const auto events, NeedValues(parsed, "events"));
  RINGFENCE_ASSIGN(sigma::RuleSet set, NeedRuleSet(invocation, rules));
  sigma::EngineOptions options;
  options.time_fields = parsed.Values("time-field");
  sigma::Engine engine(std::move(set), options);
  std::map<const sigma::Rule*, std::string> heads;
  std::ostream& out = invocation.console.out();
  const auto report = [&](const sigma::Finding& finding) {
    std::string& head = heads[finding.rule];
    if (head.empty()) {
      head = HeadOf(*finding.rule);
    }
    out << head << finding.event;
    if (finding.correlation != nullptr) {
      JsonObject group;
      for (const auto& [name, value] : finding.correlation->group) {
        group[name] = value;
      }
      out << ",\"events\":" << finding.correlation->events
          << ",\"value\":" << boost::json::serialize(Json(finding.correlation->value))
          << ",\"group\":" << boost::json::serialize(group);
    }
    out << "}\n";
  };
  Feeder feeder(invocation, engine);
  RINGFENCE_TRY(feeder.Run(events, report));
  out.flush();
  feeder.Summary();
  return kExitOk;
}

std::string HourOf(const std::optional<Timestamp>& time) {
  return time ? FormatTime(*time).substr(0, 13) + "Z" : "no time";
}

Result<int> Backtest(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const auto rules, NeedValues(parsed, "rules"));
  RINGFENCE_ASSIGN(const auto events, NeedValues(parsed, "events"));
  RINGFENCE_ASSIGN(sigma::RuleSet set, NeedRuleSet(invocation, rules));
  sigma::EngineOptions options;
  options.time_fields = parsed.Values("time-field");
  options.always_time = true;
  sigma::Engine engine(std::move(set), options);
  std::map<const sigma::Rule*, std::map<std::string, std::uint64_t>> counts;
  Feeder feeder(invocation, engine);
  RINGFENCE_TRY(feeder.Run(events, [&](const sigma::Finding& finding) {
    ++counts[finding.rule][HourOf(finding.time)];
  }));
  Console& console = invocation.console;
  JsonArray list;
  Table table({"HOUR", "MATCHES", "LEVEL", "RULE", "TITLE"});
  for (const auto& [rule, hours] : counts) {
    JsonObject by_hour;
    std::uint64_t total = 0;
    for (const auto& [hour, count] : hours) {
      by_hour[hour] = count;
      total += count;
      table.Add({hour, std::to_string(count), rule->level, rule->Key(), rule->title});
    }
    list.push_back(JsonObject{{"rule", rule->Key()},
                              {"title", rule->title},
                              {"level", rule->level},
                              {"matches", total},
                              {"hours", std::move(by_hour)}});
  }
  if (console.table()) {
    table.Print(console);
    feeder.Summary();
  } else {
    console.Show(JsonObject{{"events", feeder.events()},
                            {"matches", engine.counts().findings},
                            {"malformed", feeder.malformed()},
                            {"rules", std::move(list)}});
  }
  return kExitOk;
}

std::vector<OptionSpec> MatchOptions() {
  return {{.name = "rules",
           .value = "PATH",
           .help = "rule files, or folders of them",
           .repeated = true,
           .completes = Completes::kFile},
          {.name = "events",
           .value = "FILE",
           .help = "events, one JSON object a line; - for standard input",
           .repeated = true,
           .completes = Completes::kFile},
          PipelineOption(),
          {.name = "time-field",
           .value = "FIELD",
           .help = "where events have their time (default: time, @timestamp, timestamp, ...)",
           .repeated = true},
          {.name = "aside",
           .value = "FILE",
           .help = "keep lines that are no events in this file",
           .completes = Completes::kFile}};
}

}  // namespace

CommandTable RuleMatchCommands() {
  return {
      {.path = "rule match",
       .group = Group::kEvidence,
       .summary = "Run Sigma rules over a file of events, without a server.",
       .details =
           "Prints one JSON line for each match: rule, title, level and line; of correlations\n"
           "also the group, the number of events and the value. A summary goes to standard error.",
       .options = MatchOptions(),
       .examples = {{"ringfence rule match --rules rules/ --events events.jsonl", "all of them"},
                    {"zcat old.gz | ringfence rule match --rules rules/ --events -", "from a pipe"},
                    {"ringfence rule match --rules r.yml --events e.jsonl --pipeline site.yml",
                     "with other field names"}},
       .handler = Match},
      {.path = "rule backtest",
       .group = Group::kEvidence,
       .summary = "Count what rules would have reported on stored events, by rule and hour.",
       .options = MatchOptions(),
       .examples = {{"ringfence rule backtest --rules new.yml --events last-week.jsonl",
                     "before a rule goes live"},
                    {"ringfence rule backtest --rules r/ --events e.jsonl -o json",
                     "for a program"}},
       .handler = Backtest},
  };
}

}  // namespace ringfence::cli
