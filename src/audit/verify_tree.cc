#include "audit/verify_tree.h"

#include <algorithm>

#include "crypto/sha256.h"

namespace ringfence::audit::verify {
namespace {

// Adds a row of subtrees of one height, from its right end, to the root of what lies to the right
// of them: as RFC 6962 has it, the largest perfect tree stands leftmost.
template <typename Part, typename Side>
std::optional<Digest> FoldLeft(const std::vector<Part>& row, std::size_t count,
                               std::optional<Digest> right, const Side& side) {
  std::size_t end = count;
  for (std::size_t span = 1; end != 0; span *= 2) {
    if ((end & span) == 0) {
      continue;
    }
    std::vector<Digest> tree;
    for (std::size_t i = end - span; i < end; ++i) {
      tree.push_back(side(row[i]));
    }
    for (; tree.size() > 1; tree.resize(tree.size() / 2)) {
      for (std::size_t i = 0; i < tree.size() / 2; ++i) {
        tree[i] = HashPair(tree[2 * i], tree[2 * i + 1]);
      }
    }
    right = right.has_value() ? HashPair(tree[0], *right) : tree[0];
    end -= span;
  }
  return right;
}

}  // namespace

Digest HashEntry(ByteView entry) {
  constexpr std::array<std::byte, 1> kPrefix = {std::byte{0}};
  return crypto::Sha256({kPrefix, entry});
}

Digest HashPair(const Digest& left, const Digest& right) {
  std::array<std::byte, 1 + 2 * sizeof(Digest)> bytes;
  bytes[0] = std::byte{1};
  std::copy(left.begin(), left.end(), bytes.begin() + 1);
  std::copy(right.begin(), right.end(), bytes.begin() + 1 + sizeof(Digest));
  return crypto::Sha256(bytes);
}

Digest RootOfNothing() { return crypto::Sha256(ByteView()); }

void TreeCheck::Report(BadRange range) {
  if (report_.bad.size() < kBadLimit) {
    report_.bad.push_back(std::move(range));
  } else {
    ++bad_unnamed_;
  }
}

void TreeCheck::Add(LeafTile tile) {
  Flush();
  report_.entries_read += tile.entries_read;
  for (BadRange& range : tile.bad) {
    Report(std::move(range));
  }
  for (std::string& problem : tile.problems) {
    report_.problems.push_back(std::move(problem));
  }
  clean_ = std::move(tile.clean);
  leaves_ = std::move(tile.leaves);
  leaves_first_ = tile.index * kSpan;
  whole_ = tile.whole;
}

// Moves the leaf tile added last, when it is full, to the level above.
void TreeCheck::Flush() {
  if (whole_.has_value()) {
    leaves_first_ += kSpan;
    clean_.clear();
    leaves_.clear();
    AddSubtree(1, *whole_);
    whole_.reset();
  }
}

void TreeCheck::AddSubtree(unsigned level, const Subtree& subtree) {
  std::vector<Subtree>& row = open_[level];
  row.push_back(subtree);
  if (row.size() < kSpan) {
    return;
  }
  CompareTile(level);
  ++tiles_closed_[level];
  Subtree whole;
  for (const Subtree& part : row) {
    whole.known = whole.known && part.known;
    whole.reported = whole.reported || part.reported;
  }
  whole.from_entries =
      *FoldLeft(row, kSpan, std::nullopt, [](const Subtree& part) { return part.from_entries; });
  whole.from_tiles =
      *FoldLeft(row, kSpan, std::nullopt, [](const Subtree& part) { return part.from_tiles; });
  row.clear();
  AddSubtree(level + 1, whole);
}

// Compares the open tile of a level with its file. From here on the file's hashes are what the
// tiles say of each subtree.
void TreeCheck::CompareTile(unsigned level) {
  std::vector<Subtree>& row = open_[level];
  const std::uint64_t index = tiles_closed_[level];
  const std::uint64_t entries_each = std::uint64_t{1} << (8 * level);
  const std::uint64_t first = index * kSpan * entries_each;
  Bytes bytes;
  const Result<Piece> piece = ReadPiece(folder_, level, index, row.size(), bytes);
  const std::size_t wanted = row.size() * sizeof(Digest);
  if (!piece.has_value()) {
    Report({first, first + row.size() * entries_each - 1, piece.error().message});
    bytes.clear();
  } else if (bytes.size() < wanted || (piece->exact && bytes.size() > wanted)) {
    Report({first, first + row.size() * entries_each - 1,
            piece->path + (bytes.size() < wanted ? " is cut short" : " is too long")});
  }
  for (std::size_t i = 0; i < row.size() && (i + 1) * sizeof(Digest) <= bytes.size(); ++i) {
    Subtree& part = row[i];
    Digest stored{};
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(i * sizeof(Digest)), sizeof(Digest),
                stored.begin());
    if (!part.known) {
      part = {stored, stored, true, true};
      continue;
    }
    const bool explained =
        part.reported && (stored == part.from_entries || stored == part.from_tiles);
    const bool equal = stored == part.from_entries && stored == part.from_tiles;
    if (!equal && !explained) {
      const std::uint64_t from = first + i * entries_each;
      Report({from, from + entries_each - 1,
              piece->path + ": hash " + std::to_string(i) + " differs from what is below it"});
      part.reported = true;
    }
    part.from_tiles = stored;
  }
}

void TreeCheck::Finish() {
  Flush();
  for (unsigned level = 1; level < kLevels; ++level) {
    if (!open_[level].empty()) {
      CompareTile(level);
    }
  }
  if (bad_unnamed_ > 0) {
    report_.problems.push_back("and " + std::to_string(bad_unnamed_) +
                               " more damaged ranges that are not named");
  }
}

std::optional<TreeCheck::Roots> TreeCheck::RootAt(std::uint64_t count) const {
  if (count == 0) {
    return Roots{RootOfNothing(), RootOfNothing()};
  }
  const auto in_leaves = static_cast<std::size_t>(count - leaves_first_);
  const auto is_known = [](const Subtree& part) { return part.known; };
  const auto from_entries = [](const Subtree& part) { return part.from_entries; };
  const auto from_tiles = [](const Subtree& part) { return part.from_tiles; };
  std::optional<Digest> entries;
  std::optional<Digest> tiles;
  if (clean_.empty()) {
    if (!std::all_of(leaves_.begin(), leaves_.begin() + static_cast<std::ptrdiff_t>(in_leaves),
                     is_known)) {
      return std::nullopt;
    }
    entries = FoldLeft(leaves_, in_leaves, std::nullopt, from_entries);
    tiles = FoldLeft(leaves_, in_leaves, std::nullopt, from_tiles);
  } else {
    entries = FoldLeft(clean_, in_leaves, std::nullopt, [](const Digest& leaf) { return leaf; });
    tiles = entries;
  }
  for (unsigned level = 1; level < kLevels; ++level) {
    const std::vector<Subtree>& row = open_[level];
    if (!std::all_of(row.begin(), row.end(), is_known)) {
      return std::nullopt;
    }
    entries = FoldLeft(row, row.size(), entries, from_entries);
    tiles = FoldLeft(row, row.size(), tiles, from_tiles);
  }
  return Roots{*entries, *tiles};
}

}  // namespace ringfence::audit::verify
