// Entries and proofs from the tiles of a log that is being written to: a partial tile may vanish
// at any time, but only once the full one is there.

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "audit/log.h"
#include "audit/tiles.h"
#include "os/file.h"

namespace ringfence::audit {
namespace {

Error BadRange(std::string what) { return {Code::kInvalidArgument, "audit log: " + what}; }

// The narrowest partial tile beside `full_path` of at least `width`; kNotFound when there is none.
Result<std::string> WiderPartial(const std::string& full_path, std::uint64_t width) {
  RINGFENCE_ASSIGN(const auto names, os::ListDir(PartialFolder(full_path)));
  std::uint64_t best = kTileWidth;
  for (const std::string& name : names) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    if (error == std::errc() && end == name.data() + name.size() && value >= width) {
      best = std::min(best, value);
    }
  }
  if (best == kTileWidth) {
    return Error{Code::kNotFound, full_path + " is not there, nor a part of it"};
  }
  return PartialFolder(full_path) + "/" + std::to_string(best);
}

// The file at `full_path` or one of its partials that holds at least `width` of its parts.
Result<Bytes> ReadPiece(const std::string& full_path, std::uint64_t width, std::size_t bytes_max) {
  if (width < kTileWidth) {
    Result<Bytes> exact =
        os::ReadFile(PartialFolder(full_path) + "/" + std::to_string(width), bytes_max);
    if (exact.has_value() || exact.error().code != Code::kNotFound) {
      return exact;
    }
  }
  Result<Bytes> full = os::ReadFile(full_path, bytes_max);
  if (full.has_value() || full.error().code != Code::kNotFound || width == kTileWidth) {
    return full;
  }
  const Result<std::string> wider = WiderPartial(full_path, width);
  if (wider.has_value()) {
    Result<Bytes> bytes = os::ReadFile(*wider, bytes_max);
    if (bytes.has_value() || bytes.error().code != Code::kNotFound) {
      return bytes;
    }
  }
  return os::ReadFile(full_path, bytes_max);  // it became full while we looked
}

// Hashes of a tree of `size` entries, read from tiles; each tile is read once.
class TileHashes {
 public:
  TileHashes(std::string folder, std::uint64_t size) : folder_(std::move(folder)), size_(size) {}

  // The root over entries `first` to `end`, where `first` is a multiple of the power of two that
  // the range's length does not exceed: the subtrees that RFC 6962 ever asks for.
  Result<Digest> RangeRoot(std::uint64_t first, std::uint64_t end) {
    std::vector<Digest> subtrees;
    while (first < end) {
      unsigned height = 0;
      while (height < 63 && end - first >= (std::uint64_t{2} << height)) {
        ++height;
      }
      RINGFENCE_ASSIGN(const Digest subtree, Perfect(height, first >> height));
      subtrees.push_back(subtree);
      first += std::uint64_t{1} << height;
    }
    Digest root = subtrees.back();
    for (std::size_t i = subtrees.size() - 1; i-- > 0;) {
      root = NodeHash(subtrees[i], root);
    }
    return root;
  }

 private:
  // The root of the perfect subtree numbered `index` of 2^height entries.
  Result<Digest> Perfect(unsigned height, std::uint64_t index) {
    const unsigned level = height / kTileHeight;
    const unsigned inside = height % kTileHeight;
    const std::uint64_t first = index << inside;
    RINGFENCE_ASSIGN(const std::vector<Digest>* tile, Tile(level, first / kTileWidth));
    return PerfectRoot(
        std::span<const Digest>(*tile).subspan(first % kTileWidth, std::size_t{1} << inside));
  }

  Result<const std::vector<Digest>*> Tile(unsigned level, std::uint64_t index) {
    const auto [slot, is_new] = tiles_.try_emplace({level, index});
    if (is_new) {
      const std::uint64_t width = std::min(HashesAt(size_, level) - index * kTileWidth, kTileWidth);
      const std::string path = folder_ + "/" + TilePath(level, index, kTileWidth);
      RINGFENCE_ASSIGN(const Bytes bytes, ReadPiece(path, width, kTileBytesMax));
      if (bytes.size() < width * sizeof(Digest) || bytes.size() % sizeof(Digest) != 0) {
        return Error{Code::kCorrupt, path + " is cut short",
                     "run `ringfence audit verify` on the log"};
      }
      slot->second.resize(width);
      for (std::size_t i = 0; i < width; ++i) {
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(i * sizeof(Digest)), sizeof(Digest),
                    slot->second[i].begin());
      }
    }
    return &slot->second;
  }

