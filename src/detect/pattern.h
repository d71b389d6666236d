#pragma once

// The STIX 2.1 patterning language: parsed here into a tree, matched by pattern_match.h.
// The whole language is read; what cannot be honoured (a regular expression that RE2 refuses) is
// an error that names it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace re2 {
class RE2;
}

namespace ringfence::detect {

inline constexpr std::size_t kPatternBytesMax = 64 * 1024;
inline constexpr std::size_t kPatternDepthMax = 64;    // of brackets
inline constexpr std::size_t kPatternTestsMax = 4096;  // comparisons and observations
inline constexpr std::size_t kPatternPathMax = 32;     // steps of an object path
inline constexpr std::int64_t kPatternRepeatsMax = 1000;

enum class Operator : std::uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kLike,
  kMatches,
  kSubset,
  kSuperset,
  kExists,
};

struct Moment {  // microseconds since 1970, which is what STIX times can tell apart
  std::int64_t us = 0;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};
// RFC 3339 in UTC with any number of decimals.
std::optional<Moment> ParseMoment(std::string_view text);

using Literal = std::variant<std::string, std::int64_t, double, bool, Bytes, Moment>;

struct PathStep {
  std::string name;  // a property or a key, when not an index
  bool is_index = false;
  bool any = false;  // [*]
  std::int64_t index = 0;
};

struct ObjectPath {
  std::string type;
  std::vector<PathStep> steps;
  std::string ToString() const;
};

struct Comparison {
  ObjectPath path;
  Operator op = Operator::kEqual;
  bool negated = false;
  std::vector<Literal> literals;          // one; any number for kIn; none for kExists
  std::shared_ptr<const re2::RE2> regex;  // for kMatches; shared by copies of the pattern
};

// A test of one object: a comparison, or several joined.
struct ObjectTest {
  enum class Kind : std::uint8_t { kComparison, kAnd, kOr };
  Kind kind = Kind::kComparison;
  Comparison comparison;
  std::vector<ObjectTest> parts;
};

// A test of observations.
struct ObservationTest {
  enum class Kind : std::uint8_t { kObject, kAnd, kOr, kFollowedBy, kWithin, kRepeats, kStartStop };
  Kind kind = Kind::kObject;
  ObjectTest object;     // kObject
  std::size_t leaf = 0;  // kObject: its number in the pattern
  std::vector<ObservationTest> parts;
  std::int64_t within_us = 0;
  std::int64_t repeats = 0;
  Moment start;
  Moment stop;
};

struct Pattern {
  ObservationTest root;
  std::size_t leaves = 0;
  std::vector<std::string> types;  // of objects that it looks at, sorted, each once
};

// Errors say where: "column 14: ...".
Result<Pattern> ParsePattern(std::string_view text);

}  // namespace ringfence::detect
