// From one line of a selection to tests: modifiers, placeholders, encodings.

#include <re2/re2.h>

#include <algorithm>
#include <optional>

#include "base/closest.h"
#include "base/encoding.h"
#include "sigma/expression.h"
#include "sigma/yaml_value.h"

namespace ringfence::sigma {
namespace {

constexpr std::size_t kVariantsMax = 4096;  // that one value may turn into
constexpr std::size_t kRegexBytesMax = 4096;

Error Wrong(std::string what, std::string hint = {}) {
  return {Code::kInvalidArgument, std::move(what), std::move(hint), {}};
}

constexpr std::string_view kModifiers[] = {
    "all",   "startswith", "endswith", "contains", "exists", "cased",        "neq",     "windash",
    "re",    "i",          "m",        "s",        "base64", "base64offset", "utf16le", "utf16be",
    "utf16", "wide",       "lt",       "lte",      "gt",     "gte",          "minute",  "hour",
    "day",   "week",       "month",    "year",     "cidr",   "expand",       "fieldref"};

// What the modifiers of one line say, checked against each other.
struct Modifiers {
  bool all = false;
  bool cased = false;
  bool negated = false;
  bool expand = false;
  std::string flags;  // of a regular expression
  Test::Kind kind = Test::Kind::kPattern;
  Test::Place place = Test::Place::kWhole;
  Bound::Op op = Bound::Op::kEqual;
  TimePart part = TimePart::kNone;
  std::vector<std::string> transforms;  // in order
};

struct TypeModifier {
  std::string_view name;
  Test::Kind kind;
  Bound::Op op = Bound::Op::kEqual;
  TimePart part = TimePart::kNone;
};
constexpr TypeModifier kTypes[] = {
    {"re", Test::Kind::kRegex},
    {"cidr", Test::Kind::kCidr},
    {"exists", Test::Kind::kExists},
    {"fieldref", Test::Kind::kFieldRef},
    {"lt", Test::Kind::kCompare, Bound::Op::kLess},
    {"lte", Test::Kind::kCompare, Bound::Op::kLessOrEqual},
    {"gt", Test::Kind::kCompare, Bound::Op::kGreater},
    {"gte", Test::Kind::kCompare, Bound::Op::kGreaterOrEqual},
    {"minute", Test::Kind::kCompare, Bound::Op::kEqual, TimePart::kMinute},
    {"hour", Test::Kind::kCompare, Bound::Op::kEqual, TimePart::kHour},
    {"day", Test::Kind::kCompare, Bound::Op::kEqual, TimePart::kDay},
    {"week", Test::Kind::kCompare, Bound::Op::kEqual, TimePart::kWeek},
    {"month", Test::Kind::kCompare, Bound::Op::kEqual, TimePart::kMonth},
    {"year", Test::Kind::kCompare, Bound::Op::kEqual, TimePart::kYear},
};

Status TakeType(const TypeModifier& type, std::string& seen, Modifiers& all) {
  const bool both_compare =
      all.kind == Test::Kind::kCompare && type.kind == Test::Kind::kCompare &&
      (all.part == TimePart::kNone) != (type.part == TimePart::kNone);  // hour|gte
  if (!seen.empty() && !both_compare) {
    return Wrong("the modifiers " + seen + " and " + std::string(type.name) +
                 " exclude each other");
  }
  all.kind = type.kind;
  if (type.part != TimePart::kNone) {
    all.part = type.part;
  } else {
    all.op = type.op;
  }
  seen = type.name;
  return {};
}

Result<Modifiers> ReadModifiers(const Item& item) {
  Modifiers all;
  std::string type_seen;
  for (const std::string& name : item.modifiers) {
    if (std::find(std::begin(kModifiers), std::end(kModifiers), name) == std::end(kModifiers)) {
      const auto near = Closest(name, {std::begin(kModifiers), std::end(kModifiers)});
      return Wrong("the modifier \"" + name + "\" is not in Sigma 2.1",
                   near ? "did you mean \"" + *near + "\"?" : "");
    }
    const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](const TypeModifier& one) { return one.name == name; });
    if (type != std::end(kTypes)) {
      RINGFENCE_TRY(TakeType(*type, type_seen, all));
    } else if (name == "i" || name == "m" || name == "s") {
      if (all.kind != Test::Kind::kRegex) {
        return Wrong("the modifier " + name + " has a meaning only after re");
      }
      all.flags += name;
    } else if (name == "all") {
      all.all = true;
    } else if (name == "cased") {
      all.cased = true;
    } else if (name == "neq") {
      all.negated = true;
    } else if (name == "expand") {
      all.expand = true;
    } else {
      if (name == "startswith" || name == "endswith" || name == "contains") {
        all.place = name == "startswith" ? Test::Place::kStart
                    : name == "endswith" ? Test::Place::kEnd
                                         : Test::Place::kAnywhere;
      }
      all.transforms.push_back(name);
    }
  }
  const bool only_places =
      std::all_of(all.transforms.begin(), all.transforms.end(), [](const std::string& name) {
        return name == "startswith" || name == "endswith" || name == "contains";
      });
  const bool takes_places = all.kind == Test::Kind::kPattern || all.kind == Test::Kind::kFieldRef;
  if (!all.transforms.empty() && !(takes_places && only_places) &&
      all.kind != Test::Kind::kPattern) {
    return Wrong("the modifiers " + all.transforms.front() + " and " + type_seen +
                 " exclude each other");
  }
  if (all.all && item.values.size() < 2) {
    return Wrong("the modifier all needs at least two values",
                 "leave it out, or list what must all be there");
  }
  if (item.field.empty() && (all.kind != Test::Kind::kPattern && all.kind != Test::Kind::kRegex)) {
    return Wrong("the modifier " + type_seen + " needs a field", "as in DestinationIp|cidr");
  }
  return all;
}

