// Goal: what an encoder writes its decoder reads back, and a decoder accepts nothing else.
// Method: the RFC's vectors, every length, every single changed character; UTF-8's edges.

#include "base/encoding.h"

#include <gtest/gtest.h>

namespace ringfence {
namespace {

Bytes Sample(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((i * 167 + size * 31 + 255) & 0xffU);
  }
  return bytes;
}

TEST(EncodingTest, Rfc4648Vectors) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : vectors) {
    EXPECT_EQ(Base64(AsBytes(plain)), encoded);
    EXPECT_EQ(ToText(FromBase64(encoded).value()), plain);
  }
  EXPECT_EQ(Base64Url(ToBytes("\xfb\xff")), "-_8");
  EXPECT_EQ(Hex(ToBytes("\x01\xab")), "01ab");
  EXPECT_EQ(Base32(ToBytes("foobar")), "csqpyrk1e8") << "Crockford's alphabet";
}

TEST(EncodingTest, EveryLengthRoundTrips) {
  for (std::size_t size = 0; size < 100; ++size) {
    const Bytes bytes = Sample(size);
    EXPECT_EQ(FromHex(Hex(bytes)).value(), bytes);
    EXPECT_EQ(FromBase64(Base64(bytes)).value(), bytes);
    EXPECT_EQ(FromBase64Url(Base64Url(bytes)).value(), bytes);
    EXPECT_EQ(Base32(bytes).size(), (size * 8 + 4) / 5);
  }
}

// Each text that decodes must be the one that its bytes encode to.
TEST(EncodingTest, NoTwoTextsDecodeToTheSameBytes) {
  for (std::size_t size = 0; size < 5; ++size) {
    const std::string texts[] = {Hex(Sample(size)), Base64(Sample(size)), Base64Url(Sample(size))};
    for (const std::string& text : texts) {
      for (std::size_t i = 0; i <= text.size(); ++i) {
        for (int c = 0; c < 256; ++c) {
          std::string changed = text;
          changed.replace(i, 1, 1, static_cast<char>(c));  // at the end: one more
          if (const auto hex = FromHex(changed); hex.has_value()) {
            EXPECT_EQ(Hex(hex.value()), changed);
          }
          if (const auto plain = FromBase64(changed); plain.has_value()) {
            EXPECT_EQ(Base64(plain.value()), changed);
          }
          if (const auto url = FromBase64Url(changed); url.has_value()) {
            EXPECT_EQ(Base64Url(url.value()), changed);
          }
        }
      }
    }
  }
}

TEST(EncodingTest, WhatAnEncoderNeverWritesIsRefused) {
  for (const char* text : {"A", "AA", "AAA", "AA=", "AA==A",
                           "====", "AA==AA==", "AB==", "AAB=", "A A=", "AA-_", "AAAA\n"}) {
    EXPECT_FALSE(FromBase64(text).has_value()) << text;
  }
  for (const char* text : {"A", "AA==", "AB", "AA+/"}) {
    EXPECT_FALSE(FromBase64Url(text).has_value()) << text;
  }
  for (const char* text : {"0", "AB", "0g", "0x", " 00"}) {
    EXPECT_FALSE(FromHex(text).has_value()) << text;
  }
}

TEST(EncodingTest, Utf8IsTheShortestFormOfRealCharactersOnly) {
  for (const char* text :
       {"", "plain", "\u00e9", "\u20ac", "\U0001f600", "\xed\x9f\xbf", "\ue000", "\U0010ffff"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(std::string_view("\0", 1)));
  for (const char* text :
       {"\x80", "\xc3", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "\xe2\x82", "\xe2\x28\xa1", "a\xf0\x9f\x98", "\xc3\xa9\xa9"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
}

}  // namespace
}  // namespace ringfence
