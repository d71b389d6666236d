// Conditions: `selection and not 1 of filter_*`.

#include <algorithm>
#include <optional>

#include "base/closest.h"
#include "sigma/expression.h"

namespace ringfence::sigma {
namespace {

Error Wrong(std::string what, std::string hint = {}) {
  return {Code::kInvalidArgument, std::move(what), std::move(hint), {}};
}

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == '*';
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

bool NameMatches(std::string_view pattern, std::string_view name) {
  Pattern parsed;
  while (!pattern.empty()) {
    const std::size_t star = pattern.find('*');
    parsed.Add(Pattern::Kind::kText, pattern.substr(0, star));
    if (star == std::string_view::npos) {
      break;
    }
    parsed.Add(Pattern::Kind::kAny);
    pattern.remove_prefix(star + 1);
  }
  return Matches(parsed, name);
}

class Parser {
 public:
  Parser(std::string_view text, const std::vector<std::string>& names)
      : text_(text), names_(names) {}

  Result<Expression> Parse() {
    RINGFENCE_TRY(Next());
    RINGFENCE_ASSIGN(Expression all, Or(0));
    if (!token_.empty()) {
      return Wrong("\"" + token_ + "\" where the condition should end",
                   "join its parts with and, or");
    }
    return all;
  }

 private:
  // The next word or parenthesis; empty at the end.
  Status Next() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
    token_.clear();
    if (at_ >= text_.size()) {
      return {};
    }
    const char c = text_[at_];
    if (c == '(' || c == ')') {
      token_ = c;
      ++at_;
      return {};
    }
    if (c == '|') {
      return Wrong("aggregation (\"|\") in a condition is obsolete and not supported",
                   "write a correlation rule instead");
    }
    while (at_ < text_.size() && IsWord(text_[at_])) {
      token_ += text_[at_++];
    }
    if (token_.empty()) {
      return Wrong(std::string("unexpected character \"") + c + "\" in the condition");
    }
    return {};
  }

  bool Is(std::string_view word) const { return Lower(token_) == word; }

  Result<Expression> Or(std::size_t depth) { return Chain(depth, "or"); }

  // Operands of `word`, each of what binds tighter.
  Result<Expression> Chain(std::size_t depth, std::string_view word) {
    const bool is_or = word == "or";
    Expression all;
    all.op = is_or ? Expression::Op::kAny : Expression::Op::kAll;
    while (true) {
      RINGFENCE_ASSIGN(Expression one, is_or ? Chain(depth, "and") : Not(depth));
      all.of.push_back(std::move(one));
      if (!Is(word)) {
        break;
      }
      RINGFENCE_TRY(Next());
    }
    if (all.of.size() == 1) {
      Expression only = std::move(all.of.front());
      return only;
    }
    return all;
  }

  Result<Expression> Not(std::size_t depth) {
    if (depth > kConditionDepthMax) {
      return Wrong("the condition is nested deeper than " + std::to_string(kConditionDepthMax));
    }
    if (Is("not")) {
      RINGFENCE_TRY(Next());
      RINGFENCE_ASSIGN(Expression inner, Not(depth + 1));
      return Expression::Not(std::move(inner));
    }
    if (token_ == "(") {
      RINGFENCE_TRY(Next());
      RINGFENCE_ASSIGN(Expression inner, Or(depth + 1));
      if (token_ != ")") {
        return Wrong("a parenthesis is not closed in the condition");
      }
      RINGFENCE_TRY(Next());
      return inner;
    }
    return Operand();
  }

  Result<Expression> Operand() {
    if (token_.empty() || token_ == ")" || Is("and") || Is("or") || Is("of")) {
      return Wrong(token_.empty() ? "the condition ends where a selection should be named"
                                  : "\"" + token_ + "\" where a selection should be named");
    }
    const std::string word = token_;
    RINGFENCE_TRY(Next());
    if (!Is("of")) {
      return Named(word);
    }
    const std::string quantity = Lower(word);
    if (quantity != "1" && quantity != "any" && quantity != "all") {
      return Wrong("\"" + word + " of\" is not supported", "use 1 of, any of or all of");
    }
    RINGFENCE_TRY(Next());
    const std::string pattern = token_;
    if (pattern.empty() || pattern == "(" || pattern == ")") {
      return Wrong("\"" + word + " of\" without a name after it", "as in: 1 of selection_*");
    }
    RINGFENCE_TRY(Next());
    return Several(quantity == "all", pattern);
  }

  Result<Expression> Several(bool all, const std::string& pattern) {
    Expression several;
    several.op = all ? Expression::Op::kAll : Expression::Op::kAny;
    const bool them = Lower(pattern) == "them";
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (them ? !names_[i].starts_with('_') : NameMatches(pattern, names_[i])) {
        several.of.push_back(Leaf(i));
      }
    }
    if (several.of.empty()) {
      return Wrong("no selection is named like \"" + pattern + "\"");
    }
    return several;
  }

  Result<Expression> Named(const std::string& name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found != names_.end()) {
      return Leaf(static_cast<std::size_t>(found - names_.begin()));
    }
    if (name.find('*') != std::string::npos) {
      return Wrong("\"" + name + "\" without a quantity", "as in: 1 of " + name);
    }
    const auto near = Closest(name, {names_.begin(), names_.end()});
    return Wrong("there is no selection \"" + name + "\"",
                 near ? "did you mean \"" + *near + "\"?" : "");
  }

  static Expression Leaf(std::size_t index) {
    Expression leaf;
    leaf.op = Expression::Op::kSelection;
    leaf.selection = index;
    return leaf;
  }

  std::string_view text_;
  const std::vector<std::string>& names_;
  std::size_t at_ = 0;
  std::string token_;
};

}  // namespace

Result<Expression> ParseCondition(std::string_view text, const std::vector<std::string>& names) {
  if (text.size() > kConditionBytesMax) {
    return Wrong("the condition is longer than " + std::to_string(kConditionBytesMax) + " bytes");
  }
  return Parser(text, names).Parse();
}

}  // namespace ringfence::sigma
