#include "cedar/lexer.h"

#include <algorithm>
#include <array>

#include "base/encoding.h"
#include "cedar/limits.h"
#include "cedar/value.h"

namespace ringfence::cedar {
namespace {

bool IdentStart(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool Digit(char c) { return c >= '0' && c <= '9'; }
bool IdentPart(char c) { return IdentStart(c) || Digit(c); }

// How many bytes of white space (Unicode's) stand at the front.
std::size_t SpaceBytes(std::string_view text) {
  const char c = text.front();
  if (c == ' ' || (c >= '\t' && c <= '\r')) {
    return 1;
  }
  if (text.starts_with("\xc2\x85") || text.starts_with("\xc2\xa0")) {
    return 2;
  }
  static constexpr std::array<std::string_view, 7> kWide = {
      "\xe1\x9a\x80", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf",
      "\xe2\x81\x9f", "\xe3\x80\x80", "\xe2\x80\x8a"};
  for (const std::string_view wide : kWide) {
    if (text.starts_with(wide)) {
      return 3;
    }
  }
  const bool spaces = text.size() >= 3 && text.starts_with("\xe2\x80") &&
                      static_cast<unsigned char>(text[2]) >= 0x80 &&
                      static_cast<unsigned char>(text[2]) <= 0x8a;
  return spaces ? 3 : 0;
}

std::size_t PunctBytes(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kPairs = {
      "::", "==", "!=", "<=", ">=", "&&", "||"};
  for (const std::string_view pair : kPairs) {
    if (text.starts_with(pair)) {
      return 2;
    }
  }
  return std::string_view("@(){}[],;:.?=<>!+-*/%").find(text.front()) != std::string_view::npos ? 1
                                                                                                : 0;
}

void AppendUtf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6U);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12U);
    put(0x80 | (code >> 6U & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18U);
    put(0x80 | (code >> 12U & 0x3f));
    put(0x80 | (code >> 6U & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

int HexDigit(char c) {
  if (Digit(c)) {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// What follows a backslash, which is `text`'s first byte; how long it was, or 0 when it is wrong.
std::size_t EscapeBytes(std::string_view text, std::uint32_t& code) {
  if (text.size() < 2) {
    return 0;
  }
  static constexpr std::string_view kSimple = "nrt\\0'\"";
  static constexpr std::string_view kMeaning("\n\r\t\\\0'\"", 7);
  const std::size_t simple = kSimple.find(text[1]);
  if (simple != std::string_view::npos) {
    code = static_cast<unsigned char>(kMeaning[simple]);
    return 2;
  }
  if (text[1] == 'x') {
    if (text.size() < 4 || HexDigit(text[2]) < 0 || HexDigit(text[3]) < 0) {
      return 0;
    }
    code = static_cast<std::uint32_t>(HexDigit(text[2]) * 16 + HexDigit(text[3]));
    return code <= 0x7f ? 4 : 0;
  }
  if (text[1] != 'u' || text.size() < 4 || text[2] != '{' || text[3] == '_') {
    return 0;
  }
  code = 0;
  int digits = 0;
  for (std::size_t at = 3; at < text.size(); ++at) {
    if (text[at] == '}') {
      const bool valid = digits > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
      return valid ? at + 1 : 0;
    }
    if (text[at] == '_') {
      continue;
    }
    if (HexDigit(text[at]) < 0 || ++digits > 6) {
      return 0;
    }
    code = code * 16 + static_cast<std::uint32_t>(HexDigit(text[at]));
  }
  return 0;
}

// One character of valid UTF-8 off the front.
char32_t TakeCharacter(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t size = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  char32_t code = size == 1 ? lead : lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size && i < text.size(); ++i) {
    code = code << 6U | (static_cast<unsigned char>(text[i]) & 0x3fU);
  }
  text.remove_prefix(std::min(size, text.size()));
  return code;
}

// The length of the literal without its quotes; npos when it does not end.
std::size_t StringBytes(std::string_view after_quote) {
  for (std::size_t at = 0; at < after_quote.size(); ++at) {
    if (after_quote[at] == '"') {
      return at;
    }
    if (after_quote[at] == '\\') {
      ++at;
      if (at < after_quote.size() && after_quote[at] == '\n') {
        return std::string_view::npos;
      }
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::string LineColumn(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? offset + 1 : offset - newline;
  return std::to_string(line) + ":" + std::to_string(column);
}

Result<Tokens> Tokenize(std::string_view text) {
  if (text.size() > kTextBytesMax) {
    return Error{Code::kExhausted,
                 "text is longer than " + std::to_string(kTextBytesMax) + " bytes"};
  }
  if (!IsUtf8(text)) {
    return Error{Code::kInvalidArgument, "text is not UTF-8", "save the file as UTF-8"};
  }
  Tokens out;
  std::size_t at = 0;
  const auto add = [&](Token::Kind kind, std::size_t size) {
    out.tokens.push_back({kind, text.substr(at, size), at});
    at += size;
  };
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    const char c = rest.front();
    if (const std::size_t space = SpaceBytes(rest)) {
      at += space;
    } else if (rest.starts_with("//")) {
      const std::size_t size = std::min(rest.find_first_of("\n\r"), rest.size());
      out.comments.push_back({rest.substr(0, size), at});
      at += size;
    } else if (IdentStart(c) || (c == '?' && rest.size() > 1 && IdentStart(rest[1]))) {
      std::size_t size = c == '?' ? 2 : 1;
      while (size < rest.size() && IdentPart(rest[size])) {
        ++size;
      }
      add(c == '?' ? Token::Kind::kSlot : Token::Kind::kIdent, size);
    } else if (Digit(c)) {
      std::size_t size = 1;
      while (size < rest.size() && Digit(rest[size])) {
        ++size;
      }
      add(Token::Kind::kNumber, size);
    } else if (c == '"') {
      const std::size_t size = StringBytes(rest.substr(1));
      if (size == std::string_view::npos) {
        return Error{Code::kInvalidArgument, LineColumn(text, at) + ": this string has no end"};
      }
      out.tokens.push_back({Token::Kind::kString, rest.substr(1, size), at});
      at += size + 2;
    } else if (const std::size_t size = PunctBytes(rest)) {
      add(Token::Kind::kPunct, size);
    } else {
      return Error{Code::kInvalidArgument,
                   LineColumn(text, at) + ": this character means nothing here"};
    }
  }
  out.tokens.push_back({Token::Kind::kEnd, "", text.size()});
  return out;
}

bool Unescape(std::string_view raw, std::string& out, std::string& bad) {
  out.clear();
  while (!raw.empty()) {
    const char c = raw.front();
    if (c == '\r') {
      bad = "a bare carriage return";
      return false;
    }
    if (c != '\\') {
      out += c;
      raw.remove_prefix(1);
      continue;
    }
    std::uint32_t code = 0;
    const std::size_t size = EscapeBytes(raw, code);
    if (size == 0) {
      bad = "the escape " + std::string(raw.substr(0, 2));
      return false;
    }
    AppendUtf8(out, code);
    raw.remove_prefix(size);
  }
  return true;
}

bool UnescapePattern(std::string_view raw, Pattern& out, std::string& bad) {
  out.clear();
  while (!raw.empty()) {
    if (raw.front() == '\r') {
      bad = "a bare carriage return";
      return false;
    }
    if (raw.starts_with("\\*")) {
      out.push_back({false, U'*'});
      raw.remove_prefix(2);
    } else if (raw.front() == '\\') {
      std::uint32_t code = 0;
      const std::size_t size = EscapeBytes(raw, code);
      if (size == 0) {
        bad = "the escape " + std::string(raw.substr(0, 2));
        return false;
      }
      out.push_back({false, static_cast<char32_t>(code)});
      raw.remove_prefix(size);
    } else if (raw.front() == '*') {
      out.push_back({true, 0});
      raw.remove_prefix(1);
    } else {
      out.push_back({false, TakeCharacter(raw)});
    }
  }
  return true;
}

std::string ToText(const Pattern& pattern) {
  std::string plain;
  std::string out;
  const auto flush = [&] {
    const std::string quoted = Quoted(plain);
    out += quoted.substr(1, quoted.size() - 2);
    plain.clear();
  };
  for (const PatternPart& part : pattern) {
    if (part.star || part.character == U'*') {
      flush();
      out += part.star ? "*" : "\\*";
    } else {
      AppendUtf8(plain, part.character);
    }
  }
  flush();
  return "\"" + out + "\"";
}

bool Matches(std::string_view text, const Pattern& pattern) {
  // Greedy, going back to the last star only: linear in practice, quadratic at worst.
  std::size_t at = 0;
  std::size_t star = pattern.size();
  std::string_view star_text;
  bool seen_star = false;
  while (!text.empty()) {
    if (at < pattern.size() && pattern[at].star) {
      star = at++;
      star_text = text;
      seen_star = true;
      continue;
    }
    std::string_view rest = text;
    const char32_t character = TakeCharacter(rest);
    if (at < pattern.size() && pattern[at].character == character) {
      text = rest;
      ++at;
    } else if (seen_star) {
      (void)TakeCharacter(star_text);
      text = star_text;
      at = star + 1;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at].star) {
    ++at;
  }
  return at == pattern.size();
}

bool IsReservedWord(std::string_view word) {
  static constexpr std::array<std::string_view, 9> kWords = {
      "true", "false", "if", "then", "else", "in", "is", "like", "has"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

bool IsIdentifier(std::string_view text) {
  return !text.empty() && IdentStart(text.front()) &&
         std::all_of(text.begin(), text.end(), IdentPart);
}

}  // namespace ringfence::cedar
