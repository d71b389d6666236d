// Goal: scrypt is RFC 7914's, and a cost that a stranger chose cannot eat the machine.
// Method: the RFC's vectors of section 12 that fit into memory; costs out of range.

#include "crypto/scrypt.h"

#include <gtest/gtest.h>

#include "base/encoding.h"

namespace ringfence::crypto {
namespace {

std::string HexOf(std::string_view passphrase, std::string_view salt, const ScryptCost& cost) {
  const auto key = Scrypt(SecretBytes(AsBytes(passphrase)), AsBytes(salt), cost, 64);
  return key.has_value() ? Hex(key->Reveal()) : key.error().message;
}

TEST(ScryptTest, VectorsOfRfc7914) {
  EXPECT_EQ(HexOf("", "", {.log_n = 4, .r = 1, .p = 1}),
            "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
            "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906");
  EXPECT_EQ(HexOf("password", "NaCl", {.log_n = 10, .r = 8, .p = 16}),
            "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
            "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640");
  EXPECT_EQ(HexOf("pleaseletmein", "SodiumChloride", {.log_n = 14, .r = 8, .p = 1}),
            "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
            "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887");
}

TEST(ScryptTest, CostsOutOfRangeAreRefused) {
  const SecretBytes passphrase(AsBytes("x"));
  for (const ScryptCost& cost :
       {ScryptCost{0, 8, 1}, ScryptCost{25, 8, 1}, ScryptCost{21, 8, 1}, ScryptCost{16, 1, 1},
        ScryptCost{10, 0, 1}, ScryptCost{10, 65, 1}, ScryptCost{10, 8, 0}, ScryptCost{10, 8, 65}}) {
    const auto key = Scrypt(passphrase, AsBytes("salt"), cost, 32);
    ASSERT_FALSE(key.has_value()) << cost.log_n << " " << cost.r << " " << cost.p;
    EXPECT_EQ(key.error().code, Code::kInvalidArgument);
  }
}

TEST(ScryptTest, LengthAndInputsCount) {
  const ScryptCost cost{4, 1, 1};
  const auto key = [&](std::string_view passphrase, std::string_view salt, std::size_t bytes) {
    return Hex(Scrypt(SecretBytes(AsBytes(passphrase)), AsBytes(salt), cost, bytes)->Reveal());
  };
  EXPECT_EQ(key("a", "s", 32).size(), 64U);
  EXPECT_NE(key("a", "s", 32), key("b", "s", 32));
  EXPECT_NE(key("a", "s", 32), key("a", "t", 32));
}

}  // namespace
}  // namespace ringfence::crypto
