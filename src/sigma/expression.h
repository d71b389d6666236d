#pragma once

// What a rule asks of an event, compiled: a tree of tests. Modifiers and placeholders are gone;
// each test is one question to the values of one field.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sigma/rule.h"
#include "sigma/text.h"

namespace ringfence::sigma {

struct Cidr {
  std::array<std::uint8_t, 16> address{};  // IPv4 as ::ffff:a.b.c.d
  int bits = 0;                            // of the 128

  static Result<Cidr> Parse(std::string_view text);
  bool Has(std::string_view address) const;  // false for text that is no address
};

enum class TimePart : std::uint8_t { kNone, kMinute, kHour, kDay, kWeek, kMonth, kYear };

// The part of a time: text as ISO 8601 writes it (taken as it stands: no conversion between
// zones), or a number of seconds or (from 10^11 on) milliseconds since 1970. False when `text` is
// no time.
bool PartOfTime(std::string_view text, TimePart part, double& number);

// The whole text as a number; false when it is none.
bool NumberOf(std::string_view text, double& number);

struct Test {
  enum class Kind : std::uint8_t {
    kPattern,  // text, with wildcards
    kRegex,    // RE2
    kCidr,
    kCompare,   // <, <=, >, >=, and = and != of a part of a time
    kFieldRef,  // another field of the same event
    kExists,
    kNull,  // absent, or null
  };
  enum class Place : std::uint8_t { kWhole, kStart, kEnd, kAnywhere };

  Kind kind = Kind::kPattern;
  std::string field;  // empty: any value of the event
  bool cased = false;
  Pattern pattern;    // folded unless cased
  std::string regex;  // with its flags in front
  Cidr cidr;
  Bound bound;
  TimePart part = TimePart::kNone;
  std::string other;  // kFieldRef
  Place place = Place::kWhole;
  bool exists = true;
  std::string shown;  // the value as the rule has it, for people

  std::string Key() const;  // tests with the same key have the same answer for every event
};

struct Expression {
  enum class Op : std::uint8_t { kTest, kAll, kAny, kNot, kSelection };
  Op op = Op::kAll;
  std::vector<Expression> of;
  Test test;
  std::size_t selection = 0;  // kSelection: the index

  static Expression Of(Test test);
  static Expression Not(Expression expression);
};

// Values for %placeholders%, from processing pipelines. An empty name stands for all others.
using Placeholders = std::map<std::string, std::vector<std::string>>;

// The tests that one line of a selection means. An error names the modifier or value; code
// kFailedPrecondition: a placeholder without values (field: its name).
Result<Expression> Compile(const Item& item, const Placeholders& placeholders);

// A condition over the selections' names, as a tree whose leaves are kSelection.
Result<Expression> ParseCondition(std::string_view text, const std::vector<std::string>& names);

}  // namespace ringfence::sigma
