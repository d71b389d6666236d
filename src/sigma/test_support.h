#pragma once

// Shared by the tests and fuzzers of sigma/.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "sigma/engine.h"
#include "sigma/matcher.h"
#include "sigma/plain.h"
#include "sigma/ruleset.h"

namespace ringfence::sigma::testing {

// A rule around a detection, which must be indented by four.
inline std::string RuleText(std::string_view detection) {
  return "title: Test\nlogsource:\n    product: test\ndetection:\n" + std::string(detection);
}

inline RuleSet SetOf(std::string_view text, const std::vector<Pipeline>& pipelines = {}) {
  std::vector<Problem> problems;
  auto rules = ReadRules(text, "test.yml", problems);
  RuleSet set = MakeReady(std::move(rules), pipelines, problems);
  for (const Problem& problem : problems) {
    ADD_FAILURE() << problem.Text() << "\n" << text;
  }
  return set;
}

// Whether the only rule of `set` matches, asked of both matchers, which must agree.
inline bool BothMatch(const RuleSet& set, const std::string& event) {
  const auto matcher = Matcher::Build(set);
  Matcher::Session session(*matcher);
  const auto fast = session.Match(event);
  EXPECT_TRUE(fast.has_value()) << event << (fast.has_value() ? "" : fast.error().message);
  const auto json = ParseJson(event, kEventBytesMax);
  EXPECT_TRUE(json.has_value()) << event;
  if (!fast.has_value() || !json.has_value() || set.rules.size() != 1) {
    ADD_FAILURE() << set.rules.size() << " rules";
    return false;
  }
  const bool plain = PlainMatches(set.rules.front(), *json);
  EXPECT_EQ(!(*fast)->empty(), plain) << event;
  for (int again = 0; again < 3; ++again) {  // values that come again are answered from memory
    const auto repeated = session.Match(event);
    EXPECT_TRUE(repeated.has_value() && !(*repeated)->empty() == plain) << event;
  }
  return plain;
}

inline std::string FirstProblem(std::string_view text) {
  std::vector<Problem> problems;
  auto rules = ReadRules(text, "test.yml", problems);
  (void)MakeReady(std::move(rules), {}, problems);
  return problems.empty() ? "" : problems.front().Text();
}

}  // namespace ringfence::sigma::testing
