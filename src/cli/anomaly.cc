// `ringfence anomaly run|score|evaluate`: baselines over files, without a server.

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdio>

#include "base/code.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/text.h"
#include "detect/baseline.h"
#include "detect/nab.h"
#include "detect/series.h"
#include "detect/trial.h"
#include "os/file.h"

namespace ringfence::cli {
namespace {

constexpr std::size_t kLabelsBytesMax = 16 * 1024 * 1024;
constexpr std::size_t kWarningsMax = 10;

std::string Fixed(double value, int decimals) {
  char text[64];
  (void)std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

// What a reader of the file should know about it.
void WarnOf(Console& console, const std::string& path, const detect::SeriesFile& file) {
  for (std::size_t i = 0; i < std::min(kWarningsMax, file.bad.size()); ++i) {
    console.Warn(path + ":" + std::to_string(file.bad[i].line) +
                 ": set aside: " + file.bad[i].what);
  }
  if (file.bad_count > kWarningsMax) {
    console.Warn(path + ": " + Count(file.bad_count, "row") + " set aside in all");
  }
  if (file.backwards > 0) {
    console.Warn(path + ": the time of " + Count(file.backwards, "row") +
                 " is not after that of the row before; nothing was learned of their hour");
  }
}

Result<std::string> Needed(const Parsed& parsed, std::string_view option, std::string_view what) {
  const auto value = parsed.Value(option);
  if (!value) {
    return Error{Code::kInvalidArgument, "--" + std::string(option) + " is missing",
                 "--" + std::string(option) + " " + std::string(what)};
  }
  return *value;
}

// Written by hand: a line for each of millions of rows.
std::string Line(const std::string& series, const detect::Sample& sample,
                 const detect::Verdict& verdict) {
  std::string line = "{\"timestamp\":" + boost::json::serialize(boost::json::string(sample.time));
  if (!series.empty()) {
    line += ",\"series\":" + boost::json::serialize(boost::json::string(series));
  }
  char number[64];
  (void)std::snprintf(number, sizeof number, ",\"value\":%.10g,\"score\":%.4f", sample.value,
                      static_cast<double>(verdict.score));
  line += number;
  line += verdict.alarm ? ",\"alarm\":true" : ",\"alarm\":false";
  return line +
         ",\"reason\":" + boost::json::serialize(boost::json::string(detect::Explain(verdict))) +
         "}\n";
}

JsonObject RowJson(const std::string& series, const detect::Sample& sample,
                   const detect::Verdict& verdict) {
  JsonObject row{{"timestamp", sample.time},
                 {"value", sample.value},
                 {"score", static_cast<double>(verdict.score)},
                 {"alarm", verdict.alarm},
                 {"reason", detect::Explain(verdict)}};
  if (!series.empty()) {
    row["series"] = series;
  }
  return row;
}

Result<std::vector<detect::Baseline>> LearnPeers(Invocation& invocation) {
  std::vector<detect::Baseline> peers;
  for (const std::string& path : invocation.parsed.Values("peer")) {
    RINGFENCE_ASSIGN(const detect::SeriesFile file, detect::ReadSeries(path));
    WarnOf(invocation.console, path, file);
    for (const detect::Series& series : file.series) {
      detect::Baseline& baseline = peers.emplace_back();
      for (const detect::Sample& sample : series.samples) {
        (void)baseline.Update(sample.time_s, sample.value);
      }
    }
  }
  return peers;
}

Result<int> RunSeries(Invocation& invocation) {
  Console& console = invocation.console;
  RINGFENCE_ASSIGN(const std::string path, Needed(invocation.parsed, "input", "SERIES.csv"));
  RINGFENCE_ASSIGN(const detect::SeriesFile file, detect::ReadSeries(path));
  WarnOf(console, path, file);
  RINGFENCE_ASSIGN(const std::vector<detect::Baseline> peers, LearnPeers(invocation));
  std::vector<const detect::Baseline*> group;
  for (const detect::Baseline& peer : peers) {
    group.push_back(&peer);
  }
  const bool named = file.series.size() > 1 || !file.series.front().name.empty();
  Table table(named ? std::vector<std::string>{"TIME", "SERIES", "VALUE", "SCORE", "WHY"}
                    : std::vector<std::string>{"TIME", "VALUE", "SCORE", "WHY"});
  JsonArray rows;
  std::size_t alarms = 0;
  for (const detect::Series& series : file.series) {
    detect::Baseline baseline = detect::Baseline::FromPeers(group);
    for (const detect::Sample& sample : series.samples) {
      const detect::Verdict verdict = baseline.Update(sample.time_s, sample.value);
      alarms += verdict.alarm ? 1 : 0;
      if (console.format() == Format::kJson) {
        console.out() << Line(series.name, sample, verdict);
      } else if (console.format() == Format::kYaml) {
        rows.push_back(RowJson(series.name, sample, verdict));
      } else if (verdict.alarm) {
        std::vector<std::string> cells = {sample.time, Fixed(sample.value, 2),
                                          Fixed(static_cast<double>(verdict.score), 2),
                                          detect::Explain(verdict)};
        if (named) {
          cells.insert(cells.begin() + 1, series.name);
        }
        table.Add(std::move(cells));
      }
    }
  }
  if (console.format() == Format::kYaml) {
    console.Show(rows);
  } else if (console.table()) {
    if (!table.empty()) {
      table.Print(console);
    }
    console.Note(Count(alarms, "alarm") + " in " + Count(file.rows, "row"));
  }
  return file.bad_count > 0 ? kExitFindings : kExitOk;
}

Result<Json> ReadJson(const std::string& path) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kLabelsBytesMax));
  auto json = ParseJson(text, kLabelsBytesMax);
  if (!json.has_value()) {
    return Prefix(path, json.error());
  }
  return json;
}

