#pragma once

// Words of a STIX pattern.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "detect/pattern.h"

namespace ringfence::detect {

struct Token {
  enum class Kind : std::uint8_t { kWord, kSymbol, kLiteral, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;  // of words and symbols
  Literal literal;
  std::size_t column = 0;  // from 1, in bytes

  bool Is(std::string_view symbol_or_word) const {
    return (kind == Kind::kWord || kind == Kind::kSymbol) && text == symbol_or_word;
  }
};

Error PatternError(std::size_t column, const std::string& what);
// Ends with a kEnd.
Result<std::vector<Token>> LexPattern(std::string_view text);

}  // namespace ringfence::detect
