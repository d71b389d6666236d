#pragma once

// The verifier's own knowledge of where a log's files are, and of which ones should be there.

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace ringfence::audit::verify {

inline constexpr unsigned kLevels = 8;
inline constexpr std::uint64_t kSpan = 256;  // parts of a full tile or bundle
inline constexpr std::size_t kTileFileLimit = kSpan * sizeof(Digest);
inline constexpr std::size_t kBundleFileLimit = kSpan * (2 + 65535);

// One kind of pieces: the tiles of a level, or (kEntries) the bundles of entries.
inline constexpr unsigned kEntries = kLevels;
std::string KindFolder(unsigned kind);  // "tile/0", "tile/entries"
std::string PiecePath(unsigned kind, std::uint64_t index);
// How many parts of this kind a log of `size` entries has.
std::uint64_t PartsOf(unsigned kind, std::uint64_t size);

// A file's bytes in a buffer that is used again and again. kExhausted when over `limit`.
Status ReadInto(const std::string& path, std::size_t limit, Bytes& buffer);

// A piece that holds at least `width` parts: the partial of that width; else the full one; else,
// as a copy of a growing log may have it, a wider partial.
struct Piece {
  std::string path;    // relative to the log
  bool exact = false;  // holds no more than `width` parts
};
Result<Piece> ReadPiece(const std::string& folder, unsigned kind, std::uint64_t index,
                        std::uint64_t width, Bytes& buffer);

// A file beyond what the checkpoint covers.
struct Beyond {
  std::string path;
  unsigned kind = 0;
  std::uint64_t parts_needed = 0;  // the log must have so many of that kind to cover it
};
struct Strays {
  std::vector<Beyond> beyond;
  std::vector<std::string> problems;  // names that mean nothing, partials that differ, unreadable
};
// Looks at every name below tile/. Also compares the superseded partial pieces with what
// superseded them.
Strays FindStrays(const std::string& folder, std::uint64_t size);

}  // namespace ringfence::audit::verify