// Every way to fill the placeholders of one text.
Status Expand(const std::string& text, const Placeholders& placeholders,
              std::vector<std::string>& out) {
  std::vector<std::string> ways{""};
  std::size_t at = 0;
  while (at < text.size()) {
    std::vector<std::string> pieces{std::string(1, text[at])};
    std::size_t next = at + 1;
    const std::size_t end = text.find('%', at + 1);
    if (text[at] == '\\' && next < text.size() && text[next] == '%') {
      pieces = {"%"};
      next = at + 2;
    } else if (text[at] == '%' && end != std::string::npos && end > at + 1) {
      const std::string name = text.substr(at + 1, end - at - 1);
      auto found = placeholders.find(name);
      if (found == placeholders.end()) {
        found = placeholders.find("");
      }
      if (found == placeholders.end()) {
        return Error{Code::kFailedPrecondition, "the placeholder %" + name + "% has no values",
                     "give it some with a pipeline: vars and value_placeholders", name};
      }
      pieces = found->second;
      next = end + 1;
    }
    if (ways.size() * pieces.size() > kVariantsMax) {
      return Wrong("the placeholders expand to more than " + std::to_string(kVariantsMax) +
                   " values");
    }
    std::vector<std::string> longer;
    for (const std::string& way : ways) {
      for (const std::string& piece : pieces) {
        longer.push_back(way + piece);
      }
    }
    ways = std::move(longer);
    at = next;
  }
  out.insert(out.end(), ways.begin(), ways.end());
  return {};
}

// UTF-8 to UTF-16 bytes; what is no character becomes U+FFFD.
std::string Utf16(std::string_view text, bool big_endian, bool mark) {
  std::string out;
  const auto put = [&](std::uint32_t unit) {
    const char high = static_cast<char>((unit >> 8U) & 0xffU);
    const char low = static_cast<char>(unit & 0xffU);
    out += big_endian ? high : low;
    out += big_endian ? low : high;
  };
  if (mark) {
    put(0xfeff);
  }
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    std::uint32_t c = bytes == 1 ? lead : lead & (0xffU >> (bytes + 1));
    if (i + bytes > text.size()) {
      put(0xfffd);
      break;
    }
    for (std::size_t k = 1; k < bytes; ++k) {
      c = (c << 6U) | (static_cast<unsigned char>(text[i + k]) & 0x3fU);
    }
    i += bytes;
    if (c >= 0x10000) {
      put(0xd800 + ((c - 0x10000) >> 10U));
      put(0xdc00 + ((c - 0x10000) & 0x3ffU));
    } else {
      put(c);
    }
  }
  return out;
}

// The part of the Base64 text that does not depend on what stands before and after the value.
std::string Base64At(std::string_view text, std::size_t shift) {
  constexpr std::size_t kSkip[] = {0, 2, 3};
  const std::string whole = Base64(AsBytes(std::string(shift, ' ') + std::string(text)));
  const std::size_t tail = (text.size() + shift) % 3;  // 0: all of it is stable
  const std::size_t drop = tail == 0 ? 0 : tail == 1 ? 3 : 2;
  if (whole.size() <= kSkip[shift] + drop) {
    return {};
  }
  return whole.substr(kSkip[shift], whole.size() - kSkip[shift] - drop);
}

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}