// Runs a baseline over one file of the benchmark.
Result<detect::NabSeries> RunLabelled(Console& console, const std::string& folder,
                                      const detect::NabLabels& labels) {
  const std::string path = folder + "/" + labels.file;
  RINGFENCE_ASSIGN(const detect::SeriesFile file, detect::ReadSeries(path));
  WarnOf(console, path, file);
  const std::vector<detect::Sample>& samples = file.series.front().samples;
  detect::NabSeries series{labels.file, {}, {}};
  detect::Baseline baseline;
  for (const detect::Sample& sample : samples) {
    series.scores.push_back(baseline.Update(sample.time_s, sample.value).score);
  }
  for (const auto& [first, last] : labels.windows) {
    const auto at = [&](std::int64_t time) {
      return static_cast<std::size_t>(
          std::lower_bound(samples.begin(), samples.end(), time,
                           [](const detect::Sample& s, std::int64_t t) { return s.time_s < t; }) -
          samples.begin());
    };
    const std::size_t begin = at(first);
    const std::size_t end = at(last + 1);
    if (begin >= end) {
      return Error{Code::kInvalidArgument, path + ": a window of it holds no row",
                   "are these the windows of this file?"};
    }
    series.windows.push_back({begin, end - 1});
  }
  return series;
}

Result<int> ScoreCorpus(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  Console& console = invocation.console;
  RINGFENCE_ASSIGN(const std::string folder, Needed(parsed, "data", "DIR"));
  RINGFENCE_ASSIGN(const Json windows,
                   ReadJson(parsed.Value("windows").value_or(folder + "/windows.json")));
  RINGFENCE_ASSIGN(const auto labels, detect::ParseNabWindows(windows));
  std::vector<detect::NabProfile> profiles = {detect::NabProfile{}};
  if (const auto path = parsed.Value("profiles")) {
    RINGFENCE_ASSIGN(const Json json, ReadJson(*path));
    RINGFENCE_ASSIGN(profiles, detect::ParseNabProfiles(json));
  }
  std::vector<detect::NabSeries> corpus;
  for (const detect::NabLabels& label : labels) {
    RINGFENCE_ASSIGN(auto series, RunLabelled(console, folder, label));
    corpus.push_back(std::move(series));
  }
  const auto alarm = static_cast<double>(detect::kAlarmScore);
  JsonArray scores;
  JsonArray files;
  Table table({"PROFILE", "SCORE", "THRESHOLD", "WITH ITS OWN ALARMS"});
  for (const detect::NabProfile& profile : profiles) {
    const detect::NabScore score = detect::ScoreNab(corpus, profile, alarm);
    table.Add({profile.name, Fixed(score.score, 2), Fixed(score.threshold, 4),
               Fixed(score.fixed_score, 2)});
    scores.push_back(JsonObject{{"profile", profile.name},
                                {"score", score.score},
                                {"threshold", score.threshold},
                                {"alarm_score", score.fixed_score}});
  }
  Table counts({"FILE", "WINDOWS", "FOUND", "FALSE ALARMS"});
  for (const detect::NabFileCount& count : detect::CountNab(corpus, alarm)) {
    counts.Add({count.name, std::to_string(count.windows), std::to_string(count.found),
                std::to_string(count.false_alarms)});
    files.push_back(JsonObject{{"file", count.name},
                               {"windows", count.windows},
                               {"found", count.found},
                               {"false_alarms", count.false_alarms}});
  }
  if (!console.table()) {
    console.Show(JsonObject{{"scores", std::move(scores)}, {"files", std::move(files)}});
    return kExitOk;
  }
  counts.Print(console);
  console.out() << '\n';
  table.Print(console);
  return kExitOk;
}

