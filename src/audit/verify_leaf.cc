// One bundle of entries against its tile of leaf hashes.

#include <algorithm>
#include <cstring>

#include "audit/verify_json.h"
#include "audit/verify_tree.h"

namespace ringfence::audit::verify {
namespace {

// Candidates that may be hashed to find the next entry after one whose length is damaged.
constexpr unsigned kResyncHashesLimit = 4096;

std::string EntryName(std::uint64_t index) { return "entry " + std::to_string(index); }

class LeafCheck {
 public:
  LeafCheck(const std::string& folder, std::uint64_t index, std::uint64_t width, LeafRoom& room)
      : folder_(folder),
        width_(width),
        first_(index * kSpan),
        tile_(room.tile),
        bundle_(room.bundle),
        hashes_(room.hashes),
        shapes_(room.shapes) {
    out_.index = index;
  }

  LeafTile Run() {
    ReadTile();
    ReadBundle();
    if (Clean()) {
      return std::move(out_);
    }
    out_.leaves.resize(width_);
    if (have_bundle_) {
      if (Frame()) {
        CheckEntries();
      } else {
        Salvage();
      }
    }
    for (std::uint64_t i = 0; i < width_; ++i) {
      Settle(out_.leaves[i], i);
    }
    if (width_ == kSpan) {
      Whole();
    }
    return std::move(out_);
  }

 private:
  struct Span {
    std::size_t at = 0;
    std::size_t length = 0;
  };

  // Almost every tile there is: nothing is wrong with it. False, with nothing done, otherwise; then
  // all is looked at once more, and told apart.
  bool Clean() {
    if (!have_bundle_ || stored_ != width_ || !out_.bad.empty()) {
      return false;
    }
    const ByteView bundle = bundle_;
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < width_; ++i) {
      Span frame;
      if (!FrameAt(at, frame)) {
        return false;
      }
      const ByteView entry = bundle.subspan(frame.at, frame.length);
      hashes_[i] = HashEntry(entry);
      if (WhyBadJson(AsText(entry)) != nullptr) {
        return false;
      }
      at = frame.at + frame.length;
    }
    if ((at != bundle_.size() && exact_) ||
        std::memcmp(hashes_.data(), tile_.data(), width_ * sizeof(Digest)) != 0) {
      return false;
    }
    out_.entries_read = width_;
    out_.clean.assign(hashes_.begin(), hashes_.begin() + static_cast<std::ptrdiff_t>(width_));
    if (width_ == kSpan) {
      const Digest root = Fold();
      out_.whole = Subtree{root, root, true, false};
    }
    return true;
  }

  ByteView Body(const Span& frame) const {
    return ByteView(bundle_).subspan(frame.at, frame.length);
  }
  bool HasStored(std::uint64_t i) const { return i < stored_; }
  bool IsStored(std::uint64_t i, const Digest& hash) const {
    return std::equal(hash.begin(), hash.end(),
                      tile_.begin() + static_cast<std::ptrdiff_t>(i * sizeof(Digest)));
  }
  void Bad(std::uint64_t from, std::uint64_t to, std::string what) {
    out_.bad.push_back({first_ + from, first_ + to, std::move(what)});
    out_.leaves.resize(width_);
    for (std::uint64_t i = from; i <= to; ++i) {
      out_.leaves[i].reported = true;
    }
  }

  void ReadTile() {
    const Result<Piece> piece = ReadPiece(folder_, 0, out_.index, width_, tile_);
    if (!piece.has_value()) {
      Bad(0, width_ - 1, piece.error().message);
      return;
    }
    const std::size_t wanted = width_ * sizeof(Digest);
    if (tile_.size() < wanted || (piece->exact && tile_.size() > wanted)) {
      stored_ = std::min<std::uint64_t>(width_, tile_.size() / sizeof(Digest));
      Bad(std::min(stored_, width_ - 1), width_ - 1,
          piece->path + (tile_.size() < wanted ? " is cut short" : " is too long"));
      return;
    }
    stored_ = width_;
  }

  void ReadBundle() {
    const Result<Piece> piece = ReadPiece(folder_, kEntries, out_.index, width_, bundle_);
    if (!piece.has_value()) {
      Bad(0, width_ - 1, piece.error().message);
      return;
    }
    have_bundle_ = true;
    exact_ = piece->exact;
    path_ = piece->path;
  }

  // The frame of one entry at `at`, or false when it does not fit.
  bool FrameAt(std::size_t at, Span& frame) const {
    if (bundle_.size() - at < 2) {
      return false;
    }
    frame.length = GetBigEndian<std::uint16_t>(ByteView(bundle_).subspan(at));
    frame.at = at + 2;
    return bundle_.size() - frame.at >= frame.length;
  }

  // Whether the lengths lead through the bundle to its end, as in one that is not damaged.
  bool Frame() {
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < width_; ++i) {
      if (!FrameAt(at, frames_[i])) {
        return false;
      }
      at = frames_[i].at + frames_[i].length;
    }
    return at == bundle_.size() || !exact_;
  }

  void CheckEntries() {
    for (std::uint64_t i = 0; i < width_; ++i) {
      Entry(i, frames_[i]);
    }
  }