constexpr std::string_view kDashes[] = {"-", "/", "\xe2\x80\x93", "\xe2\x80\x94", "\xe2\x80\x95"};

// Every dash that could begin a flag (something that is no word before it, a word after it), as
// each of the five characters.
Status WinDash(const Pattern& pattern, std::vector<Pattern>& out) {
  std::vector<Pattern> ways{Pattern{}};
  char before = ' ';
  for (const Pattern::Part& part : pattern.parts) {
    if (part.kind != Pattern::Kind::kText) {
      for (Pattern& way : ways) {
        way.Add(part.kind);
      }
      before = ' ';
      continue;
    }
    for (std::size_t i = 0; i < part.text.size();) {
      const std::string_view rest = std::string_view(part.text).substr(i);
      const auto* dash = std::find_if(std::begin(kDashes), std::end(kDashes),
                                      [&](std::string_view one) { return rest.starts_with(one); });
      const std::size_t bytes = dash == std::end(kDashes) ? 1 : dash->size();
      const bool flag = dash != std::end(kDashes) && !IsWordByte(before) && rest.size() > bytes &&
                        IsWordByte(rest[bytes]);
      if (!flag) {
        for (Pattern& way : ways) {
          way.Add(Pattern::Kind::kText, rest.substr(0, bytes));
        }
        before = dash == std::end(kDashes) ? rest[0] : '-';
      } else {
        if (ways.size() * std::size(kDashes) > kVariantsMax) {
          return Wrong(
              "windash makes more than " + std::to_string(kVariantsMax) + " variants of this value",
              "split the value");
        }
        std::vector<Pattern> longer;
        for (const Pattern& way : ways) {
          for (const std::string_view one : kDashes) {
            longer.push_back(way);
            longer.back().Add(Pattern::Kind::kText, one);
          }
        }
        ways = std::move(longer);
        before = '-';
      }
      i += bytes;
    }
  }
  out.insert(out.end(), ways.begin(), ways.end());
  return {};
}

Status Transform(const std::string& name, std::vector<Pattern>& patterns) {
  std::vector<Pattern> out;
  for (Pattern& pattern : patterns) {
    if (name == "contains" || name == "startswith" || name == "endswith") {
      if (name != "startswith") {
        pattern.AnyBefore();
      }
      if (name != "endswith") {
        pattern.AnyAfter();
      }
      out.push_back(std::move(pattern));
      continue;
    }
    if (name == "windash") {
      RINGFENCE_TRY(WinDash(pattern, out));
      continue;
    }
    if (pattern.HasWildcard()) {
      return Wrong("the modifier " + name + " cannot encode a value with wildcards",
                   "escape * and ? with a backslash if they are meant as such, and put contains "
                   "after " +
                       name);
    }
    const std::string text = pattern.LiteralText();
    if (name == "base64") {
      out.push_back(Pattern::Literal(Base64(AsBytes(text))));
    } else if (name == "base64offset") {
      for (std::size_t shift = 0; shift < 3; ++shift) {
        const std::string encoded = Base64At(text, shift);
        if (encoded.empty()) {
          return Wrong("the value is too short for base64offset");
        }
        out.push_back(Pattern::Literal(encoded));
      }
    } else {
      out.push_back(Pattern::Literal(Utf16(text, name == "utf16be", name == "utf16")));
    }
  }
  patterns = std::move(out);
  return {};
}

Expression Join(std::vector<Expression> tests, bool all) {
  if (tests.size() == 1) {
    return std::move(tests.front());
  }
  Expression joined;
  joined.op = all ? Expression::Op::kAll : Expression::Op::kAny;
  joined.of = std::move(tests);
  return joined;
}

Result<Expression> PatternTests(const Test& base, const Scalar& value, const Modifiers& modifiers,
                                bool keyword) {
  Test test = base;
  if (value.kind == Scalar::Kind::kNull) {
    if (!modifiers.transforms.empty() || keyword) {
      return Wrong("null cannot be combined with " +
                   (keyword ? std::string("keywords") : modifiers.transforms.front()));
    }
    test.kind = Test::Kind::kNull;
    return Expression::Of(std::move(test));
  }
  std::vector<Pattern> patterns{value.kind == Scalar::Kind::kText ? Pattern::Parse(value.text)
                                                                  : Pattern::Literal(value.text)};
  for (const std::string& name : modifiers.transforms) {
    RINGFENCE_TRY(Transform(name, patterns));
  }
  std::vector<Expression> tests;
  for (Pattern& pattern : patterns) {
    if (keyword) {
      pattern.AnyBefore();
      pattern.AnyAfter();
    }
    test.pattern = modifiers.cased ? std::move(pattern) : pattern.Folded();
    tests.push_back(Expression::Of(test));
  }
  return Join(std::move(tests), false);
}