JsonObject ReportJson(const std::string& name, const detect::TrialReport& report) {
  JsonArray attacks;
  for (const detect::AttackCount& attack : report.attacks) {
    attacks.push_back(
        JsonObject{{"attack", attack.name}, {"tried", attack.tried}, {"found", attack.found}});
  }
  return {{"part", name},
          {"series", report.series},
          {"days", report.days},
          {"false_alarms", report.false_alarms},
          {"worst_series", report.worst_series_alarms},
          {"attacks", std::move(attacks)}};
}

Result<int> Evaluate(Invocation& invocation) {
  Console& console = invocation.console;
  RINGFENCE_ASSIGN(const std::string path, Needed(invocation.parsed, "input", "SERIES.csv"));
  detect::TrialOptions options;
  if (const auto text = invocation.parsed.Value("seed")) {
    RINGFENCE_ASSIGN(const auto seed, ParseCount(*text, 0, INT64_MAX));
    options.seed = static_cast<std::uint64_t>(seed);
  }
  if (const auto text = invocation.parsed.Value("trials")) {
    RINGFENCE_ASSIGN(const auto trials, ParseCount(*text, 1, 1000));
    options.attacks_per_series = static_cast<unsigned>(trials);
  }
  RINGFENCE_ASSIGN(const detect::SeriesFile file, detect::ReadSeries(path));
  WarnOf(console, path, file);
  std::vector<const detect::Series*> parts[2];
  for (std::size_t i = 0; i < file.series.size(); ++i) {
    parts[i % 2].push_back(&file.series[i]);
  }
  JsonArray reports;
  Table table({"SERIES", "SERIES-DAYS", "FALSE ALARMS A DAY", "ATTACK", "FOUND"});
  for (int part = 0; part < 2 && !parts[part].empty(); ++part) {
    const std::string name = part == 0 ? "odd ones" : "even ones";
    const detect::TrialReport report = detect::Try(parts[part], options);
    reports.push_back(ReportJson(name, report));
    for (const detect::AttackCount& attack : report.attacks) {
      const double share = attack.tried == 0 ? 0
                                             : 100 * static_cast<double>(attack.found) /
                                                   static_cast<double>(attack.tried);
      table.Add({name, Fixed(report.days, 1),
                 Fixed(static_cast<double>(report.false_alarms) / std::max(1e-9, report.days), 2),
                 attack.name, Fixed(share, 1) + "% of " + std::to_string(attack.tried)});
    }
  }
  if (console.table()) {
    table.Print(console);
  } else {
    console.Show(reports);
  }
  return kExitOk;
}