  std::string folder_;
  std::uint64_t size_;
  std::map<std::pair<unsigned, std::uint64_t>, std::vector<Digest>> tiles_;
};

// The largest power of two less than `count`, which is at least 2.
std::uint64_t SplitPoint(std::uint64_t count) {
  std::uint64_t split = 1;
  while (split < count - split) {
    split *= 2;
  }
  return split;
}

}  // namespace

Result<Bytes> ReadEntry(const std::string& folder, std::uint64_t index, std::uint64_t tree_size) {
  if (index >= tree_size) {
    return Error{Code::kNotFound, "audit log: there is no entry " + std::to_string(index) +
                                      " in a log of " + std::to_string(tree_size)};
  }
  const std::uint64_t bundle = index / kTileWidth;
  const std::uint64_t width = std::min(tree_size - bundle * kTileWidth, kTileWidth);
  const std::string path = folder + "/" + BundlePath(bundle, kTileWidth);
  RINGFENCE_ASSIGN(const Bytes bytes, ReadPiece(path, width, kBundleBytesMax));
  ByteView rest = bytes;
  for (std::uint64_t skip = index % kTileWidth;; --skip) {
    const std::size_t length = rest.size() < 2 ? 0 : GetBigEndian<std::uint16_t>(rest);
    if (rest.size() < 2 + length) {
      return Error{Code::kCorrupt, path + " is cut short",
                   "run `ringfence audit verify` on the log"};
    }
    if (skip == 0) {
      const ByteView entry = rest.subspan(2, length);
      return Bytes(entry.begin(), entry.end());
    }
    rest = rest.subspan(2 + length);
  }
}

Result<std::vector<Digest>> InclusionProof(const std::string& folder, std::uint64_t index,
                                           std::uint64_t tree_size) {
  if (index >= tree_size) {
    return BadRange("no entry " + std::to_string(index) + " in a tree of " +
                    std::to_string(tree_size));
  }
  TileHashes hashes(folder, tree_size);
  std::vector<Digest> proof;
  std::uint64_t first = 0;
  std::uint64_t end = tree_size;
  while (end - first > 1) {
    const std::uint64_t middle = first + SplitPoint(end - first);
    const bool left = index < middle;
    RINGFENCE_ASSIGN(const Digest sibling,
                     left ? hashes.RangeRoot(middle, end) : hashes.RangeRoot(first, middle));
    proof.push_back(sibling);
    (left ? end : first) = middle;
  }
  std::reverse(proof.begin(), proof.end());
  return proof;
}

Result<std::vector<Digest>> ConsistencyProof(const std::string& folder, std::uint64_t old_size,
                                             std::uint64_t new_size) {
  if (old_size > new_size) {
    return BadRange("a tree of " + std::to_string(new_size) + " does not extend one of " +
                    std::to_string(old_size));
  }
  std::vector<Digest> proof;
  if (old_size == 0 || old_size == new_size) {
    return proof;
  }
  TileHashes hashes(folder, new_size);
  std::uint64_t first = 0;
  std::uint64_t end = new_size;
  // Until the old tree's last entries are exactly one subtree; when that is the whole old tree,
  // the verifier knows its hash already.
  while (end != old_size) {
    const std::uint64_t middle = first + SplitPoint(end - first);
    const bool left = old_size <= middle;
    RINGFENCE_ASSIGN(const Digest sibling,
                     left ? hashes.RangeRoot(middle, end) : hashes.RangeRoot(first, middle));
    proof.push_back(sibling);
    (left ? end : first) = middle;
  }
  if (first != 0) {
    RINGFENCE_ASSIGN(const Digest last, hashes.RangeRoot(first, end));
    proof.push_back(last);
  }
  std::reverse(proof.begin(), proof.end());
  return proof;
}

}  // namespace ringfence::audit
