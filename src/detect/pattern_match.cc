#include "detect/pattern_match.h"

#include <algorithm>

#include "detect/compare.h"

namespace ringfence::detect {
namespace {

bool Matches(const ObjectTest& test, const Json& object, const Observation& observation) {
  const auto holds = [&](const ObjectTest& part) { return Matches(part, object, observation); };
  switch (test.kind) {
    case ObjectTest::Kind::kAnd:
      return std::all_of(test.parts.begin(), test.parts.end(), holds);
    case ObjectTest::Kind::kOr:
      return std::any_of(test.parts.begin(), test.parts.end(), holds);
    case ObjectTest::Kind::kComparison:
      break;
  }
  const Comparison& comparison = test.comparison;
  if (comparison.op == Operator::kExists) {
    const Json* type = object.get_object().if_contains("type");
    const bool same = type != nullptr && type->is_string() &&
                      std::string_view(type->get_string()) == comparison.path.type;
    return same && AnyValue(object, comparison.path, observation,
                            [](const Json&) { return true; }) != comparison.negated;
  }
  std::string_view name;
  for (const PathStep& step : comparison.path.steps) {
    name = step.is_index ? name : std::string_view(step.name);
  }
  return AnyValue(object, comparison.path, observation,
                  [&](const Json& value) { return Satisfies(comparison, value, name); });
}

}  // namespace

bool Matches(const ObjectTest& test, const Observation& observation) {
  return std::any_of(observation.objects.begin(), observation.objects.end(),
                     [&](const Json* object) { return Matches(test, *object, observation); });
}

PatternMatcher::PatternMatcher(Pattern pattern)
    : pattern_(std::move(pattern)), hits_(pattern_.leaves) {}

bool PatternMatcher::TestLeaves(const ObservationTest& test, const Observation& observation,
                                const Hit& hit) {
  if (test.kind == ObservationTest::Kind::kObject) {
    if (!detect::Matches(test.object, observation)) {
      return false;
    }
    std::deque<Hit>& hits = hits_[test.leaf];
    hits.push_back(hit);
    if (hits.size() > kHitsMax) {
      hits.pop_front();
    }
    return true;
  }
  bool any = false;
  for (const ObservationTest& part : test.parts) {
    any = TestLeaves(part, observation, hit) || any;
  }
  return any;
}

PatternMatcher::Bindings PatternMatcher::Both(const Bindings& left, const Bindings& right,
                                              bool ordered) const {
  Bindings all;
  // The latest first, so that the limit keeps what is near.
  for (auto b = right.rbegin(); b != right.rend(); ++b) {
    for (auto a = left.rbegin(); a != left.rend(); ++a) {
      if (all.size() >= kCombinationsMax) {
        break;
      }
      if (ordered && !(a->timed && b->timed && a->last <= b->first)) {
        continue;
      }
      Binding both;
      both.numbers.reserve(a->numbers.size() + b->numbers.size());
      std::merge(a->numbers.begin(), a->numbers.end(), b->numbers.begin(), b->numbers.end(),
                 std::back_inserter(both.numbers));
      if (std::adjacent_find(both.numbers.begin(), both.numbers.end()) != both.numbers.end()) {
        continue;  // one observation cannot stand for two
      }
      both.first = std::min(a->first, b->first);
      both.last = std::max(a->last, b->last);
      both.timed = a->timed && b->timed;
      all.push_back(std::move(both));
    }
  }
  std::reverse(all.begin(), all.end());
  return all;
}

PatternMatcher::Bindings PatternMatcher::Repeated(Bindings bindings, std::int64_t times) {
  const auto count = static_cast<std::size_t>(times);
  std::stable_sort(bindings.begin(), bindings.end(),
                   [](const Binding& a, const Binding& b) { return a.first < b.first; });
  Bindings all;
  // From each on, the next ones that share nothing: no other choice lies closer together.
  for (std::size_t begin = 0; begin + count <= bindings.size(); ++begin) {
    Binding whole = bindings[begin];
    std::size_t have = 1;
    for (std::size_t i = begin + 1; i < bindings.size() && have < count; ++i) {
      Binding wider = whole;
      wider.numbers.clear();
      std::merge(whole.numbers.begin(), whole.numbers.end(), bindings[i].numbers.begin(),
                 bindings[i].numbers.end(), std::back_inserter(wider.numbers));
      if (std::adjacent_find(wider.numbers.begin(), wider.numbers.end()) != wider.numbers.end()) {
        continue;
      }
      wider.first = std::min(whole.first, bindings[i].first);
      wider.last = std::max(whole.last, bindings[i].last);
      wider.timed = whole.timed && bindings[i].timed;
      whole = std::move(wider);
      ++have;
    }
    if (have == count) {
      all.push_back(std::move(whole));
    }
  }
  return all;
}

PatternMatcher::Bindings PatternMatcher::Evaluate(const ObservationTest& test) const {
  using Kind = ObservationTest::Kind;
  Bindings bindings;
  switch (test.kind) {
    case Kind::kObject:
      for (const Hit& hit : hits_[test.leaf]) {
        bindings.push_back({{hit.number}, hit.first, hit.last, hit.timed});
      }
      return bindings;
    case Kind::kOr:
      for (const ObservationTest& part : test.parts) {
        Bindings more = Evaluate(part);
        std::move(more.begin(), more.end(), std::back_inserter(bindings));
      }
      if (bindings.size() > kCombinationsMax) {
        bindings.erase(bindings.begin(),
                       bindings.end() - static_cast<std::ptrdiff_t>(kCombinationsMax));
      }
      return bindings;
    case Kind::kAnd:
    case Kind::kFollowedBy:
      bindings = Evaluate(test.parts.front());
      for (std::size_t i = 1; i < test.parts.size() && !bindings.empty(); ++i) {
        bindings = Both(bindings, Evaluate(test.parts[i]), test.kind == Kind::kFollowedBy);
      }
      return bindings;
    case Kind::kRepeats:
      return Repeated(Evaluate(test.parts.front()), test.repeats);
    case Kind::kWithin:
      bindings = Evaluate(test.parts.front());
      std::erase_if(bindings, [&](const Binding& binding) {
        return !binding.timed || binding.last.us - binding.first.us > test.within_us;
      });
      return bindings;
    case Kind::kStartStop:
      bindings = Evaluate(test.parts.front());
      std::erase_if(bindings, [&](const Binding& binding) {
        return !binding.timed || binding.first < test.start || binding.last >= test.stop;
      });
      return bindings;
  }
  return bindings;
}

bool PatternMatcher::Feed(const Observation& observation, std::uint64_t number) {
  Hit hit{number, observation.first.value_or(Moment{}), {}, observation.first.has_value()};
  hit.last = observation.last.value_or(hit.first);
  if (!TestLeaves(pattern_.root, observation, hit)) {
    return false;
  }
  Bindings bindings = Evaluate(pattern_.root);
  // The newest observation must have a part in it; of several, the tightest is told.
  std::erase_if(bindings, [&](const Binding& binding) {
    return !std::binary_search(binding.numbers.begin(), binding.numbers.end(), number);
  });
  if (bindings.empty()) {
    return false;
  }
  const auto tightest =
      std::min_element(bindings.begin(), bindings.end(), [](const Binding& a, const Binding& b) {
        return a.last.us - a.first.us < b.last.us - b.first.us;
      });
  matched_ = tightest->numbers;
  for (std::deque<Hit>& hits : hits_) {
    std::erase_if(hits, [&](const Hit& one) {
      return std::binary_search(matched_.begin(), matched_.end(), one.number);
    });
  }
  return true;
}

}  // namespace ringfence::detect
