#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/encoding.h"
#include "detect/ip_range.h"
#include "detect/pattern.h"
#include "detect/pattern_lexer.h"

namespace ringfence::detect {
namespace {

constexpr std::int64_t kRegexBytesMax = std::int64_t{8} << 20U;

// A symbol of the language to the operator.
std::optional<Operator> OperatorOf(const Token& token) {
  static constexpr std::pair<std::string_view, Operator> kTable[] = {
      {"=", Operator::kEqual},
      {"==", Operator::kEqual},
      {"!=", Operator::kNotEqual},
      {"<>", Operator::kNotEqual},
      {"<", Operator::kLess},
      {"<=", Operator::kLessEqual},
      {">", Operator::kGreater},
      {">=", Operator::kGreaterEqual},
      {"IN", Operator::kIn},
      {"LIKE", Operator::kLike},
      {"MATCHES", Operator::kMatches},
      {"ISSUBSET", Operator::kSubset},
      {"ISSUPERSET", Operator::kSuperset}};
  for (const auto& [text, op] : kTable) {
    if (token.Is(text)) {
      return op;
    }
  }
  return std::nullopt;
}

bool IsKeyword(const std::string& word) {
  static const std::set<std::string_view> kWords = {
      "AND",  "OR", "NOT",   "FOLLOWEDBY", "LIKE",    "MATCHES", "ISSUPERSET", "ISSUBSET", "EXISTS",
      "LAST", "IN", "START", "STOP",       "SECONDS", "WITHIN",  "REPEATS",    "TIMES"};
  return kWords.contains(word);
}

std::set<std::string> TypesOf(const ObjectTest& test) {
  if (test.kind == ObjectTest::Kind::kComparison) {
    return {test.comparison.path.type};
  }
  std::set<std::string> types;
  for (const ObjectTest& part : test.parts) {
    types.merge(TypesOf(part));
  }
  return types;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Pattern> All() {
    RINGFENCE_ASSIGN(pattern_.root, FollowedBy());
    if (Now().kind != Token::Kind::kEnd) {
      return Unexpected("the end of the pattern, AND, OR, FOLLOWEDBY or a qualifier");
    }
    pattern_.types.assign(types_.begin(), types_.end());
    return std::move(pattern_);
  }

 private:
  const Token& Now() const { return tokens_[at_]; }
  bool Take(std::string_view what) {
    if (!Now().Is(what)) {
      return false;
    }
    ++at_;
    return true;
  }
  Error Unexpected(const std::string& wanted) const {
    const Token& token = Now();
    return PatternError(token.column,
                        "expected " + wanted +
                            (token.kind == Token::Kind::kEnd ? ", but the pattern ends"
                             : token.text.empty()            ? ""
                                                  : ", found " + token.text.substr(0, 40)));
  }
  Status Need(std::string_view what) {
    if (!Take(what)) {
      return Unexpected("\"" + std::string(what) + "\"");
    }
    return {};
  }
  Status Count() {
    if (++tests_ > kPatternTestsMax) {
      return PatternError(Now().column, "more than " + std::to_string(kPatternTestsMax) + " tests");
    }
    return {};
  }

  // Parts joined by one word, which binds tighter than what calls this.
  template <typename Node, typename Inner>
  Result<Node> Joined(std::string_view word, typename Node::Kind kind, Inner inner) {
    RINGFENCE_ASSIGN(Node first, inner());
    if (!Now().Is(word)) {
      return first;
    }
    Node joined;
    joined.kind = kind;
    joined.parts.push_back(std::move(first));
    while (Take(word)) {
      RINGFENCE_ASSIGN(Node next, inner());
      joined.parts.push_back(std::move(next));
    }
    return joined;
  }

  using ObservationKind = ObservationTest::Kind;
  Result<ObservationTest> FollowedBy() {
    return Joined<ObservationTest>("FOLLOWEDBY", ObservationKind::kFollowedBy, [this] {
      return Joined<ObservationTest>("OR", ObservationKind::kOr, [this] {
        return Joined<ObservationTest>("AND", ObservationKind::kAnd,
                                       [this] { return Observation(); });
      });
    });
  }

  Result<ObservationTest> Observation() {
    RINGFENCE_TRY(Count());
    ObservationTest test;
    if (Take("[")) {
      RINGFENCE_ASSIGN(test.object, ObjectOr());
      RINGFENCE_TRY(Need("]"));
      test.leaf = pattern_.leaves++;
    } else if (Take("(")) {
      if (++depth_ > kPatternDepthMax) {
        return PatternError(Now().column, "brackets too deep");
      }
      RINGFENCE_ASSIGN(test, FollowedBy());
      RINGFENCE_TRY(Need(")"));
      --depth_;
    } else {
      return Unexpected("\"[\" or \"(\"");
    }
    return Qualified(std::move(test));
  }

  Result<ObservationTest> Qualified(ObservationTest test) {
    for (;;) {
      ObservationTest outer;
      if (Take("WITHIN")) {
        RINGFENCE_ASSIGN(const double seconds, Positive());
        RINGFENCE_TRY(Need("SECONDS"));
        outer.kind = ObservationKind::kWithin;
        outer.within_us = static_cast<std::int64_t>(std::min(seconds, 1e12) * 1e6);
      } else if (Take("REPEATS")) {
        const auto* times = std::get_if<std::int64_t>(&Now().literal);
        if (Now().kind != Token::Kind::kLiteral || times == nullptr || *times < 1 ||
            *times > kPatternRepeatsMax) {
          return Unexpected("how often, from 1 to " + std::to_string(kPatternRepeatsMax));
        }
        outer.repeats = *times;
        ++at_;
        RINGFENCE_TRY(Need("TIMES"));
        outer.kind = ObservationKind::kRepeats;
      } else if (Take("START")) {
        outer.kind = ObservationKind::kStartStop;
        RINGFENCE_ASSIGN(outer.start, Time());
        RINGFENCE_TRY(Need("STOP"));
        RINGFENCE_ASSIGN(outer.stop, Time());
        if (outer.stop <= outer.start) {
          return PatternError(Now().column, "STOP is not after START");
        }
      } else {
        return test;
      }
      if (++qualifiers_ > kPatternDepthMax) {
        return PatternError(Now().column, "too many qualifiers");
      }
      outer.parts.push_back(std::move(test));
      test = std::move(outer);
    }
  }

  Result<double> Positive() {
    const Literal& literal = Now().literal;
    const auto* whole = std::get_if<std::int64_t>(&literal);
    const auto* broken = std::get_if<double>(&literal);
    const double value = whole != nullptr    ? static_cast<double>(*whole)
                         : broken != nullptr ? *broken
                                             : 0;
    if (Now().kind != Token::Kind::kLiteral || value <= 0) {
      return Unexpected("a number above 0");
    }
    ++at_;
    return value;
  }

  Result<Moment> Time() {
    if (Now().kind == Token::Kind::kLiteral) {
      if (const auto* moment = std::get_if<Moment>(&Now().literal)) {
        ++at_;
        return *moment;
      }
      if (const auto* text = std::get_if<std::string>(&Now().literal)) {  // as STIX 2.0 wrote it
        if (const auto moment = ParseMoment(*text)) {
          ++at_;
          return *moment;
        }
      }
    }
    return Unexpected("a time such as t'2026-11-15T08:46:30Z'");
  }

  Result<ObjectTest> ObjectOr() {
    return Joined<ObjectTest>("OR", ObjectTest::Kind::kOr, [this] { return ObjectAnd(); });
  }

  Result<ObjectTest> ObjectAnd() {
    const std::size_t column = Now().column;
    RINGFENCE_ASSIGN(ObjectTest test,
                     Joined<ObjectTest>("AND", ObjectTest::Kind::kAnd, [this] { return Test(); }));
    if (test.kind != ObjectTest::Kind::kAnd) {
      return test;
    }
    // All of it must hold for one object, so there must be a type that every part can be about.
    std::set<std::string> common = TypesOf(test.parts.front());
    for (const ObjectTest& part : test.parts) {
      std::set<std::string> both;
      const std::set<std::string> types = TypesOf(part);
      std::set_intersection(common.begin(), common.end(), types.begin(), types.end(),
                            std::inserter(both, both.end()));
      common = std::move(both);
    }
    if (common.empty()) {
      return PatternError(column,
                          "AND inside [ ] joins tests of one object, these are of different types; "
                          "write [...] AND [...]");
    }
    return test;
  }

  Result<ObjectTest> Test() {
    RINGFENCE_TRY(Count());
    if (Take("(")) {
      if (++depth_ > kPatternDepthMax) {
        return PatternError(Now().column, "brackets too deep");
      }
      RINGFENCE_ASSIGN(ObjectTest inner, ObjectOr());
      RINGFENCE_TRY(Need(")"));
      --depth_;
      return inner;
    }
    ObjectTest test;
    Comparison& comparison = test.comparison;
    const bool before = Now().Is("NOT");
    if (before && tokens_[at_ + 1].Is("EXISTS")) {
      ++at_;
      comparison.negated = true;
    }
    if (Take("EXISTS")) {
      comparison.op = Operator::kExists;
      RINGFENCE_ASSIGN(comparison.path, Path());
      return test;
    }
    RINGFENCE_ASSIGN(comparison.path, Path());
    comparison.negated = Take("NOT");
    const auto op = OperatorOf(Now());
    if (!op) {
      return Unexpected("a comparison such as = or IN");
    }
    comparison.op = *op;
    ++at_;
    const std::size_t column = Now().column;
    RINGFENCE_TRY(Literals(comparison));
    RINGFENCE_TRY(Check(comparison, column));
    return test;
  }

  Status Literals(Comparison& comparison) {
    const auto one = [&]() -> Status {
      if (Now().kind != Token::Kind::kLiteral) {
        return Unexpected("a constant");
      }
      comparison.literals.push_back(Now().literal);
      ++at_;
      return {};
    };
    if (comparison.op != Operator::kIn) {
      return one();
    }
    RINGFENCE_TRY(Need("("));
    if (Take(")")) {
      return {};
    }
    do {
      RINGFENCE_TRY(one());
    } while (Take(","));
    return Need(")");
  }

  // The constant must suit the operator.
  Status Check(Comparison& comparison, std::size_t column) {
    const bool wants_text =
        comparison.op == Operator::kLike || comparison.op == Operator::kMatches ||
        comparison.op == Operator::kSubset || comparison.op == Operator::kSuperset;
    const bool wants_order =
        comparison.op == Operator::kLess || comparison.op == Operator::kLessEqual ||
        comparison.op == Operator::kGreater || comparison.op == Operator::kGreaterEqual;
    if (wants_order && std::holds_alternative<bool>(comparison.literals[0])) {
      return PatternError(column, "true and false have no order");
    }
    if (!wants_text) {
      return {};
    }
    const auto* text = std::get_if<std::string>(&comparison.literals[0]);
    if (text == nullptr) {
      return PatternError(column, "this comparison needs a text in quotation marks");
    }
    if (comparison.op == Operator::kMatches) {
      re2::RE2::Options options(re2::RE2::Quiet);
      options.set_max_mem(kRegexBytesMax);
      options.set_dot_nl(true);
      if (!IsUtf8(*text)) {
        options.set_encoding(re2::RE2::Options::EncodingLatin1);
      }
      auto regex = std::make_shared<re2::RE2>(*text, options);
      if (!regex->ok()) {
        return PatternError(column, "this regular expression cannot be used: " + regex->error());
      }
      comparison.regex = std::move(regex);
    } else if (comparison.op != Operator::kLike && !ParseIpRange(*text)) {
      return PatternError(column, "\"" + text->substr(0, 40) + "\" is no address and no range");
    }
    return {};
  }

  Result<ObjectPath> Path() {
    ObjectPath path;
    if (Now().kind != Token::Kind::kWord || IsKeyword(Now().text)) {
      return Unexpected("an object path such as file:name");
    }
    path.type = Now().text;
    ++at_;
    RINGFENCE_TRY(Need(":"));
    RINGFENCE_ASSIGN(PathStep first, Named());
    path.steps.push_back(std::move(first));
    for (;;) {
      if (path.steps.size() > kPatternPathMax) {
        return PatternError(Now().column, "an object path of too many steps");
      }
      if (Take(".")) {
        RINGFENCE_ASSIGN(PathStep step, Named());
        path.steps.push_back(std::move(step));
      } else if (Take("[")) {
        PathStep step;
        step.is_index = true;
        step.any = Take("*");
        if (!step.any) {
          const auto* index = std::get_if<std::int64_t>(&Now().literal);
          if (Now().kind != Token::Kind::kLiteral || index == nullptr) {
            return Unexpected("a number or *");
          }
          step.index = *index;
          ++at_;
        }
        RINGFENCE_TRY(Need("]"));
        path.steps.push_back(std::move(step));
      } else {
        types_.insert(path.type);
        return path;
      }
    }
  }

  Result<PathStep> Named() {
    PathStep step;
    const auto* text = std::get_if<std::string>(&Now().literal);
    if (Now().kind == Token::Kind::kWord) {
      step.name = Now().text;
    } else if (Now().kind == Token::Kind::kLiteral && !Now().text.empty()) {
      step.name = Now().text;  // a property called true
    } else if (Now().kind == Token::Kind::kLiteral && text != nullptr) {
      step.name = *text;
    } else {
      return Unexpected("the name of a property");
    }
    ++at_;
    return step;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::size_t tests_ = 0;
  std::size_t qualifiers_ = 0;
  std::set<std::string> types_;
  Pattern pattern_;
};

}  // namespace

std::string ObjectPath::ToString() const {
  std::string text = type + ":";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].is_index) {
      text += "[" + (steps[i].any ? "*" : std::to_string(steps[i].index)) + "]";
    } else {
      text += (i == 0 ? "" : ".") + steps[i].name;
    }
  }
  return text;
}

Result<Pattern> ParsePattern(std::string_view text) {
  if (text.size() > kPatternBytesMax) {
    return Error{Code::kInvalidArgument,
                 "the pattern is longer than " + std::to_string(kPatternBytesMax) + " bytes"};
  }
  RINGFENCE_ASSIGN(std::vector<Token> tokens, LexPattern(text));
  return Parser(std::move(tokens)).All();
}

}  // namespace ringfence::detect
