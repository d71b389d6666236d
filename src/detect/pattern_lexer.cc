#include "detect/pattern_lexer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/encoding.h"
#include "detect/series.h"

namespace ringfence::detect {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordBegin(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWord(char c) { return IsWordBegin(c) || IsDigit(c) || c == '-'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> All() {
    std::vector<Token> tokens;
    for (;;) {
      RINGFENCE_TRY(SkipBlanks());
      if (at_ == text_.size()) {
        tokens.push_back({Token::Kind::kEnd, "the end", {}, at_ + 1});
        return tokens;
      }
      RINGFENCE_ASSIGN(Token token, Next());
      tokens.push_back(std::move(token));
    }
  }

 private:
  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  Status SkipBlanks() {
    while (at_ < text_.size()) {
      if (IsSpace(Peek())) {
        ++at_;
      } else if (text_.substr(at_).starts_with("//")) {
        const std::size_t end = text_.find('\n', at_);
        at_ = end == std::string_view::npos ? text_.size() : end;
      } else if (text_.substr(at_).starts_with("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) {
          return PatternError(at_ + 1, "a comment that does not end");
        }
        at_ = end + 2;
      } else {
        break;
      }
    }
    return {};
  }

  Result<Token> Next() {
    const std::size_t column = at_ + 1;
    const char c = Peek();
    if (c == '\'') {
      RINGFENCE_ASSIGN(std::string text, Quoted());
      return Token{Token::Kind::kLiteral, {}, Literal(std::move(text)), column};
    }
    if ((c == 't' || c == 'h' || c == 'b') && Peek(1) == '\'') {
      ++at_;
      return Prefixed(c, column);
    }
    if (IsDigit(c) || ((c == '-' || c == '+') && (IsDigit(Peek(1)) || Peek(1) == '.')) ||
        (c == '.' && IsDigit(Peek(1)))) {
      return Number(column);
    }
    if (IsWordBegin(c)) {
      std::size_t end = at_;
      while (end < text_.size() && IsWord(text_[end])) {
        ++end;
      }
      std::string word(text_.substr(at_, end - at_));
      at_ = end;
      if (word == "true" || word == "false") {
        return Token{Token::Kind::kLiteral, word, Literal(word == "true"), column};
      }
      return Token{Token::Kind::kWord, std::move(word), {}, column};
    }
    for (const std::string_view symbol :
         {"!=", "<>", "<=", ">=", "==", "=", "<", ">", "[", "]", "(", ")", ":", ".", ",", "*"}) {
      if (text_.substr(at_).starts_with(symbol)) {
        at_ += symbol.size();
        return Token{Token::Kind::kSymbol, std::string(symbol), {}, column};
      }
    }
    return PatternError(column, "a character that has no meaning here");
  }

  // From one quotation mark to the next; \' and \\ stand for the second character.
  Result<std::string> Quoted() {
    const std::size_t column = at_ + 1;
    std::string text;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\'') {
        ++at_;
        return text;
      }
      if (c == '\\') {
        if (Peek(1) != '\'' && Peek(1) != '\\') {
          return PatternError(at_ + 1, "a backslash must be followed by ' or another backslash");
        }
        ++at_;
      }
      text += text_[at_];
    }
    return PatternError(column, "a text that does not end");
  }

  Result<Token> Prefixed(char prefix, std::size_t column) {
    RINGFENCE_ASSIGN(const std::string text, Quoted());
    if (prefix == 't') {
      const auto moment = ParseMoment(text);
      if (!moment) {
        return PatternError(column, "t'" + text.substr(0, 40) + "' is not a time");
      }
      return Token{Token::Kind::kLiteral, {}, Literal(*moment), column};
    }
    std::string lower = text;
    for (char& c : lower) {
      c = prefix == 'h' && c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    auto bytes = prefix == 'h' ? FromHex(lower) : FromBase64(text);
    if (!bytes.has_value()) {
      return PatternError(column,
                          std::string(prefix == 'h' ? "not hexadecimal: " : "not Base64: ") +
                              bytes.error().message);
    }
    return Token{Token::Kind::kLiteral, {}, Literal(std::move(*bytes)), column};
  }

  Result<Token> Number(std::size_t column) {
    std::size_t end = at_ + (Peek() == '-' || Peek() == '+' ? 1 : 0);
    const std::size_t digits = end;
    bool whole = true;
    while (end < text_.size() && (IsDigit(text_[end]) || (text_[end] == '.' && whole))) {
      whole = whole && text_[end] != '.';
      ++end;
    }
    if (whole && end - digits > 1 && text_[digits] == '0') {
      return PatternError(column, "a number must not begin with 0");
    }
    const char* begin = text_.data() + at_ + (Peek() == '+' ? 1 : 0);
    const char* stop = text_.data() + end;
    at_ = end;
    if (whole) {
      std::int64_t value = 0;
      const auto [used, error] = std::from_chars(begin, stop, value);
      if (error != std::errc() || used != stop) {
        return PatternError(column, "a whole number that 64 bits cannot hold");
      }
      return Token{Token::Kind::kLiteral, {}, Literal(value), column};
    }
    double value = 0;
    const auto [used, error] = std::from_chars(begin, stop, value);
    if (error != std::errc() || used != stop || !std::isfinite(value) || *(stop - 1) == '.') {
      return PatternError(column, "not a number");
    }
    return Token{Token::Kind::kLiteral, {}, Literal(value), column};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Error PatternError(std::size_t column, const std::string& what) {
  return Error{Code::kInvalidArgument, "column " + std::to_string(column) + ": " + what,
               "docs/formats/indicators.md has the language"};
}

std::optional<Moment> ParseMoment(std::string_view text) {
  if (text.size() < 20 || text.size() > 40 || text[10] != 'T' || text.back() != 'Z') {
    return std::nullopt;
  }
  const auto seconds = ParseSeriesTime(text);
  if (!seconds.has_value()) {
    return std::nullopt;
  }
  std::int64_t micros = 0;
  const std::string_view fraction = text.substr(19, text.size() - 20);
  if (!fraction.empty() && (fraction[0] != '.' || fraction.size() == 1)) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < 6; ++i) {  // further decimals are cut
    micros = micros * 10 + (i + 1 < fraction.size() ? fraction[i + 1] - '0' : 0);
  }
  return Moment{*seconds * 1'000'000 + micros};
}

Result<std::vector<Token>> LexPattern(std::string_view text) { return Lexer(text).All(); }

}  // namespace ringfence::detect
