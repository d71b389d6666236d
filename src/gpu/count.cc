#include "gpu/count.h"

#include <algorithm>
#include <cstring>

namespace ringfence::gpu {
namespace {

constexpr std::size_t kBlockBytes = 4096;

bool BlockEquals(const std::byte* block, std::uint64_t word) {
  std::uint64_t differences = 0;
  for (std::size_t at = 0; at < kBlockBytes; at += sizeof word) {
    std::uint64_t value = 0;
    std::memcpy(&value, block + at, sizeof value);
    differences |= value ^ word;
  }
  return differences == 0;
}

std::uint64_t CountSlowly(std::span<const std::byte> bytes, std::uint32_t pattern) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto expected = static_cast<std::byte>((pattern >> (8U * (i % 4))) & 0xffU);
    count += bytes[i] != expected ? 1U : 0U;
  }
  return count;
}

}  // namespace

std::uint64_t CountDifferent(std::span<const std::byte> bytes, std::uint32_t pattern) {
  const std::uint64_t word = (std::uint64_t{pattern} << 32U) | pattern;
  std::uint64_t count = 0;
  while (!bytes.empty()) {
    const std::span<const std::byte> block = bytes.first(std::min(kBlockBytes, bytes.size()));
    if (block.size() < kBlockBytes || !BlockEquals(block.data(), word)) {
      count += CountSlowly(block, pattern);
    }
    bytes = bytes.subspan(block.size());
  }
  return count;
}

std::uint64_t CountNonZero(std::span<const std::byte> bytes) { return CountDifferent(bytes, 0); }

}  // namespace ringfence::gpu
