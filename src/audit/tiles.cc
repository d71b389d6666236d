#include "audit/tiles.h"

#include <array>
#include <vector>

#include "base/check.h"
#include "crypto/sha256.h"

namespace ringfence::audit {
namespace {

constexpr std::array<std::byte, 1> kNodePrefix = {std::byte{1}};

std::string ThreeDigits(std::uint64_t value) {
  const std::string digits = std::to_string(value);
  return std::string(3 - digits.size(), '0') + digits;
}

std::string Join(const std::string& folder, std::uint64_t index, std::uint64_t width) {
  std::string path = ThreeDigits(index % 1000);
  for (index /= 1000; index > 0; index /= 1000) {
    path.insert(0, "x" + ThreeDigits(index % 1000) + "/");
  }
  path.insert(0, "tile/" + folder + "/");
  return width == kTileWidth ? path : PartialFolder(path) + "/" + std::to_string(width);
}

}  // namespace

Digest NodeHash(const Digest& left, const Digest& right) {
  std::array<std::byte, 1 + 2 * sizeof(Digest)> input{};
  input[0] = kNodePrefix[0];
  std::copy(left.begin(), left.end(), input.begin() + 1);
  std::copy(right.begin(), right.end(), input.begin() + 1 + sizeof(Digest));
  return crypto::Sha256(input);
}

Digest EmptyRoot() { return crypto::Sha256(ByteView()); }

Digest PerfectRoot(std::span<const Digest> hashes) {
  RINGFENCE_CHECK(!hashes.empty() && hashes.size() <= kTileWidth &&
                  (hashes.size() & (hashes.size() - 1)) == 0);
  std::vector<Digest> row(hashes.begin(), hashes.end());
  while (row.size() > 1) {
    for (std::size_t i = 0; i < row.size() / 2; ++i) {
      row[i] = NodeHash(row[2 * i], row[2 * i + 1]);
    }
    row.resize(row.size() / 2);
  }
  return row[0];
}

std::string TilePath(unsigned level, std::uint64_t index, std::uint64_t width) {
  return Join(std::to_string(level), index, width);
}

std::string BundlePath(std::uint64_t index, std::uint64_t width) {
  return Join("entries", index, width);
}

std::string PartialFolder(const std::string& full_path) { return full_path + ".p"; }

}  // namespace ringfence::audit
