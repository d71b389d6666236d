// Goal: SigmaHQ's rules fire on SigmaHQ's regression events; our own rules do what their tests
// say; the fast matcher and the plain one agree on all of it.
// Method: the cut in tests/vectors/sigma, and everything in $RINGFENCE_SHARED where that is set;
// every test file below content/rules; events damaged by swapping in values that rules ask for.

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <map>
#include <random>

#include "os/file.h"
#include "sigma/lines.h"
#include "sigma/rule_test_file.h"
#include "sigma/test_support.h"

namespace ringfence::sigma {
namespace {

const std::string kVectors = std::string(RINGFENCE_SOURCE_DIR) + "/tests/vectors/sigma";

struct RegressionCase {
  std::string rule_id;
  std::vector<std::string> events;
};

std::vector<RegressionCase> CasesIn(const std::string& folder) {
  std::vector<RegressionCase> cases;
  const std::vector<std::string> files = FindFiles(folder, {".json"}).value();
  for (const std::string& file : files) {
    const Json json = ParseJson(os::ReadText(file, 1 << 20U).value(), 1 << 20U).value();
    RegressionCase one{json.at("rule_id").as_string().c_str(), {}};
    for (const Json& event : json.at("events").as_array()) {
      one.events.push_back(boost::json::serialize(event));
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

RuleSet LoadAll(const std::string& folder) {
  std::vector<Problem> problems;
  auto loaded = LoadRules(folder, problems);
  EXPECT_TRUE(loaded.has_value());
  RuleSet set = MakeReady(std::move(loaded->rules), {}, problems);
  for (const Problem& problem : problems) {
    ADD_FAILURE() << problem.Text();
  }
  return set;
}

void EveryCaseFires(const RuleSet& set, const std::vector<RegressionCase>& cases) {
  const auto matcher = Matcher::Build(set);
  Matcher::Session session(*matcher);
  for (const RegressionCase& one : cases) {
    bool fired = false;
    for (const std::string& event : one.events) {
      const auto matched = session.Match(event);
      ASSERT_TRUE(matched.has_value()) << matched.error().message;
      for (const std::uint32_t rule : **matched) {
        fired = fired || set.rules[rule].rule.id == one.rule_id;
      }
    }
    EXPECT_TRUE(fired) << one.rule_id;
  }
}

// Every rule on every event, by both.
void BothAgree(const RuleSet& set, const std::vector<std::string>& events) {
  const auto matcher = Matcher::Build(set);
  Matcher::Session session(*matcher);
  std::size_t matches = 0;
  for (const std::string& event : events) {
    const auto fast = session.Match(event);
    ASSERT_TRUE(fast.has_value()) << fast.error().message << "\n" << event;
    const Json json = ParseJson(event, kEventBytesMax).value();
    std::vector<std::uint32_t> plain;
    for (std::uint32_t i = 0; i < set.rules.size(); ++i) {
      if (PlainMatches(set.rules[i], json)) {
        plain.push_back(i);
      }
    }
    ASSERT_EQ(**fast, plain) << event;
    matches += plain.size();
  }
  EXPECT_GT(matches, events.size() / 4);
}

void CollectTests(const Expression& expression, std::vector<const Test*>& out) {
  if (expression.op == Expression::Op::kTest) {
    out.push_back(&expression.test);
  }
  for (const Expression& inner : expression.of) {
    CollectTests(inner, out);
  }
}

// Events with some fields replaced by what tests of the rules look for.
std::vector<std::string> Damaged(const RuleSet& set, const std::vector<RegressionCase>& cases,
                                 std::size_t count) {
  std::vector<const Test*> tests;
  for (const ReadyRule& rule : set.rules) {
    for (const Expression& selection : rule.selections) {
      CollectTests(selection, tests);
    }
  }
  std::mt19937 dice(11);
  std::vector<std::string> events;
  while (events.size() < count) {
    const RegressionCase& one = cases[dice() % cases.size()];
    Json event = ParseJson(one.events[dice() % one.events.size()], 1 << 20U).value();
    JsonObject& data = event.as_object()["Event"].as_object()["EventData"].as_object();
    for (unsigned k = 0; k < 1 + dice() % 4; ++k) {
      const Test& test = *tests[dice() % tests.size()];
      std::string text = test.pattern.LiteralText();
      if (dice() % 3 == 0) {
        text = "pre" + text;
      }
      if (dice() % 3 == 0) {
        text += "post";
      }
      data[test.field.empty() ? "Other" : test.field] = text;
    }
    events.push_back(boost::json::serialize(event));
  }
  return events;
}

TEST(Regression, TheCutFires) {
  const RuleSet set = LoadAll(kVectors + "/rules");
  const auto cases = CasesIn(kVectors + "/regression");
  EXPECT_EQ(set.rules.size(), 40U);
  EXPECT_EQ(cases.size(), 40U);
  EveryCaseFires(set, cases);
}

TEST(Regression, BothMatchersAgreeOnTheCut) {
  const RuleSet set = LoadAll(kVectors + "/rules");
  const auto cases = CasesIn(kVectors + "/regression");
  std::vector<std::string> events = Damaged(set, cases, 400);
  for (const RegressionCase& one : cases) {
    events.insert(events.end(), one.events.begin(), one.events.end());
  }
  BothAgree(set, events);
}

TEST(Regression, AllPublicRules) {
  const char* shared = std::getenv("RINGFENCE_SHARED");
  if (shared == nullptr || !os::IsDirectory(std::string(shared) + "/data/sigma/rules")) {
    return;  // the cut above is the test; this is all of it, where it is at hand
  }
  const std::string folder = std::string(shared) + "/data/sigma";
  const RuleSet set = LoadAll(folder + "/rules");
  EXPECT_GE(set.rules.size() + set.left_out.size(), 3'700U);
  const auto cases = CasesIn(folder + "/regression");
  EveryCaseFires(set, cases);
  BothAgree(set, Damaged(set, cases, 60));
}

TEST(Content, OurRulesDoWhatTheirTestsSay) {
  const std::string folder = std::string(RINGFENCE_SOURCE_DIR) + "/content/rules";
  const RuleSet set = LoadAll(folder);
  EXPECT_TRUE(set.left_out.empty());
  std::size_t rules = 0;
  const std::vector<std::string> files = FindFiles(folder, {".yml"}).value();
  for (const std::string& file : files) {
    if (file.ends_with(".test.yml")) {
      continue;
    }
    ++rules;
    const auto ran = RunRuleTest(file.substr(0, file.size() - 4) + ".test.yml");
    ASSERT_TRUE(ran.has_value()) << ran.error().message;
    std::map<bool, int> kinds;
    for (const RuleTestResult& one : *ran) {
      ++kinds[one.must_match];
      EXPECT_TRUE(one.passed) << one.file << ": " << one.name << ": " << one.why;
    }
    EXPECT_GE(kinds[true], 1) << file;
    EXPECT_GE(kinds[false], 1) << file;
  }
  EXPECT_GE(rules, 25U);
}

TEST(Content, PipelinesAreRight) {
  std::vector<Problem> problems;
  const std::vector<std::string> files =
      FindFiles(std::string(RINGFENCE_SOURCE_DIR) + "/content/pipelines", {".yml"}).value();
  EXPECT_FALSE(files.empty());
  for (const std::string& file : files) {
    EXPECT_TRUE(Pipeline::Read(os::ReadText(file, 1 << 20U).value(), file, problems)) << file;
  }
  EXPECT_TRUE(problems.empty());
}

TEST(RuleTests, AFailingCaseFails) {
  std::string pipeline;
  const auto cases = ReadRuleTest(
      "match:\n  - name: a\n    repeat: 3\n    every: 10s\n    events:\n      - {time: 1000, F: "
      "x}\n"
      "no_match: []\n",
      "t.yml", pipeline);
  ASSERT_TRUE(cases.has_value()) << cases.error().message;
  ASSERT_EQ(cases->front().events.size(), 3U);
  EXPECT_NE(cases->front().events[2].find("21000"), std::string::npos);
  EXPECT_FALSE(ReadRuleTest("match: []\nno_match: []\nextra: 1\n", "t.yml", pipeline).has_value());
}

TEST(EventLines, LongEmptyAndUnfinishedLines) {
  const std::string path = ::testing::TempDir() + "/sigma-lines-" + std::to_string(std::rand());
  const std::string text = "{\"a\":1}\r\n\n  \n" + std::string(10 << 20U, 'x') + "\n{\"b\":2}\n" +
                           std::string(3 << 20U, 'y') + "\n{\"c\":3}";
  ASSERT_TRUE(os::WriteFile(path, AsBytes(text)).has_value());
  auto lines = EventLines::Open(path);
  ASSERT_TRUE(lines.has_value());
  std::vector<std::string> seen;
  EventLine line;
  while (lines->Next(line).value()) {
    seen.push_back(std::to_string(line.number) +
                   (line.too_long ? " long" : " " + std::string(line.text)));
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"1 {\"a\":1}", "4 long", "5 {\"b\":2}", "6 long",
                                            "7 {\"c\":3}"}));
  EXPECT_TRUE(os::RemoveFile(path).has_value());
}

}  // namespace
}  // namespace ringfence::sigma
