#pragma once

// Sigma rules as they are written (this file) and as they are evaluated (expression.h). What is
// here is what the YAML says: modifiers are still names and values still text, so that processing
// pipelines can change fields, values and log sources before anything is compiled.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace ringfence::sigma {

inline constexpr std::size_t kSelectionsMax = 256;  // of one rule
inline constexpr std::size_t kValuesMax = 16384;    // of one field in one selection
inline constexpr std::size_t kConditionBytesMax = 8192;
inline constexpr std::size_t kConditionDepthMax = 64;  // parentheses and `not`s

// Where something stands, for messages.
struct Place {
  std::string file;
  int line = 0;
};

struct Problem {
  Place place;
  std::string field;  // "detection.selection.Image|foo"; may be empty
  std::string what;
  std::string hint = {};

  std::string Text() const;  // "rules/a.yml:12: detection.selection: ... (hint)"
};

// A value as YAML means it: without quotes, null, a truth value or a number may be meant.
struct Scalar {
  enum class Kind : std::uint8_t { kNull, kText, kNumber, kBool };
  Kind kind = Kind::kText;
  std::string text;  // of a number its shortest form: "1", "1.5"
  double number = 0;
  bool truth = false;
  int line = 0;

  static Scalar Text(std::string text) { return {Kind::kText, std::move(text)}; }
};

// One line of a selection: `Image|endswith: [...]`. No field: a keyword, looked for everywhere.
struct Item {
  std::string field;
  std::vector<std::string> modifiers;
  std::vector<Scalar> values;
  int line = 0;

  std::string Name() const;  // "Image|endswith"
};

// What a selection demands: one line, all of several blocks, or any of them.
struct Block {
  enum class Kind : std::uint8_t { kItem, kAll, kAny };
  Kind kind = Kind::kAll;
  Item item;
  std::vector<Block> blocks;
};

struct Selection {
  std::string name;
  Block block;
  int line = 0;
};

struct LogSource {
  std::string category;
  std::string product;
  std::string service;

  auto operator<=>(const LogSource&) const = default;
  // Every part that `wanted` names is the same here.
  bool Has(const LogSource& wanted) const;
  std::string Text() const;  // "windows/process_creation"
};

struct Detection {
  std::vector<Selection> selections;
  std::vector<std::string> conditions;  // several mean any of them
  int condition_line = 0;
};

enum class CorrelationType : std::uint8_t {
  kEventCount,
  kValueCount,
  kTemporal,
  kTemporalOrdered,
  kValueSum,
  kValueAverage,
  kValuePercentile,
};

struct Bound {
  enum class Op : std::uint8_t {
    kLess,
    kLessOrEqual,
    kGreater,
    kGreaterOrEqual,
    kEqual,
    kNotEqual
  };
  Op op = Op::kGreaterOrEqual;
  double value = 0;

  bool Holds(double number) const;
};

struct Correlation {
  CorrelationType type = CorrelationType::kEventCount;
  std::vector<std::string> rules;  // ids or names, as written
  std::vector<std::string> group_by;
  Milliseconds timespan{0};
  std::vector<Bound> bounds;  // all must hold
  std::string field;          // what is counted, summed...
  double percentile = 50;
  std::map<std::string, std::map<std::string, std::string>> aliases;  // alias -> rule -> field
  bool generate = false;  // the rules referred to are reported on their own too
};

struct Filter {
  std::vector<std::string> rules;  // empty: of every rule with this log source
  Detection detection;
};

enum class RuleKind : std::uint8_t { kDetection, kCorrelation, kFilter };

struct Rule {
  RuleKind kind = RuleKind::kDetection;
  Place place;
  std::string title;
  std::string id;    // may be empty
  std::string name;  // may be empty
  std::string status;
  std::string level;
  std::string description;
  std::string author;
  std::string taxonomy;
  std::vector<std::string> tags;
  std::vector<std::string> false_positives;
  std::vector<std::string> fields;
  LogSource logsource;
  Detection detection;
  Correlation correlation;
  Filter filter;

  // What a match is reported as: the id, else the name, else "file:line".
  std::string Key() const;
};

// Reads all documents of one file. Every problem is added; rules without one are returned.
// `action: global` of old rule files is honoured: its document is laid under those after it.
std::vector<Rule> ReadRules(std::string_view text, const std::string& file,
                            std::vector<Problem>& problems);

}  // namespace ringfence::sigma
