// Goal: the counting loops count every wrong byte, wherever it is, and no right one.
// Method: one wrong byte at every position of buffers whose sizes straddle the block size, and
// random damage held against a plain count.

#include "gpu/count.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace ringfence::gpu {
namespace {

constexpr std::uint32_t kPattern = 0x12345678;

std::vector<std::byte> Filled(std::size_t size, std::uint32_t pattern) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(pattern >> (8U * (i % 4)));
  }
  return bytes;
}

TEST(Count, FindsOneWrongByteAnywhere) {
  for (const std::size_t size : {1U, 7U, 4095U, 4096U, 4097U, 8195U}) {
    for (const std::uint32_t pattern : {0U, kPattern}) {
      std::vector<std::byte> bytes = Filled(size, pattern);
      ASSERT_EQ(CountDifferent(bytes, pattern), 0U);
      for (std::size_t i = 0; i < size; ++i) {
        bytes[i] ^= std::byte{1};
        ASSERT_EQ(CountDifferent(bytes, pattern), 1U) << size << " at " << i;
        bytes[i] ^= std::byte{1};
      }
    }
  }
}

TEST(Count, AgreesWithAPlainCount) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::byte> bytes = Filled(20000 + static_cast<std::size_t>(round), kPattern);
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (random() % 1000 == 0) {
        bytes[i] = ~bytes[i];
        ++wrong;
      }
    }
    EXPECT_EQ(CountDifferent(bytes, kPattern), wrong);
  }
  EXPECT_EQ(CountNonZero(Filled(10000, 0xffffffffU)), 10000U);
  EXPECT_EQ(CountNonZero({}), 0U);
}

}  // namespace
}  // namespace ringfence::gpu
