#include "audit/verify_json.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

namespace ringfence::audit::verify {
namespace {

constexpr int kDepthLimit = 32;
#ifndef __SSE2__
constexpr std::uint64_t kOnes = 0x0101010101010101U;
constexpr std::uint64_t kTops = 0x8080808080808080U;

constexpr std::uint64_t ZeroBytes(std::uint64_t word) { return (word - kOnes) & ~word & kTops; }

// Not zero if one of eight characters needs a closer look: a quote, a backslash, a control
// character, or a part of a longer UTF-8 sequence.
constexpr std::uint64_t Special(std::uint64_t word) {
  return ZeroBytes(word ^ (kOnes * '"')) | ZeroBytes(word ^ (kOnes * '\\')) |
         ((word - kOnes * 0x20) & ~word & kTops) | (word & kTops);
}
#endif

struct Name {
  std::string_view raw;  // between the quotes, escapes and all
  bool plain = true;     // ASCII without escapes: raw order is UTF-16 order
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  const char* Document() {
    if (at_ == end_ || *at_ != '{') {
      return "it is not an object";
    }
    if (Value(0) && at_ != end_) {
      Fail("something follows the object");
    }
    return why_;
  }

 private:
  bool Fail(const char* why) {
    why_ = why;
    return false;
  }

  bool Take(char c) {
    if (at_ == end_ || *at_ != c) {
      return false;
    }
    ++at_;
    return true;
  }

  bool Word(std::string_view word) {
    if (static_cast<std::size_t>(end_ - at_) < word.size() ||
        std::memcmp(at_, word.data(), word.size()) != 0) {
      return Fail("it holds an unknown word");
    }
    at_ += word.size();
    return true;
  }

  bool Value(int depth) {
    if (at_ == end_) {
      return Fail("it is cut short");
    }
    if (depth >= kDepthLimit && (*at_ == '{' || *at_ == '[')) {
      return Fail("it is nested too deep");
    }
    Name ignored;
    switch (*at_) {
      case '{':
        return Object(depth);
      case '[':
        return Array(depth);
      case '"':
        return String(ignored);
      case 't':
        return Word("true");
      case 'f':
        return Word("false");
      case 'n':
        return Word("null");
      default:
        return Number();
    }
  }

  bool Object(int depth) {
    ++at_;
    if (Take('}')) {
      return true;
    }
    Name before;
    bool first = true;
    do {
      Name name;
      if (at_ == end_ || *at_ != '"' || !String(name)) {
        return why_ != nullptr ? false : Fail("a member has no name");
      }
      if (!first && !Less(before, name)) {
        return Fail("its members are not in order, or one is there twice");
      }
      first = false;
      before = name;
      if (!Take(':')) {
        return Fail("a member has no value, or there is white space");
      }
      if (!Value(depth + 1)) {
        return false;
      }
    } while (Take(','));
    return Take('}') || Fail("an object does not end, or there is white space");
  }

  bool Array(int depth) {
    ++at_;
    if (Take(']')) {
      return true;
    }
    do {
      if (!Value(depth + 1)) {
        return false;
      }
    } while (Take(','));
    return Take(']') || Fail("a list does not end, or there is white space");
  }

  // -?(0|[1-9][0-9]*) of at most 2^53, and not -0.
  bool Number() {
    const bool negative = Take('-');
    const char* const digits = at_;
    std::uint64_t value = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9' && at_ - digits < 17) {
      value = value * 10 + static_cast<std::uint64_t>(*at_++ - '0');
    }
    const auto count = at_ - digits;
    if (count == 0) {
      return Fail("it holds white space or a stray character");
    }
    if ((count > 1 && *digits == '0') || (negative && value == 0) ||
        value > (std::uint64_t{1} << 53U) ||
        (at_ != end_ && (*at_ == '.' || *at_ == 'e' || *at_ == 'E'))) {
      return Fail("a number is not a whole one in its shortest form");
    }
    return true;
  }

  // Moves to the next character that needs a closer look, or to the end.
  void SkipPlain() {
#ifdef __SSE2__
    while (end_ - at_ >= 16) {
      const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at_));
      // Signed: what is not ASCII counts as less than a space, too.
      const __m128i special = _mm_or_si128(_mm_cmplt_epi8(text, _mm_set1_epi8(' ')),
                                           _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('"')),
                                                        _mm_cmpeq_epi8(text, _mm_set1_epi8('\\'))));
      if (const int mask = _mm_movemask_epi8(special); mask != 0) {
        at_ += std::countr_zero(static_cast<unsigned>(mask));
        return;
      }
      at_ += 16;
    }
