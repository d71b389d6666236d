#pragma once

// Where the log's pieces lie and how they hash: C2SP tlog-tiles paths and RFC 6962 hashing. For
// the writer and the reader; the verifier has its own.

#include <cstdint>
#include <span>
#include <string>

#include "audit/log.h"
#include "base/bytes.h"

namespace ringfence::audit {

inline constexpr unsigned kTileHeight = 8;
inline constexpr std::uint64_t kTileWidth = 256;
inline constexpr unsigned kTileLevels = 8;  // 64-bit sizes need no more
inline constexpr std::size_t kTileBytesMax = kTileWidth * sizeof(Digest);
inline constexpr std::size_t kBundleBytesMax = kTileWidth * (2 + kEntryBytesMax);

Digest NodeHash(const Digest& left, const Digest& right);
Digest EmptyRoot();

// The root of a perfect tree over `hashes`, whose count is a power of two of at most kTileWidth.
Digest PerfectRoot(std::span<const Digest> hashes);

// How many hashes a tree of `size` entries has at tile level `level`.
constexpr std::uint64_t HashesAt(std::uint64_t size, unsigned level) {
  return size >> (kTileHeight * level);
}

// "tile/0/x001/234", or "tile/0/x001/234.p/17" when `width` is less than kTileWidth.
std::string TilePath(unsigned level, std::uint64_t index, std::uint64_t width);
// "tile/entries/x001/234", "tile/entries/x001/234.p/17".
std::string BundlePath(std::uint64_t index, std::uint64_t width);
// The same path's folder of partial tiles: "tile/0/x001/234.p".
std::string PartialFolder(const std::string& full_path);

}  // namespace ringfence::audit
