// Goal: only what the mint made opens, and nothing near it.
// Method: flip every bit, cut everywhere, swap ids between tokens, use another key.

#include "identity/token.h"

#include <gtest/gtest.h>

namespace ringfence::identity {
namespace {

TokenMint MintOf(char key) { return TokenMint(SecretBytes(Bytes(32, std::byte(key)))); }

TEST(TokenTest, OpensWhatItMinted) {
  const TokenMint mint = MintOf('k');
  const auto id = mint.Open(mint.Mint("t-1234"));
  ASSERT_TRUE(id.has_value());
  EXPECT_EQ(*id, "t-1234");
  EXPECT_EQ(mint.Mint("t-1234"), mint.Mint("t-1234")) << "a repeated request gets the same answer";
}

TEST(TokenTest, RefusesEveryCutAndEveryFlippedBit) {
  const TokenMint mint = MintOf('k');
  const std::string good = mint.Mint("t-1234");
  for (std::size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(mint.Open(good.substr(0, i)).has_value()) << i;
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_FALSE(mint.Open(damaged).has_value()) << i << '.' << bit;
    }
  }
  EXPECT_FALSE(mint.Open(good + "A").has_value());
  EXPECT_FALSE(mint.Open(std::string(100000, 'a')).has_value());
}

TEST(TokenTest, AnotherKeyOrAnotherIdOpensNothing) {
  const TokenMint mint = MintOf('k');
  EXPECT_FALSE(MintOf('x').Open(mint.Mint("t-1")).has_value());
  const std::string one = mint.Mint("t-1");
  const std::string two = mint.Mint("t-2");
  EXPECT_FALSE(mint.Open("rf_t-2" + one.substr(6)).has_value());
  EXPECT_NE(one.substr(6), two.substr(6));
}

}  // namespace
}  // namespace ringfence::identity
