#pragma once

// LogWriter on any Disk: what LogWriter::Open makes, and what tests make with a disk that fails.

#include <array>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "audit/disk.h"
#include "audit/log.h"
#include "audit/note.h"
#include "audit/note_text.h"
#include "audit/tiles.h"
#include "os/unique_fd.h"

namespace ringfence::audit {

// The right edge of the tree: all that must be known to extend it. At most kTileLevels tiles.
struct Edge {
  std::uint64_t size = 0;
  // The last hashes at each tile level, fewer than kTileWidth: those of the partial tile.
  std::array<std::vector<Digest>, kTileLevels> tiles;
  // peaks[h] is the root of the perfect subtree of 2^h entries, where bit h of `size` is set.
  std::array<Digest, 64> peaks{};
  // The entries of the partial bundle, as they are in its file.
  Bytes bundle;

  Digest Root() const;
};

// Reads the edge of a log of `head.size` entries. kCorrupt unless it leads to `head.root` and the
// partial bundle's entries hash to their leaves.
Result<Edge> ReadEdge(const std::string& folder, const TreeHead& head);

class TileLogWriter final : public LogWriter {
 public:
  static Result<std::unique_ptr<LogWriter>> Open(const std::string& folder, std::string origin,
                                                 const crypto::SigningKey& key,
                                                 std::unique_ptr<Disk> disk);
  Result<TreeHead> Append(const std::vector<Bytes>& entries) override;
  TreeHead head() const override { return head_; }
  std::string checkpoint() const override { return checkpoint_; }
  Status AddCosignature(std::string_view line) override;

 private:
  TileLogWriter(std::string folder, std::string origin, crypto::SigningKey key,
                std::unique_ptr<Disk> disk, os::UniqueFd lock);
  Status Recover();
  Status StartNew();
  Status Clean();
  Status CleanPieces(std::uint64_t count, const std::function<std::string(std::uint64_t)>& path);
  Status CleanPartials(const std::string& folder, std::uint64_t width);
  Status Remove(const std::string& path);
  Status AppendAll(const std::vector<Bytes>& entries);
  Status AddEntry(const Bytes& entry);
  Status WritePartials(std::uint64_t old_size);
  Status Stage(const std::string& path, ByteView bytes);
  Status SyncStaged();
  Status MakeParents(const std::string& path);
  Status WriteCheckpoint(const std::string& note);
  void DropPartials(std::uint64_t old_size);
  std::string WithCosignatures() const;

  std::string folder_;
  std::string origin_;
  crypto::SigningKey key_;
  std::unique_ptr<Disk> disk_;
  os::UniqueFd lock_;
  TreeHead head_;
  std::string checkpoint_;
  std::vector<NoteSignature> cosignatures_;
  Edge edge_;
  bool broken_ = false;
  std::vector<std::string> staged_files_;
  std::set<std::string> staged_folders_;
  std::vector<std::string> new_folders_;
  // Folders whose names this writer knows to be durable, so that it need not sync their parents
  // again. Forgotten now and then: it stays small.
  std::set<std::string> durable_folders_;
};

}  // namespace ringfence::audit
