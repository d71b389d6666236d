#pragma once

// The matcher that can be read in a minute: one rule, one event, every test asked in turn. It is
// what `rule explain` shows, and what the fast matcher is held against in tests; the two share
// the rules' expressions and nothing of the matching.

#include <string>
#include <vector>

#include "base/json.h"
#include "sigma/ruleset.h"

namespace ringfence::sigma {

struct ExplainedTest {
  std::string field;  // empty: any value
  std::string test;   // "contains \"mimikatz\""
  bool holds = false;
  std::vector<std::string>
      values;  // that the event has in this field; of keywords those that match
};

struct ExplainedSelection {
  std::string name;
  bool holds = false;
  std::vector<ExplainedTest> tests;
};

struct Explained {
  bool matches = false;
  std::vector<ExplainedSelection> selections;
};

bool PlainMatches(const ReadyRule& rule, const Json& event);
Explained Explain(const ReadyRule& rule, const Json& event);
std::string Describe(const Test& test);

}  // namespace ringfence::sigma
