#include "cli/text.h"

#include <cstdint>
#include <iterator>
#include <span>

namespace ringfence::cli {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Unsafe on a terminal: controls, and marks that reorder or hide what stands around them.
constexpr Range kUnsafe[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x00ad, 0x00ad},   {0x061c, 0x061c},
    {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
    {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

// East Asian Wide and Fullwidth, and the emoji that terminals draw in two columns.
constexpr Range kWide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x2614, 0x2615},   {0x26a1, 0x26a1},   {0x2705, 0x2705},   {0x274c, 0x274c},
    {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0xa4cf},
    {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
    {0xff01, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
    {0x1f900, 0x1f9ff}, {0x20000, 0x2fffd}, {0x30000, 0x3fffd},
};

constexpr Range kCombining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},
    {0x064b, 0x065f}, {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};

bool In(std::span<const Range> ranges, std::uint32_t point) {
  for (const Range& range : ranges) {
    if (point >= range.first && point <= range.last) {
      return true;
    }
  }
  return false;
}

constexpr std::uint32_t kNotUtf8 = 0xffffffffU;

// The character at the front of `text` and how many bytes it takes; kNotUtf8 takes one.
std::uint32_t Decode(std::string_view text, std::size_t& length) {
  const auto lead = static_cast<unsigned char>(text[0]);
  length = 1;
  if (lead < 0x80) {
    return lead;
  }
  const std::size_t wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < wanted) {
    return kNotUtf8;
  }
  std::uint32_t point = lead & (0xffU >> (wanted + 1));
  for (std::size_t i = 1; i < wanted; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80) {
      return kNotUtf8;
    }
    point = (point << 6U) | (next & 0x3fU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[wanted] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) {
    return kNotUtf8;
  }
  length = wanted;
  return point;
}

void AppendHex(std::string& out, std::uint32_t value, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int i = digits - 1; i >= 0; --i) {
    out += kDigits[(value >> (4U * static_cast<unsigned>(i))) & 15U];
  }
}

std::string MadeSafe(std::string_view text, bool keep_line_breaks) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t length = 1;
    const std::uint32_t point = Decode(text, length);
    if (point == kNotUtf8 || (point < 0xa0 && In(kUnsafe, point))) {
      if (point == '\n' && keep_line_breaks) {
        out += '\n';
      } else {
        out += point == '\n' ? "\\n" : point == '\t' ? "\\t" : "\\x";
        if (point != '\n' && point != '\t') {
          AppendHex(out, point == kNotUtf8 ? static_cast<unsigned char>(text[0]) : point, 2);
        }
      }
    } else if (In(kUnsafe, point)) {
      out += "\\u";
      AppendHex(out, point, point > 0xffff ? 5 : 4);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::string Safe(std::string_view text) { return MadeSafe(text, false); }
std::string SafeLines(std::string_view text) { return MadeSafe(text, true); }

std::size_t Columns(std::string_view safe_text) {
  std::size_t columns = 0;
  while (!safe_text.empty()) {
    std::size_t length = 1;
    const std::uint32_t point = Decode(safe_text, length);
    columns += In(kCombining, point) ? 0U : In(kWide, point) ? 2U : 1U;
    safe_text.remove_prefix(length);
  }
  return columns;
}

}  // namespace ringfence::cli
