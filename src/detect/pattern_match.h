#pragma once

// Whether observations satisfy a pattern.

#include <cstdint>
#include <deque>
#include <vector>

#include "detect/observation.h"
#include "detect/pattern.h"

namespace ringfence::detect {

// Whether some object of the observation satisfies a test.
bool Matches(const ObjectTest& test, const Observation& observation);

// A pattern that is fed one observation after the other. Keeps, for each bracket of the
// pattern, when and where it was last satisfied, at most kHitsMax of each; so memory is bounded,
// and of a flood the latest counts.
class PatternMatcher {
 public:
  static constexpr std::size_t kHitsMax = 512;
  static constexpr std::size_t kCombinationsMax = 4096;

  explicit PatternMatcher(Pattern pattern);

  // True when the pattern is satisfied by this observation together with those before. What
  // satisfied it is then forgotten: it takes new observations to match again. `number` tells
  // observations apart, and grows.
  bool Feed(const Observation& observation, std::uint64_t number);

  // The observations of the last match.
  const std::vector<std::uint64_t>& matched() const { return matched_; }
  const Pattern& pattern() const { return pattern_; }

 private:
  struct Hit {
    std::uint64_t number;
    Moment first;
    Moment last;
    bool timed;
  };
  // A set of observations that satisfies some part of the pattern.
  struct Binding {
    std::vector<std::uint64_t> numbers;  // sorted
    Moment first;
    Moment last;
    bool timed = true;
  };
  using Bindings = std::vector<Binding>;

  bool TestLeaves(const ObservationTest& test, const Observation& observation, const Hit& hit);
  Bindings Evaluate(const ObservationTest& test) const;
  Bindings Both(const Bindings& left, const Bindings& right, bool ordered) const;
  static Bindings Repeated(Bindings bindings, std::int64_t times);

  Pattern pattern_;
  std::vector<std::deque<Hit>> hits_;  // for each leaf
  std::vector<std::uint64_t> matched_;
};

}  // namespace ringfence::detect