  // True when it is what its leaf hash says.
  bool Entry(std::uint64_t i, const Span& frame) {
    Subtree& leaf = out_.leaves[i];
    leaf.from_entries = HashEntry(Body(frame));
    ++out_.entries_read;
    have_entry_[i] = true;
    if (HasStored(i) && !IsStored(i, leaf.from_entries)) {
      Bad(i, i, EntryName(first_ + i) + ": hash differs from its tile");
      return false;
    }
    if (const char* const why = WhyBadJson(AsText(Body(frame))); why != nullptr) {
      out_.bad.push_back({first_ + i, first_ + i,
                          EntryName(first_ + i) + ": not canonical JSON: " + std::string(why)});
    }
    return true;
  }

  const char* WhyBadJson(std::string_view text) {
    if (shapes_.Fits(text)) {
      return nullptr;
    }
    const char* const why = WhyNotCanonical(text);
    if (why == nullptr) {
      shapes_.Learn(text);
    }
    return why;
  }

  // Finds where the entry `next` begins, given that it is somewhere after `at`.
  std::optional<std::size_t> Resync(std::size_t at, std::uint64_t next) {
    for (; at + 4 <= bundle_.size() && resync_hashes_ < kResyncHashesLimit; ++at) {
      Span frame;
      if (!FrameAt(at, frame) || frame.length < 2 || bundle_[frame.at] != std::byte{'{'} ||
          bundle_[frame.at + frame.length - 1] != std::byte{'}'}) {
        continue;
      }
      ++resync_hashes_;
      if (IsStored(next, HashEntry(Body(frame)))) {
        return at;
      }
    }
    return std::nullopt;
  }

  // A bundle that is cut or whose lengths are damaged: the hashes in the tile tell which entries
  // are still what they were.
  void Salvage() {
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < width_; ++i) {
      Span frame;
      const bool fits = FrameAt(at, frame);
      if (fits && (!HasStored(i) || IsStored(i, HashEntry(Body(frame))))) {
        (void)Entry(i, frame);
        at = frame.at + frame.length;
        continue;
      }
      const bool has_next = i + 1 < width_ && HasStored(i + 1);
      const std::optional<std::size_t> next =
          has_next ? Resync(std::min(at + 2, bundle_.size()), i + 1) : std::nullopt;
      if (!next.has_value()) {
        Bad(i, width_ - 1,
            path_ + (fits ? " is damaged from entry " : " is cut short in entry ") +
                std::to_string(first_ + i) + " on");
        return;
      }
      Bad(i, i, EntryName(first_ + i) + ": it or its length is damaged");
      at = *next;
    }
    if (at != bundle_.size() && exact_) {
      out_.problems.push_back(path_ + " has " + std::to_string(bundle_.size() - at) +
                              " bytes after its last entry");
    }
  }

  // What could not be read is taken from the other side, so that the levels above can be judged.
  void Settle(Subtree& leaf, std::uint64_t i) const {
    if (HasStored(i)) {
      std::copy_n(tile_.begin() + static_cast<std::ptrdiff_t>(i * sizeof(Digest)), sizeof(Digest),
                  leaf.from_tiles.begin());
      if (!have_entry_[i]) {
        leaf.from_entries = leaf.from_tiles;
      }
    } else if (have_entry_[i]) {
      leaf.from_tiles = leaf.from_entries;
    } else {
      leaf.known = false;
    }
  }

  // The root of the 256 digests in `hashes_`, which it uses up.
  Digest Fold() {
    for (std::size_t count = kSpan; count > 1; count /= 2) {
      for (std::size_t i = 0; i < count / 2; ++i) {
        hashes_[i] = HashPair(hashes_[2 * i], hashes_[2 * i + 1]);
      }
    }
    return hashes_[0];
  }

  void Whole() {
    Subtree whole;
    for (std::size_t i = 0; i < kSpan; ++i) {
      const Subtree& leaf = out_.leaves[i];
      hashes_[i] = leaf.from_entries;
      whole.known = whole.known && leaf.known;
      whole.reported = whole.reported || leaf.reported;
    }
    whole.from_entries = Fold();
    for (std::size_t i = 0; i < kSpan; ++i) {
      hashes_[i] = out_.leaves[i].from_tiles;
    }
    whole.from_tiles = Fold();
    out_.whole = whole;
  }

  const std::string& folder_;
  std::uint64_t width_;
  std::uint64_t first_;
  LeafTile out_;
  Bytes& tile_;
  std::uint64_t stored_ = 0;  // leaf hashes that the tile has
  Bytes& bundle_;
  std::array<Digest, kSpan>& hashes_;
  ShapeCache& shapes_;
  bool have_bundle_ = false;
  bool exact_ = false;
  std::string path_;
  std::array<Span, kSpan> frames_;
  std::array<bool, kSpan> have_entry_{};
  unsigned resync_hashes_ = 0;
};

}  // namespace

LeafTile CheckLeafTile(const std::string& folder, std::uint64_t index, std::uint64_t width,
                       LeafRoom& room) {
  return LeafCheck(folder, index, width, room).Run();
}

}  // namespace ringfence::audit::verify
