#pragma once

// Many rules made ready together: pipelines applied, filters put in place, correlations resolved.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sigma/expression.h"
#include "sigma/pipeline.h"
#include "sigma/rule.h"

namespace ringfence::sigma {

inline constexpr std::size_t kRulesMax = 100'000;
inline constexpr std::size_t kCorrelationDepthMax = 8;  // correlations of correlations

struct ReadyRule {
  Rule rule;
  std::vector<std::string> names;  // of the selections
  std::vector<Expression> selections;
  Expression condition;
  bool reported = true;  // false: only correlations look at it
};

struct ReadyCorrelation {
  struct Part {
    bool correlation = false;
    std::size_t index = 0;  // into rules or correlations
    std::string written;    // as the correlation refers to it: aliases use this
  };
  Rule rule;
  std::vector<Part> parts;
  bool reported = true;
};

// A rule that is right but cannot be evaluated here, and why: it is not guessed at.
struct LeftOut {
  Place place;
  std::string key;
  std::string title;
  std::string why;
  std::string hint;
};

struct RuleSet {
  std::vector<ReadyRule> rules;
  std::vector<ReadyCorrelation> correlations;  // each after those it refers to
  std::vector<LeftOut> left_out;
  std::size_t filters = 0;
};

// Problems: an id or name twice, a reference to nothing, a cycle. What has one is not in the set.
RuleSet MakeReady(std::vector<Rule> rules, const std::vector<Pipeline>& pipelines,
                  std::vector<Problem>& problems);

struct Loaded {
  std::vector<Rule> rules;
  std::size_t files = 0;
};

// Reads a rule file, or every .yml and .yaml below a folder (those that end with .test.yml are
// tests, not rules). Problems are added; an error is a path that cannot be read at all.
Result<Loaded> LoadRules(const std::string& path, std::vector<Problem>& problems);

// Files below `path` whose names end with one of `endings`, sorted; `path` itself when it is a
// file.
Result<std::vector<std::string>> FindFiles(const std::string& path,
                                           const std::vector<std::string_view>& endings);

}  // namespace ringfence::sigma
