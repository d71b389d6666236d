#include "audit/verify_shape.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ringfence::audit::verify {
namespace {

constexpr std::size_t kBlock = 64;  // characters looked at together: a bit of a word for each
constexpr std::size_t kBlocksLimit = 64;
constexpr std::size_t kSkeletonBytesLimit = 2048;
constexpr std::string_view kActionBefore = "{\"action\":\"";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsPlain(char c) { return c >= ' ' && c != '\\'; }  // not ASCII: negative

}  // namespace

// Of a canonical text, so that everything in it ends, and a string before a colon is a name. False
// when it holds something that Fits leaves to the full scan.
bool ShapeCache::Describe(std::string_view text, Shape& shape) {
  if (!std::all_of(text.begin(), text.end(), IsPlain)) {
    return false;
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '-' || shape.quotes + 2 > kQuotesLimit ||
        shape.skeleton.size() > kSkeletonBytesLimit) {
      return false;
    }
    if (IsDigit(text[at])) {
      shape.skeleton += '0';
      while (IsDigit(text[at + 1])) {
        ++at;
      }
    } else if (text[at] == '"') {
      const std::size_t closing = text.find('"', at + 1);
      const bool is_value = text[closing + 1] != ':';
      shape.skeleton += is_value ? "\"\"" : text.substr(at, closing + 1 - at);
      for (int i = 0; i < 2; ++i, ++shape.quotes) {
        shape.of_values[shape.quotes / 8] |=
            static_cast<std::uint8_t>(is_value ? 1U << (shape.quotes % 8) : 0U);
      }
      at = closing;
    } else {
      shape.skeleton += text[at];
    }
  }
  shape.length = shape.skeleton.size();
  shape.skeleton.resize(kSkeletonBytesLimit + kBlock);
  return shape.length <= kSkeletonBytesLimit;
}

// What follows the first member's name tells the actions apart, and with the number of quotes most
// shapes.
std::size_t ShapeCache::SlotOf(std::string_view text, std::size_t quotes) {
  std::array<std::uint64_t, 2> key{};
  if (text.size() >= kActionBefore.size() + sizeof key) {
    std::memcpy(key.data(), text.data() + kActionBefore.size(), sizeof key);
  }
  const std::uint64_t mixed =
      ((key[0] ^ quotes) * 0x9e3779b97f4a7c15U) ^ (std::rotl(key[1], 32) * 0xc2b2ae3d27d4eb4fU);
  return static_cast<std::size_t>(mixed >> 56U);
}

#if defined(__x86_64__)
#define RINGFENCE_WIDE [[gnu::target("avx512f,avx512bw,avx512vbmi2,bmi,bmi2,pclmul,popcnt,lzcnt")]]

// What can be said of a text whatever its shape, a word for each block.
struct ShapeCache::Marks {
  std::array<std::uint64_t, kBlocksLimit> quote;
  std::array<std::uint64_t, kBlocksLimit> digit;
  std::size_t quotes = 0;
  bool plain = false;  // no backslash, no control character, nothing beyond ASCII
};

// Hardly a branch in it depends on what the characters are.
struct ShapeCache::Matcher {
  static bool Supported() {
    return __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vbmi2") != 0 &&
           __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("pclmul") != 0;
  }

  // The characters from `at` on, zero where there are none, and a bit for each that there is.
  struct Block {
    __m512i text;
    std::uint64_t there;
  };
  RINGFENCE_WIDE static Block BlockAt(std::string_view text, std::size_t at) {
    if (text.size() - at >= kBlock) {
      return {_mm512_loadu_si512(text.data() + at), ~std::uint64_t{0}};
    }
    const std::uint64_t there =
        _bzhi_u64(~std::uint64_t{0}, static_cast<unsigned>(text.size() - at));
    return {_mm512_maskz_loadu_epi8(there, text.data() + at), there};
  }

