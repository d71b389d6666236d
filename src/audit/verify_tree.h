#pragma once

// The verifier's own Merkle tree: a log's entries and tiles are read once, from the left, and
// compared with each other at every level; what remains at the end is the root.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/verify.h"
#include "audit/verify_files.h"
#include "audit/verify_shape.h"
#include "base/bytes.h"

namespace ringfence::audit::verify {

inline constexpr std::size_t kBadLimit = 1000;  // ranges that a report names; more are counted

Digest HashEntry(ByteView entry);
Digest HashPair(const Digest& left, const Digest& right);
Digest RootOfNothing();

// A subtree as it follows from what lies below it, and as the log's tiles have it. The two differ
// where something is damaged.
struct Subtree {
  Digest from_entries{};
  Digest from_tiles{};
  bool known = true;      // false: neither entries nor tiles could be read
  bool reported = false;  // damage below has been named
};

// One bundle of entries with its tile. Made by any thread; it does not depend on any other piece.
struct LeafTile {
  std::uint64_t index = 0;
  std::uint64_t entries_read = 0;
  std::vector<Digest> clean;     // the leaves, where entries and tile agree in all of them
  std::vector<Subtree> leaves;   // the leaves otherwise
  std::optional<Subtree> whole;  // when it is full
  std::vector<BadRange> bad;
  std::vector<std::string> problems;
};
// Room for the files of one leaf tile after another: to be kept by each thread that checks them.
struct LeafRoom {
  Bytes tile;
  Bytes bundle;
  std::array<Digest, kSpan> hashes;
  ShapeCache shapes;
};
LeafTile CheckLeafTile(const std::string& folder, std::uint64_t index, std::uint64_t width,
                       LeafRoom& room);

// Puts the leaf tiles together, in order. One thread.
class TreeCheck {
 public:
  // `report` must outlive it.
  TreeCheck(std::string folder, VerifyReport& report)
      : folder_(std::move(folder)), report_(report) {}

  void Add(LeafTile tile);
  // After the last: the remaining tiles of the upper levels.
  void Finish();

  // The root of the first `count` entries, of which those of the leaf tile added last may be cut
  // off but no others; nothing when a part of it could not be read.
  struct Roots {
    Digest from_entries{};
    Digest from_tiles{};
  };
  std::optional<Roots> RootAt(std::uint64_t count) const;

 private:
  void Flush();
  void AddSubtree(unsigned level, const Subtree& subtree);
  void CompareTile(unsigned level);
  void Report(BadRange range);

  std::string folder_;
  VerifyReport& report_;
  std::uint64_t bad_unnamed_ = 0;
  std::vector<Digest> clean_;       // the leaves of the leaf tile added last: either these
  std::vector<Subtree> leaves_;     // or those
  std::uint64_t leaves_first_ = 0;  // index of the first of them
  std::optional<Subtree> whole_;    // of all of them, until it moves to the level above
  // Of each level from 1 on: the subtrees of its tile that is not full yet.
  std::array<std::vector<Subtree>, kLevels + 1> open_;
  std::array<std::uint64_t, kLevels + 1> tiles_closed_{};
};

}  // namespace ringfence::audit::verify
