#pragma once

// Tokens of Cedar text, policies and schemas alike.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::cedar {

struct Token {
  enum class Kind : std::uint8_t { kIdent, kString, kNumber, kSlot, kPunct, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;  // as written; of a string what is between the quotes
  std::size_t offset = 0;

  bool Is(std::string_view punct) const { return kind == Kind::kPunct && text == punct; }
  bool IsWord(std::string_view word) const { return kind == Kind::kIdent && text == word; }
};

struct Comment {
  std::string_view text;  // from the slashes on, without the line's end
  std::size_t offset = 0;
};

struct Tokens {
  std::vector<Token> tokens;  // the last is kEnd
  std::vector<Comment> comments;
};

// The text must outlive the tokens. Errors say line and column.
Result<Tokens> Tokenize(std::string_view text);

// "3:14" for an offset, both from 1; columns count bytes.
std::string LineColumn(std::string_view text, std::size_t offset);

// What a string literal means. `bad` gets what is wrong with it.
bool Unescape(std::string_view raw, std::string& out, std::string& bad);

// Words that cannot name an attribute or type: true, false, if, then, else, in, is, like, has.
bool IsReservedWord(std::string_view word);
// `[_a-zA-Z][_a-zA-Z0-9]*`, reserved or not.
bool IsIdentifier(std::string_view text);

// The pattern of `like`: characters, and stars.
struct PatternPart {
  bool star = false;
  char32_t character = 0;
  bool operator==(const PatternPart&) const = default;
};
using Pattern = std::vector<PatternPart>;
bool UnescapePattern(std::string_view raw, Pattern& out, std::string& bad);
std::string ToText(const Pattern& pattern);  // quoted
bool Matches(std::string_view text, const Pattern& pattern);

}  // namespace ringfence::cedar