  RINGFENCE_WIDE static void Mark(std::string_view text, Marks& marks) {
    __m512i least = _mm512_set1_epi8(' ');
    __mmask64 backslash = 0;
    for (std::size_t at = 0; at < text.size(); at += kBlock) {
      const auto [block, there] = BlockAt(text, at);
      // Signed: what is not ASCII is less than a space, too.
      least = _mm512_mask_min_epi8(least, there, least, block);
      backslash = _kor_mask64(backslash, _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8('\\')));
      const std::uint64_t quote = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8('"'));
      marks.quote[at / kBlock] = quote;
      marks.quotes += static_cast<std::size_t>(_mm_popcnt_u64(quote));
      marks.digit[at / kBlock] = _mm512_cmplt_epu8_mask(
          _mm512_sub_epi8(block, _mm512_set1_epi8('0')), _mm512_set1_epi8(10));
    }
    marks.plain = backslash == 0 && _mm512_cmplt_epi8_mask(least, _mm512_set1_epi8(' ')) == 0;
  }

  // Each bit becomes the exclusive or of itself and all below it: set from a quote to the next.
  RINGFENCE_WIDE static std::uint64_t Between(std::uint64_t bits) {
    const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(bits)),
                                                 _mm_set1_epi8('\xff'), 0);
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(product));
  }
  static std::uint64_t TopBit(std::uint64_t bits) {  // in all bits
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> 63U);
  }
  static std::uint64_t SixteenInARow(std::uint64_t bits) {
    bits &= bits >> 1U;
    bits &= bits >> 2U;
    bits &= bits >> 4U;
    return bits & (bits >> 8U);
  }

  // Drops from the text what is inside of values if it has this shape, and compares the rest with
  // the shape's skeleton. Where they are the same, the text differs from a canonical one only
  // inside of values: in texts, which are plain, and in numbers, which are checked here to have at
  // most 15 digits (so they are below 2^53) and not to begin with a zero unless they are zero.
  RINGFENCE_WIDE static bool Same(const Shape& shape, std::string_view text, const Marks& marks) {
    std::size_t length = 0;
    std::size_t quotes = 0;
    std::uint64_t bad = 0;
    __mmask64 differs = 0;
    std::uint64_t in_string = 0;  // all ones: the block before ended inside of one
    std::uint64_t in_value = 0;
    std::uint64_t digits_before = 0;
    std::uint64_t zero_before = 0;  // the block before ended with a number's first digit, a zero
    for (std::size_t at = 0; at < text.size() && length <= shape.length; at += kBlock) {
      const std::uint64_t quote = marks.quote[at / kBlock];
      // At least 57 bits. Valid JSON has fewer quotes in a block; where there are more, one of them
      // is taken for the inside of a value and dropped, and the skeleton has all of them.
      std::uint64_t of_values = 0;
      std::memcpy(&of_values, shape.of_values.data() + quotes / 8, sizeof of_values);
      const std::uint64_t value_quote = _pdep_u64(of_values >> (quotes % 8), quote);
      quotes += static_cast<std::size_t>(_mm_popcnt_u64(quote));
      const std::uint64_t string = Between(quote) ^ in_string;  // with its first quote
      const std::uint64_t value = Between(value_quote) ^ in_value;
      in_string = TopBit(string);
      in_value = TopBit(value);

      auto [block, there] = BlockAt(text, at);
      std::uint64_t keep = there & ~(value & ~value_quote);
      const std::uint64_t digit = marks.digit[at / kBlock] & ~string;
      if ((digit | digits_before) != 0) {
        const std::uint64_t first = digit & ~((digit << 1U) | (digits_before >> 63U));
        const std::uint64_t zero = _mm512_mask_cmpeq_epi8_mask(first, block, _mm512_set1_epi8('0'));
        bad |= ((zero << 1U) | zero_before) & digit;
        bad |= SixteenInARow(digit);
        bad |= static_cast<std::uint64_t>(_tzcnt_u64(~digit) + _lzcnt_u64(~digits_before) > 15);
        zero_before = zero >> 63U;
        digits_before = digit;
        keep &= ~(digit & ~first);
        block = _mm512_mask_mov_epi8(block, first, _mm512_set1_epi8('0'));
      }
      // The skeleton's next characters, each put where the text should have it.
      const __m512i expected =
          _mm512_maskz_expand_epi8(keep, _mm512_loadu_si512(shape.skeleton.data() + length));
      differs = _kor_mask64(differs, _mm512_mask_cmpneq_epi8_mask(keep, block, expected));
      length += static_cast<std::size_t>(_mm_popcnt_u64(keep));
    }
    return bad == 0 && differs == 0 && length == shape.length;
  }
};

#undef RINGFENCE_WIDE

bool ShapeCache::Fits(std::string_view text) {
  static const bool supported = Matcher::Supported();
  if (!supported || text.size() > kBlocksLimit * kBlock) {
    return false;
  }
  Marks marks;
  Matcher::Mark(text, marks);
  if (!marks.plain || marks.quotes > kQuotesLimit) {
    return false;
  }
  auto& slot = slots_[SlotOf(text, marks.quotes)];
  for (std::size_t way = 0; way < kWays && slot[way] != nullptr; ++way) {
    if (slot[way]->quotes == marks.quotes && Matcher::Same(*slot[way], text, marks)) {
      if (way != 0) {
        std::swap(slot[way], slot[way - 1]);
      }
      return true;
    }
  }
  return false;
}

#else

bool ShapeCache::Fits(std::string_view) { return false; }

#endif

void ShapeCache::Learn(std::string_view text) {
  auto shape = std::make_unique<Shape>();
  if (Describe(text, *shape)) {
    auto& slot = slots_[SlotOf(text, shape->quotes)];
    std::rotate(slot.begin(), slot.end() - 1, slot.end());
    slot[0] = std::move(shape);
  }
}

}  // namespace ringfence::audit::verify
