#include "sigma/plain.h"

#include <re2/re2.h>

#include <algorithm>

#include "sigma/matcher.h"
#include "sigma/yaml_value.h"

namespace ringfence::sigma {
namespace {

struct PlainValue {
  bool null = false;
  bool scalar = false;  // neither null nor a list or map
  std::string text;
};

std::string TextOf(const Json& value) {
  if (const auto* text = value.if_string()) {
    return {text->data(), text->size()};
  }
  if (value.is_bool()) {
    return value.get_bool() ? "true" : "false";
  }
  if (value.is_int64()) {
    return std::to_string(value.get_int64());
  }
  if (value.is_uint64()) {
    return std::to_string(value.get_uint64());
  }
  return NumberText(value.get_double());
}

void Collect(const Json& value, std::vector<PlainValue>& out) {
  if (const auto* list = value.if_array()) {
    out.push_back({});
    for (const Json& one : *list) {
      Collect(one, out);
    }
  } else if (value.is_object()) {
    out.push_back({});
  } else if (value.is_null()) {
    out.push_back({true, false, {}});
  } else {
    out.push_back({false, true, TextOf(value)});
  }
}

// Everything that `keys` from `at` on lead to.
void Follow(const Json& value, const std::vector<std::string>& keys, std::size_t at,
            std::vector<PlainValue>& out) {
  if (at == keys.size()) {
    Collect(value, out);
    return;
  }
  if (const auto* list = value.if_array()) {
    for (const Json& one : *list) {
      Follow(one, keys, at, out);
    }
  } else if (const auto* object = value.if_object()) {
    for (const auto& member : *object) {
      if (member.key() == keys[at] || (keys[at] == kAnyKey && keys.size() > 1)) {
        Follow(member.value(), keys, at + 1, out);
      }
    }
  }
}

std::vector<PlainValue> ValuesOf(const Json& event, const std::string& field) {
  std::vector<PlainValue> values;
  for (const auto& path : PathsOf(field)) {
    Follow(event, path, 0, values);
  }
  return values;
}

void AllValues(const Json& value, std::vector<PlainValue>& out) {
  if (const auto* object = value.if_object()) {
    for (const auto& member : *object) {
      AllValues(member.value(), out);
    }
  } else if (const auto* list = value.if_array()) {
    for (const Json& one : *list) {
      AllValues(one, out);
    }
  } else if (!value.is_null()) {
    out.push_back({false, true, TextOf(value)});
  }
}

// By the book: what is left of the pattern against what is left of the text, all cases kept.
bool Fits(const Pattern& pattern, const std::string& text) {
  std::vector<bool> reach(text.size() + 1, false);  // positions the parts so far can end at
  reach[0] = true;
  for (const Pattern::Part& part : pattern.parts) {
    std::vector<bool> next(text.size() + 1, false);
    for (std::size_t i = 0; i <= text.size(); ++i) {
      if (!reach[i]) {
        continue;
      }
      if (part.kind == Pattern::Kind::kText) {
        if (text.compare(i, part.text.size(), part.text) == 0) {
          next[i + part.text.size()] = true;
        }
      } else if (part.kind == Pattern::Kind::kAny) {
        std::fill(next.begin() + static_cast<std::ptrdiff_t>(i), next.end(), true);
      } else if (i < text.size()) {
        std::size_t end = i + 1;
        while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
          ++end;
        }
        next[end] = true;
      }
    }
    reach = std::move(next);
  }
  return reach[text.size()];
}

bool ReferenceHolds(const Test& test, std::string mine, const Json& event) {
  if (!test.cased) {
    mine = Fold(mine);
  }
  for (const PlainValue& other : ValuesOf(event, test.other)) {
    if (!other.scalar) {
      continue;
    }
    const std::string theirs = test.cased ? other.text : Fold(other.text);
    if ((test.place == Test::Place::kWhole && mine == theirs) ||
        (test.place == Test::Place::kStart && mine.starts_with(theirs)) ||
        (test.place == Test::Place::kEnd && mine.ends_with(theirs)) ||
        (test.place == Test::Place::kAnywhere && mine.find(theirs) != std::string::npos)) {
      return true;
    }
  }
  return false;
}

bool ValueHolds(const Test& test, const PlainValue& value, const Json& event) {
  if (!value.scalar) {
    return false;
  }
  double number = 0;
  switch (test.kind) {
    case Test::Kind::kPattern:
      return Fits(test.pattern, test.cased ? value.text : Fold(value.text));
    case Test::Kind::kRegex:
      return RE2::PartialMatch(value.text, test.regex);
    case Test::Kind::kCidr:
      return test.cidr.Has(value.text);
    case Test::Kind::kCompare:
      return (test.part == TimePart::kNone ? NumberOf(value.text, number)
                                           : PartOfTime(value.text, test.part, number)) &&
             test.bound.Holds(number);
    case Test::Kind::kFieldRef:
      return ReferenceHolds(test, value.text, event);
    case Test::Kind::kExists:
    case Test::Kind::kNull:
      break;
  }
  return false;
}

bool TestHolds(const Test& test, const Json& event) {
  std::vector<PlainValue> values;
  if (test.field.empty()) {
    AllValues(event, values);
  } else {
    values = ValuesOf(event, test.field);
  }
  if (test.kind == Test::Kind::kExists) {
    return values.empty() != test.exists;
  }
  if (test.kind == Test::Kind::kNull) {
    return std::none_of(values.begin(), values.end(),
                        [](const PlainValue& value) { return value.scalar; });
  }
  return std::any_of(values.begin(), values.end(),
                     [&](const PlainValue& value) { return ValueHolds(test, value, event); });
}

bool Holds(const Expression& expression, const ReadyRule& rule, const Json& event) {
  const auto holds = [&](const Expression& inner) { return Holds(inner, rule, event); };
  switch (expression.op) {
    case Expression::Op::kTest:
      return TestHolds(expression.test, event);
    case Expression::Op::kNot:
      return !holds(expression.of.front());
    case Expression::Op::kAll:
      return std::all_of(expression.of.begin(), expression.of.end(), holds);
    case Expression::Op::kAny:
      return std::any_of(expression.of.begin(), expression.of.end(), holds);
    case Expression::Op::kSelection:
      return holds(rule.selections[expression.selection]);
  }
  return false;
}

void ExplainTests(const Expression& expression, const Json& event,
                  std::vector<ExplainedTest>& out) {
  for (const Expression& inner : expression.of) {
    ExplainTests(inner, event, out);
  }
  if (expression.op != Expression::Op::kTest) {
    return;
  }
  const Test& test = expression.test;
  ExplainedTest explained{test.field, Describe(test), TestHolds(test, event), {}};
  std::vector<PlainValue> values;
  if (test.field.empty()) {
    AllValues(event, values);
    std::erase_if(values, [&](const PlainValue& one) { return !ValueHolds(test, one, event); });
  } else {
    values = ValuesOf(event, test.field);
  }
  for (const PlainValue& value : values) {
    if (value.scalar || value.null) {
      explained.values.push_back(value.null ? "null" : value.text);
    }
  }
  out.push_back(std::move(explained));
}

std::string_view OpText(Bound::Op op) {
  switch (op) {
    case Bound::Op::kLess:
      return "<";
    case Bound::Op::kLessOrEqual:
      return "<=";
    case Bound::Op::kGreater:
      return ">";
    case Bound::Op::kGreaterOrEqual:
      return ">=";
    case Bound::Op::kEqual:
      return "=";
    case Bound::Op::kNotEqual:
      return "!=";
  }
  return "";
}

std::string_view PartText(TimePart part) {
  static constexpr std::string_view kNames[] = {"",      "minute ", "hour ", "day ",
                                                "week ", "month ",  "year "};
  return kNames[static_cast<std::size_t>(part)];
}

}  // namespace

