#pragma once

#include <string>
#include <string_view>

namespace ringfence::probe {

inline std::string ToHex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4U];
    text += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15U];
  }
  return text;
}

// False, with `bytes` in any state, when the text is no hexadecimal in small letters.
inline bool FromHex(std::string_view text, std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (text.size() % 2 != 0) {
    return false;
  }
  bytes.clear();
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const std::size_t high = kDigits.find(text[at]);
    const std::size_t low = kDigits.find(text[at + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) {
      return false;
    }
    bytes += static_cast<char>(high * 16 + low);
  }
  return true;
}

}  // namespace ringfence::probe