#else
    while (end_ - at_ >= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at_, 8);
      if (Special(word) != 0) {
        break;
      }
      at_ += 8;
    }
#endif
    while (at_ != end_ && IsPlain(static_cast<unsigned char>(*at_))) {
      ++at_;
    }
  }

  static bool IsPlain(unsigned char c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; }

  bool String(Name& name) {
    const char* const start = ++at_;
    for (;;) {
      SkipPlain();
      if (at_ == end_) {
        return Fail("a string does not end");
      }
      const auto c = static_cast<unsigned char>(*at_);
      if (c == '"') {
        name.raw = {start, static_cast<std::size_t>(at_ - start)};
        ++at_;
        return true;
      }
      name.plain = false;
      if (c < 0x20) {
        return Fail("a string holds a control character");
      }
      if (!(c == '\\' ? Escape() : Sequence())) {
        return false;
      }
    }
  }

  // The short escapes, and \u00xx with small letters for control characters that have none.
  bool Escape() {
    ++at_;
    if (at_ == end_) {
      return Fail("a string does not end");
    }
    const char c = *at_++;
    if (c == 0) {
      return Fail("a string holds an escape that canonical JSON does not use");
    }
    if (std::strchr("\"\\bfnrt", c) != nullptr) {
      return true;
    }
    const bool control = c == 'u' && end_ - at_ >= 4 && at_[0] == '0' && at_[1] == '0' &&
                         (at_[2] == '0' || at_[2] == '1') &&
                         ((at_[3] >= '0' && at_[3] <= '9') || (at_[3] >= 'a' && at_[3] <= 'f'));
    if (!control || (at_[2] == '0' && at_[3] != 0 && std::strchr("89acd", at_[3]) != nullptr)) {
      return Fail("a string holds an escape that canonical JSON does not use");
    }
    at_ += 4;
    return true;
  }

  // One UTF-8 sequence of two to four bytes: shortest form, no surrogate, up to U+10FFFF.
  bool Sequence() {
    const auto left = end_ - at_;
    const auto lead = static_cast<unsigned char>(*at_);
    const int length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    std::uint32_t point = lead & (0x7fU >> static_cast<unsigned>(length));
    if (lead < 0xc2 || lead > 0xf4 || left < length) {
      return Fail("a string is not UTF-8");
    }
    for (int i = 1; i < length; ++i) {
      const auto next = static_cast<unsigned char>(at_[i]);
      if ((next & 0xc0U) != 0x80U) {
        return Fail("a string is not UTF-8");
      }
      point = (point << 6U) | (next & 0x3fU);
    }
    constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < kLeast[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
      return Fail("a string is not UTF-8");
    }
    at_ += length;
    return true;
  }

  static bool Less(const Name& a, const Name& b) {
    return a.plain && b.plain ? a.raw < b.raw : Utf16(a.raw) < Utf16(b.raw);
  }

  // Of a string that has been scanned, so that it is known to be well formed.
  static std::u16string Utf16(std::string_view raw) {
    std::u16string units;
    for (std::size_t i = 0; i < raw.size();) {
      const auto c = static_cast<unsigned char>(raw[i]);
      if (c == '\\') {
        constexpr std::string_view kShort = "\"\\bfnrt";
        constexpr std::string_view kMeaning = "\"\\\b\f\n\r\t";
        const std::size_t which = kShort.find(raw[i + 1]);
        if (which != std::string_view::npos) {
          units += static_cast<char16_t>(kMeaning[which]);
          i += 2;
        } else {
          const char low = raw[i + 5];
          const int digit = low <= '9' ? low - '0' : low - 'a' + 10;
          units += static_cast<char16_t>((raw[i + 4] - '0') * 16 + digit);
          i += 6;
        }
        continue;
      }
      const std::size_t length = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
      std::uint32_t point = length == 1 ? c : c & (0x7fU >> length);
      for (std::size_t k = 1; k < length; ++k) {
        point = (point << 6U) | (static_cast<unsigned char>(raw[i + k]) & 0x3fU);
      }
      if (point >= 0x10000) {
        units += static_cast<char16_t>(0xd800 + ((point - 0x10000) >> 10U));
        units += static_cast<char16_t>(0xdc00 + ((point - 0x10000) & 0x3ffU));
      } else {
        units += static_cast<char16_t>(point);
      }
      i += length;
    }
    return units;
  }

  const char* at_;
  const char* end_;
  const char* why_ = nullptr;
};

}  // namespace

const char* WhyNotCanonical(std::string_view text) { return Scanner(text).Document(); }

}  // namespace ringfence::audit::verify