Result<Expression> RegexTest(Test test, const Scalar& value, const Modifiers& modifiers) {
  if (value.kind == Scalar::Kind::kNull) {
    return Wrong("null is no regular expression");
  }
  if (value.text.size() > kRegexBytesMax) {
    return Wrong("the regular expression is longer than " + std::to_string(kRegexBytesMax) +
                 " bytes");
  }
  test.regex = (modifiers.flags.empty() ? "" : "(?" + modifiers.flags + ")") + value.text;
  const RE2 regex(test.regex, RE2::Quiet);
  if (!regex.ok()) {
    return Wrong("the regular expression cannot be honoured: " + regex.error(),
                 "RE2 runs them, in linear time: without lookaround and backreferences, and "
                 "repeating at most 1000 times");
  }
  return Expression::Of(std::move(test));
}

Result<Expression> ValueTests(const Test& base, const Scalar& value, const Modifiers& modifiers) {
  Test test = base;
  test.shown = value.kind == Scalar::Kind::kNull ? "null" : value.text;
  switch (test.kind) {
    case Test::Kind::kRegex:
      return RegexTest(std::move(test), value, modifiers);
    case Test::Kind::kCidr: {
      RINGFENCE_ASSIGN(test.cidr, Cidr::Parse(value.text));
      return Expression::Of(std::move(test));
    }
    case Test::Kind::kExists:
      if (value.kind != Scalar::Kind::kBool) {
        return Wrong("exists must be true or false");
      }
      test.exists = value.truth;
      return Expression::Of(std::move(test));
    case Test::Kind::kFieldRef:
      if (value.kind != Scalar::Kind::kText || value.text.empty()) {
        return Wrong("fieldref needs the name of a field");
      }
      test.other = value.text;
      return Expression::Of(std::move(test));
    case Test::Kind::kCompare:
      if (value.kind != Scalar::Kind::kNumber) {
        return Wrong("\"" + value.text + "\" is no number, and the comparison needs one",
                     "write it without quotes");
      }
      test.bound = {modifiers.op, value.number};
      return Expression::Of(std::move(test));
    case Test::Kind::kPattern:
    case Test::Kind::kNull:
      break;
  }
  return PatternTests(test, value, modifiers, test.field.empty());
}

}  // namespace

Expression Expression::Of(Test test) {
  Expression leaf;
  leaf.op = Op::kTest;
  leaf.test = std::move(test);
  return leaf;
}

Expression Expression::Not(Expression expression) {
  Expression negated;
  negated.op = Op::kNot;
  negated.of.push_back(std::move(expression));
  return negated;
}

Result<Expression> Compile(const Item& item, const Placeholders& placeholders) {
  RINGFENCE_ASSIGN(const Modifiers modifiers, ReadModifiers(item));
  Test base;
  base.field = item.field;
  base.kind = modifiers.kind;
  base.cased = modifiers.cased;
  base.part = modifiers.part;
  base.place = modifiers.kind == Test::Kind::kFieldRef ? modifiers.place : Test::Place::kWhole;
  std::vector<Expression> tests;
  for (const Scalar& value : item.values) {
    if (!modifiers.expand || value.kind != Scalar::Kind::kText) {
      RINGFENCE_ASSIGN(Expression one, ValueTests(base, value, modifiers));
      tests.push_back(std::move(one));
      continue;
    }
    std::vector<std::string> texts;
    RINGFENCE_TRY(Expand(value.text, placeholders, texts));
    std::vector<Expression> any;
    for (std::string& text : texts) {
      RINGFENCE_ASSIGN(Expression one, ValueTests(base, Scalar::Text(std::move(text)), modifiers));
      any.push_back(std::move(one));
    }
    tests.push_back(Join(std::move(any), false));
  }
  Expression joined = Join(std::move(tests), modifiers.all);
  return modifiers.negated ? Expression::Not(std::move(joined)) : std::move(joined);
}

}  // namespace ringfence::sigma
