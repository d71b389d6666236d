#include "sigma/rule_test_file.h"

#include <boost/json/serialize.hpp>

#include "base/time.h"
#include "os/file.h"
#include "sigma/engine.h"
#include "wire/yaml.h"

namespace ringfence::sigma {
namespace {

constexpr std::int64_t kRepeatMax = 100'000;
constexpr std::string_view kEnding = ".test.yml";

Status ReadCase(const Json& value, bool must_match, const std::string& path,
                std::vector<RuleTestCase>& cases) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(value, path));
  RuleTestCase one;
  one.must_match = must_match;
  RINGFENCE_ASSIGN(one.name, reader.String("name"));
  RINGFENCE_ASSIGN(const std::int64_t repeat, reader.IntOr("repeat", 1, 1, kRepeatMax));
  RINGFENCE_ASSIGN(const std::string every, reader.StringOr("every", "1s"));
  RINGFENCE_ASSIGN(const Milliseconds step, ParseDuration(every));
  RINGFENCE_ASSIGN(const auto events, reader.Array("events"));
  RINGFENCE_TRY(reader.Finish());
  if (events.empty()) {
    return Error{Code::kInvalidArgument, path + ".events: no event", {}, {}};
  }
  for (std::int64_t i = 0; i < repeat; ++i) {
    for (const Json* event : events) {
      Json later = *event;
      Json* time = later.is_object() ? later.as_object().if_contains("time") : nullptr;
      if (time != nullptr && time->is_int64()) {
        *time = time->get_int64() + i * step.count();
      }
      one.events.push_back(boost::json::serialize(later));
    }
  }
  cases.push_back(std::move(one));
  return {};
}

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// What the rules report on the events, as "title (event n)"; an event that is none is an error.
Result<std::vector<std::string>> Reported(const RuleSet& set, const RuleTestCase& one) {
  Engine engine(set);
  std::vector<std::string> reported;
  std::uint64_t number = 0;
  for (const std::string& event : one.events) {
    const Status fed = engine.Feed(++number, event, false, [&](const Finding& finding) {
      reported.push_back(finding.rule->title + " (event " + std::to_string(finding.event) + ")");
    });
    if (!fed.has_value()) {
      return Prefix("event " + std::to_string(number), fed.error());
    }
  }
  return reported;
}

}  // namespace

Result<std::vector<RuleTestCase>> ReadRuleTest(const std::string& text, const std::string& file,
                                               std::string& pipeline) {
  RINGFENCE_ASSIGN(const Json document, wire::YamlToJson(text, file));
  auto opened = JsonReader::Open(document);
  if (!opened.has_value()) {
    return Prefix(file, opened.error());
  }
  JsonReader reader = std::move(*opened);
  std::vector<RuleTestCase> cases;
  const auto read = [&]() -> Status {
    RINGFENCE_ASSIGN(pipeline, reader.StringOr("pipeline", ""));
    for (const char* key : {"match", "no_match"}) {
      RINGFENCE_ASSIGN(const auto list, reader.Array(key));
      for (std::size_t i = 0; i < list.size(); ++i) {
        RINGFENCE_TRY(ReadCase(*list[i], std::string_view(key) == "match",
                               std::string(key) + "[" + std::to_string(i) + "]", cases));
      }
    }
    return reader.Finish();
  };
  if (const Status done = read(); !done.has_value()) {
    return Prefix(file, done.error());
  }
  return cases;
}

Result<std::vector<RuleTestResult>> RunRuleTest(const std::string& test_file) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(test_file, wire::kYamlBytesMax));
  std::string pipeline_path;
  RINGFENCE_ASSIGN(const auto cases, ReadRuleTest(text, test_file, pipeline_path));
  std::vector<Problem> problems;
  std::vector<Pipeline> pipelines;
  if (!pipeline_path.empty()) {
    const std::string path = FolderOf(test_file) + "/" + pipeline_path;
    RINGFENCE_ASSIGN(const std::string pipeline, os::ReadText(path, wire::kYamlBytesMax));
    if (auto read = Pipeline::Read(pipeline, path, problems)) {
      pipelines.push_back(std::move(*read));
    }
  }
  const std::string rule_file = test_file.substr(0, test_file.size() - kEnding.size()) + ".yml";
  RINGFENCE_ASSIGN(Loaded loaded, LoadRules(rule_file, problems));
  const RuleSet set = MakeReady(std::move(loaded.rules), pipelines, problems);
  if (!problems.empty() || !set.left_out.empty()) {
    return Error{
        Code::kInvalidArgument,
        problems.empty() ? rule_file + ": " + set.left_out.front().why : problems.front().Text(),
        {},
        {}};
  }
  std::vector<RuleTestResult> results;
  for (const RuleTestCase& one : cases) {
    RuleTestResult result{test_file, one.name, one.must_match, false, {}};
    const auto reported = Reported(set, one);
    if (!reported.has_value()) {
      result.why = reported.error().message;
    } else if (reported->empty() == one.must_match) {
      result.why = one.must_match ? "nothing was reported" : "reported: " + reported->front();
    } else {
      result.passed = true;
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace ringfence::sigma