OptionSpec InputOption() {
  return {.name = "input",
          .letter = 'i',
          .value = "SERIES.csv",
          .help = "rows of timestamp,value or timestamp,series,value",
          .completes = Completes::kFile};
}

}  // namespace

CommandTable AnomalyCommands() {
  return {
      {.path = "anomaly run",
       .group = Group::kEvidence,
       .summary = "Feed a series to a baseline and show its alarms.",
       .details =
           "Needs no server. Each row is judged by the rows before it, as it would be live. With\n"
           "--output json there is one object for each row, on a line of its own: timestamp, "
           "value,\n"
           "score, alarm, reason. Times are 2026-11-15 08:46:30, RFC 3339 in UTC, or seconds "
           "since\n"
           "1970. Rows that cannot be read are set aside and named. docs/anomaly.md has the "
           "method.",
       .options = {InputOption(),
                   {.name = "peer",
                    .value = "SERIES.csv",
                    .help = "history of a similar series, for a begin without any; may be given "
                            "again",
                    .repeated = true,
                    .completes = Completes::kFile}},
       .examples = {{"ringfence anomaly run --input load.csv", "its alarms, with reasons"},
                    {"ringfence anomaly run --input load.csv --output json", "every row judged"},
                    {"ringfence anomaly run --input new.csv --peer old-1.csv --peer old-2.csv",
                     "a series that has only begun"}},
       .exit_codes = "0 every row was judged, 1 some rows were set aside",
       .handler = RunSeries},
      {.path = "anomaly score",
       .group = Group::kEvidence,
       .summary = "Score baselines on labelled series as the Numenta Anomaly Benchmark does.",
       .details =
           "The windows name the files under --data, and when something was wrong in each. SCORE\n"
           "is the benchmark's: 0 for a detector that says nothing, 100 for a perfect one, with\n"
           "the one threshold that serves all files best. The last column has the score of the\n"
           "alarms that `anomaly run` raises.",
       .options = {{.name = "data",
                    .value = "DIR",
                    .help = "folder of the series",
                    .completes = Completes::kFolder},
                   {.name = "windows",
                    .value = "FILE",
                    .help = "label windows (default DIR/windows.json)",
                    .completes = Completes::kFile},
                   {.name = "profiles",
                    .value = "FILE",
                    .help = "the benchmark's profiles (default: its standard one)",
                    .completes = Completes::kFile}},
       .examples = {{"ringfence anomaly score --data nab --profiles nab/profiles.json",
                     "every profile"},
                    {"ringfence anomaly score --data nab --windows labels.json --output json",
                     "for a program"}},
       .handler = ScoreCorpus},
      {.path = "anomaly evaluate",
       .group = Group::kEvidence,
       .summary = "Count false alarms on series, and how many pasted attacks are found.",
       .details =
           "Takes each series as it is, and again with an attack pasted in at a random time after\n"
           "the learning time: 93 to 97 for an hour, to be found within 5 minutes, and 40 to 60 "
           "for\n"
           "3 hours, to be found before they end. Every second series is counted apart, so that\n"
           "whoever tunes on the ones has the others to check.",
       .options = {InputOption(),
                   {.name = "seed", .value = "N", .help = "for the dice (default 1)"},
                   {.name = "trials",
                    .value = "N",
                    .help = "attacks of each kind on each series (default 10)"}},
       .examples = {{"ringfence anomaly evaluate --input gpu_duty_cycle.csv", "both parts"},
                    {"ringfence anomaly evaluate --input load.csv --seed 7 --trials 50",
                     "other dice, more throws"}},
       .handler = Evaluate},
  };
}

}  // namespace ringfence::cli
