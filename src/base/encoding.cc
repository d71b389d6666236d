#include "base/encoding.h"

#include <array>

namespace ringfence {
namespace {

constexpr std::string_view kBase64Alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kBase64UrlAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string EncodeBase64(ByteView bytes, std::string_view alphabet, bool padded) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = (group << 8U) | (k < have ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      if (k <= have) {
        text += alphabet[(group >> (18 - 6 * k)) & 63U];
      } else if (padded) {
        text += '=';
      }
    }
  }
  return text;
}

Result<Bytes> DecodeBase64(std::string_view text, std::string_view alphabet, bool padded) {
  const Error bad{Code::kInvalidArgument, "not valid base64"};
  std::array<std::uint8_t, 256> value_of{};
  value_of.fill(255);
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    value_of[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
  }
  if (padded) {
    if (text.size() % 4 != 0) {
      return bad;
    }
    for (int i = 0; i < 2 && !text.empty() && text.back() == '='; ++i) {
      text.remove_suffix(1);
    }
  }
  if (text.size() % 4 == 1) {
    return bad;
  }
  Bytes bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const std::uint8_t value = value_of[static_cast<unsigned char>(c)];
    if (value == 255) {
      return bad;
    }
    bits = (bits << 6U) | value;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<std::byte>((bits >> count) & 0xffU));
    }
  }
  if ((bits & ((1U << count) - 1U)) != 0) {  // an encoder leaves the spare bits zero
    return bad;
  }
  return bytes;
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string Hex(ByteView bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4U];
    text += kDigits[std::to_integer<unsigned>(byte) & 15U];
  }
  return text;
}

Result<Bytes> FromHex(std::string_view text) {
  if (text.size() % 2 != 0) {
    return Error{Code::kInvalidArgument, "hex text has an odd number of digits"};
  }
  Bytes bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = HexValue(text[i]);
    const int low = HexValue(text[i + 1]);
    if (high < 0 || low < 0) {
      return Error{Code::kInvalidArgument, "not valid lower-case hex"};
    }
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return bytes;
}

std::string Base64(ByteView bytes) { return EncodeBase64(bytes, kBase64Alphabet, true); }
Result<Bytes> FromBase64(std::string_view text) {
  return DecodeBase64(text, kBase64Alphabet, true);
}
std::string Base64Url(ByteView bytes) { return EncodeBase64(bytes, kBase64UrlAlphabet, false); }
Result<Bytes> FromBase64Url(std::string_view text) {
  return DecodeBase64(text, kBase64UrlAlphabet, false);
}

std::string Base32(ByteView bytes) {
  constexpr std::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";
  std::string text;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const std::byte byte : bytes) {
    bits = ((bits << 8U) | std::to_integer<std::uint32_t>(byte)) & 0xfffffU;
    count += 8;
    while (count >= 5) {
      count -= 5;
      text += kAlphabet[(bits >> count) & 31U];
    }
  }
  if (count > 0) {
    text += kAlphabet[(bits << (5 - count)) & 31U];
  }
  return text;
}

bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t more = lead < 0x80                   ? 0
                             : lead >= 0xc2 && lead < 0xe0 ? 1
                             : (lead & 0xf0U) == 0xe0      ? 2
                             : lead >= 0xf0 && lead < 0xf5 ? 3
                                                           : 4;
    if (more == 4 || text.size() - i <= more) {
      return false;
    }
    std::uint32_t point = more == 0 ? lead : lead & (0x3fU >> more);
    for (std::size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0U) != 0x80) {
        return false;
      }
      point = (point << 6U) | (next & 0x3fU);
    }
    constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (point < kLeast[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
      return false;
    }
    i += more + 1;
  }
  return true;
}

}  // namespace ringfence
