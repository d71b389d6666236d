// Goal: each kind of correlation reports when its condition holds, by group and within its time
// span, and not otherwise; correlations of correlations work, circles are refused; memory is
// bounded. Method: small rule files and made-up events with times in seconds.

#include "sigma/correlate.h"

#include "sigma/test_support.h"

namespace ringfence::sigma {
namespace {

std::string Base(const std::string& name) {
  return "---\ntitle: " + name + "\nname: " + name +
         "\nlogsource: {product: t}\ndetection:\n    s: {kind: " + name + "}\n    condition: s\n";
}

struct Ev {
  int second;
  std::string kind;
  std::string rest = {};  // more members
};

// Times of what is reported, in seconds, with the group's first value: "12 ann".
std::vector<std::string> Reported(const std::string& rules, const std::vector<Ev>& events,
                                  EngineOptions options = {}) {
  Engine engine(testing::SetOf(rules), options);
  std::vector<std::string> reported;
  std::uint64_t number = 0;
  for (const Ev& event : events) {
    const std::string json =
        "{\"time\":" + std::to_string(1'700'000'000'000LL + event.second * 1000LL) +
        ",\"kind\":\"" + event.kind + "\"" + event.rest + "}";
    const Status fed = engine.Feed(++number, json, false, [&](const Finding& finding) {
      reported.push_back(
          finding.correlation == nullptr
              ? finding.rule->title
              : std::to_string((finding.time->time_since_epoch().count() - 1'700'000'000'000LL) /
                               1000) +
                    (finding.correlation->group.empty()
                         ? ""
                         : " " + finding.correlation->group.front().second));
    });
    EXPECT_TRUE(fed.has_value());
  }
  return reported;
}

std::string By(const std::string& user) { return ",\"user\":\"" + user + "\""; }

std::string Count(const std::string& type, const std::string& condition,
                  const std::string& rules = "[a]") {
  return "title: C\nname: c\ncorrelation:\n    type: " + type + "\n    rules: " + rules +
         "\n    group-by: [user]\n    timespan: 10s\n    condition: " + condition + "\n";
}

using Texts = std::vector<std::string>;

TEST(Correlate, EventCount) {
  const std::string rules = Count("event_count", "{gte: 3}") + Base("a");
  EXPECT_EQ(Reported(rules, {{0, "a", By("x")},
                             {1, "a", By("y")},
                             {2, "a", By("x")},
                             {3, "b", By("x")},
                             {9, "a", By("x")},
                             {10, "a", By("x")}}),
            Texts{"9 x"});
  EXPECT_EQ(Reported(rules, {{0, "a", By("x")}, {6, "a", By("x")}, {12, "a", By("x")}}), Texts{});
  EXPECT_EQ(Reported(rules, {{0, "a"}, {1, "a"}, {2, "a"}}), Texts{});  // no group
  EXPECT_EQ(Reported(Count("event_count", "{gt: 3}") + Base("a"),
                     {{0, "a", By("x")}, {1, "a", By("x")}, {2, "a", By("x")}, {3, "a", By("x")}}),
            Texts{"3 x"});
}

TEST(Correlate, EventCountWithAnUpperBoundIsJudgedWhenTheWindowIsOver) {
  const std::string rules = Count("event_count", "{lt: 3}") + Base("a");
  EXPECT_EQ(Reported(rules, {{0, "a", By("x")}, {5, "a", By("x")}, {11, "z"}}), Texts{"10 x"});
  EXPECT_EQ(Reported(rules, {{0, "a", By("x")}, {1, "a", By("x")}, {2, "a", By("x")}, {11, "z"}}),
            Texts{});
  EXPECT_EQ(Reported(rules, {{0, "a", By("x")}, {5, "a", By("x")}}), Texts{});  // not over
  EXPECT_EQ(Reported(Count("event_count", "{eq: 2}") + Base("a"),
                     {{0, "a", By("x")}, {5, "a", By("x")}, {11, "z"}}),
            Texts{"10 x"});
}

TEST(Correlate, ValueCount) {
  const std::string rules = Count("value_count", "{field: ip, gte: 2}") + Base("a");
  EXPECT_EQ(Reported(rules, {{0, "a", By("x") + ",\"ip\":1"},
                             {1, "a", By("x") + ",\"ip\":1"},
                             {2, "a", By("x") + ",\"ip\":2"}}),
            Texts{"2 x"});
  EXPECT_EQ(Reported(rules, {{0, "a", By("x") + ",\"ip\":1"}, {1, "a", By("y") + ",\"ip\":2"}}),
            Texts{});
}

TEST(Correlate, SumsAveragesPercentiles) {
  const auto v = [](int value) { return By("x") + ",\"n\":" + std::to_string(value); };
  EXPECT_EQ(
      Reported(
          Count("value_sum", "{field: n, gt: 10}") + Base("a"),
          {{0, "a", v(5)}, {1, "a", v(5)}, {2, "a", v(1)}, {3, "a", By("x") + ",\"n\":\"q\""}}),
      Texts{"2 x"});
  const std::string average = Count("value_avg", "{field: n, gte: 40, lte: 60}") + Base("a");
  EXPECT_EQ(Reported(average, {{0, "a", v(10)}, {5, "a", v(90)}, {10, "z"}}), Texts{"10 x"});
  EXPECT_EQ(Reported(average, {{0, "a", v(90)}, {5, "a", v(90)}, {10, "z"}}), Texts{});
  const std::string percentile =
      Count("value_percentile", "{field: n, percentile: 90, gt: 50}") + Base("a");
  std::vector<Ev> events;
  for (int i = 1; i <= 9; ++i) {
    events.push_back({i / 2, "a", v(i)});
  }
  events.push_back({6, "a", v(1000)});
  events.push_back({10, "z"});
  EXPECT_EQ(Reported(percentile, events), Texts{});  // nine of ten are at most 9
  events.insert(events.begin(), {0, "a", v(1000)});
  EXPECT_EQ(Reported(percentile, events), Texts{"10 x"});
}

TEST(Correlate, Temporal) {
  const std::string two =
      "title: C\ncorrelation:\n    type: temporal\n    rules: [a, b]\n"
      "    group-by: [user]\n    timespan: 10s\n" +
      Base("a") + Base("b");
  EXPECT_EQ(Reported(two, {{0, "b", By("x")}, {9, "a", By("x")}}), Texts{"9 x"});
  EXPECT_EQ(Reported(two, {{0, "b", By("x")}, {11, "a", By("x")}}), Texts{});
  EXPECT_EQ(Reported(two, {{0, "b", By("x")}, {1, "a", By("y")}}), Texts{});
  std::string ordered = two;
  ordered.replace(ordered.find("temporal"), 8, "temporal_ordered");
  EXPECT_EQ(Reported(ordered, {{0, "b", By("x")}, {1, "a", By("x")}}), Texts{});
  EXPECT_EQ(Reported(ordered, {{0, "a", By("x")}, {1, "a", By("x")}, {2, "b", By("x")}}),
            Texts{"2 x"});
  EXPECT_EQ(Reported(Count("temporal", "{gte: 2}", "[a, b, d]") + Base("a") + Base("b") + Base("d"),
                     {{0, "a", By("x")}, {1, "d", By("x")}}),
            Texts{"1 x"});
}

TEST(Correlate, AliasesJoinDifferentFields) {
  const std::string rules =
      "title: C\ncorrelation:\n    type: temporal\n    rules: [a, b]\n"
      "    group-by: [who]\n    timespan: 10s\n    aliases:\n        who:\n"
      "            a: src\n            b: dst\n" +
      Base("a") + Base("b");
  EXPECT_EQ(Reported(rules, {{0, "a", ",\"src\":1,\"dst\":2"}, {1, "b", ",\"src\":2,\"dst\":1"}}),
            Texts{"1 1"});
  EXPECT_EQ(Reported(rules, {{0, "a", ",\"src\":1,\"dst\":2"}, {1, "b", ",\"src\":1,\"dst\":2"}}),
            Texts{});
}

TEST(Correlate, GenerateReportsTheRulesToo) {
  EXPECT_EQ(Reported("generate: true\n" + Count("event_count", "{gte: 2}") + Base("a"),
                     {{0, "a", By("x")}, {1, "a", By("x")}}),
            (Texts{"a", "a", "1 x"}));
}

TEST(Correlate, CorrelationsOfCorrelations) {
  const std::string rules =
      "title: Top\ncorrelation:\n    type: temporal_ordered\n    rules: [c, b]\n"
      "    group-by: [user]\n    timespan: 60s\n---\n" +
      Count("event_count", "{gte: 2}") + Base("a") + Base("b");
  EXPECT_EQ(
      Reported(rules,
               {{0, "a", By("x")}, {1, "a", By("x")}, {30, "b", By("y")}, {31, "b", By("x")}}),
      Texts{"31 x"});
}

TEST(Correlate, CirclesAndMissingRulesAreRefused) {
  const std::string one =
      "title: A\nname: a1\ncorrelation: {type: temporal, rules: [b1], timespan: 1m}\n";
  const std::string two =
      "---\ntitle: B\nname: b1\ncorrelation: {type: temporal, rules: [a1], timespan: 1m}\n";
  EXPECT_NE(testing::FirstProblem(one + two).find("in a circle"), std::string::npos)
      << testing::FirstProblem(one + two);
  EXPECT_NE(testing::FirstProblem(one).find("there is no rule \"b1\""), std::string::npos);
  const std::string self =
      "title: A\nname: b1\ncorrelation: {type: temporal, rules: [b1], timespan: 1m}\n";
  EXPECT_NE(testing::FirstProblem(self).find("in a circle"), std::string::npos);
}

TEST(Correlate, ReadingErrors) {
  const auto problem = [](const std::string& body) {
    return testing::FirstProblem("title: C\ncorrelation: {" + body + "}\n");
  };
  EXPECT_NE(
      problem("type: near, rules: [a], timespan: 1m").find("correlation.type: \"near\" is none"),
      std::string::npos);
  EXPECT_NE(problem("type: event_count, rules: [a], timespan: 1y, condition: {gte: 1}")
                .find("correlation.timespan: \"1y\""),
            std::string::npos);
  EXPECT_NE(
      problem("type: event_count, rules: [a], timespan: 1m").find("correlation.condition: needs"),
      std::string::npos);
  EXPECT_NE(problem("type: value_count, rules: [a], timespan: 1m, condition: {gte: 1}")
                .find("correlation.condition.field: is missing"),
            std::string::npos);
  EXPECT_NE(problem("type: event_count, rules: [a], timespan: 1m, condition: {ge: 1}")
                .find("correlation.condition.ge: is not supported"),
            std::string::npos);
}

TEST(Correlate, GroupsAndEntriesAreBounded) {
  EngineOptions options;
  options.limits = {10, 5};
  Engine engine(testing::SetOf(Count("event_count", "{gte: 100}") + Base("a")), options);
  for (int i = 0; i < 1000; ++i) {
    const std::string json = "{\"time\":" + std::to_string(1'700'000'000'000LL + i) +
                             ",\"kind\":\"a\",\"user\":" + std::to_string(i % 50) + "}";
    ASSERT_TRUE(engine.Feed(1, json, false, [](const Finding&) {}).has_value());
  }
  EXPECT_GT(engine.dropped(), 700U);
}

TEST(Filters, TakeMatchesAway) {
  const std::string rule =
      "title: R\nname: r\nlogsource: {product: p}\ndetection:\n    s: {F: x}\n    condition: s\n";
  const auto filtered = [&](const std::string& product, const std::string& rules,
                            const std::string& condition) {
    return testing::SetOf(rule + "---\ntitle: no admins\nlogsource: {product: " + product +
                          "}\nfilter:\n    rules: " + rules +
                          "\n    selection: {U|startswith: adm_}\n    condition: " + condition +
                          "\n");
  };
  for (const char* condition : {"selection", "not selection"}) {
    const RuleSet set = filtered("p", "[r]", condition);
    EXPECT_FALSE(testing::BothMatch(set, R"({"F":"x","U":"adm_ann"})"));
    EXPECT_TRUE(testing::BothMatch(set, R"({"F":"x","U":"ann"})"));
  }
  EXPECT_FALSE(testing::BothMatch(filtered("p", "any", "selection"), R"({"F":"x","U":"adm_ann"})"));
  EXPECT_TRUE(testing::BothMatch(filtered("q", "any", "selection"), R"({"F":"x","U":"adm_ann"})"));
}

}  // namespace
}  // namespace ringfence::sigma