bool PlainMatches(const ReadyRule& rule, const Json& event) {
  return Holds(rule.condition, rule, event);
}

Explained Explain(const ReadyRule& rule, const Json& event) {
  Explained explained;
  explained.matches = PlainMatches(rule, event);
  for (std::size_t i = 0; i < rule.selections.size(); ++i) {
    ExplainedSelection selection{rule.names[i], Holds(rule.selections[i], rule, event), {}};
    ExplainTests(rule.selections[i], event, selection.tests);
    explained.selections.push_back(std::move(selection));
  }
  return explained;
}

std::string Describe(const Test& test) {
  const std::string cased = test.cased ? " (with its case)" : "";
  switch (test.kind) {
    case Test::Kind::kPattern:
      return "is \"" + test.pattern.Text() + "\"" + cased;
    case Test::Kind::kRegex:
      return "matches /" + test.regex + "/";
    case Test::Kind::kCidr:
      return "is in " + test.shown;
    case Test::Kind::kCompare:
      return std::string(PartText(test.part)) + std::string(OpText(test.bound.op)) + " " +
             test.shown;
    case Test::Kind::kFieldRef:
      return std::string(test.place == Test::Place::kWhole   ? "equals"
                         : test.place == Test::Place::kStart ? "starts with"
                         : test.place == Test::Place::kEnd   ? "ends with"
                                                             : "contains") +
             " the field " + test.other + cased;
    case Test::Kind::kExists:
      return test.exists ? "is there" : "is not there";
    case Test::Kind::kNull:
      return "is null or not there";
  }
  return {};
}

}  // namespace ringfence::sigma
