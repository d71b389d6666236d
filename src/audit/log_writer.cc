#include "audit/log_writer.h"

#include <algorithm>
#include <charconv>

#include "base/encoding.h"
#include "os/file.h"

namespace ringfence::audit {
namespace {

constexpr std::string_view kCheckpointFile = "checkpoint";
constexpr std::string_view kCheckpointNewFile = "checkpoint.new";
constexpr std::string_view kLockFile = ".lock";
constexpr std::size_t kCosignatureBlobBytes = sizeof(std::uint64_t) + sizeof(crypto::Signature);
// The log's own signature is one of those that a note may have.
constexpr std::size_t kCosignaturesMax = kNoteSignaturesMax - 1;
// A batch can have left this many tiles of one level beyond the checkpoint.
constexpr std::uint64_t kTilesPerBatchMax = kBatchEntriesMax / kTileWidth + 1;
constexpr std::uint64_t kTilesPerFolder = 1000;
constexpr std::size_t kDurableFoldersMax = 1024;

std::string ParentOf(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

ByteView AsBytes(const std::vector<Digest>& hashes) { return std::as_bytes(std::span(hashes)); }

}  // namespace

TileLogWriter::TileLogWriter(std::string folder, std::string origin, crypto::SigningKey key,
                             std::unique_ptr<Disk> disk, os::UniqueFd lock)
    : folder_(std::move(folder)),
      origin_(std::move(origin)),
      key_(std::move(key)),
      disk_(std::move(disk)),
      lock_(std::move(lock)) {}

Result<std::unique_ptr<LogWriter>> TileLogWriter::Open(const std::string& folder,
                                                       std::string origin,
                                                       const crypto::SigningKey& key,
                                                       std::unique_ptr<Disk> disk) {
  if (!IsKeyName(origin)) {
    return Error{Code::kInvalidArgument,
                 "a log's origin is printable ASCII without spaces and '+'",
                 {},
                 "origin"};
  }
  RINGFENCE_TRY(os::MakeDirs(folder));
  RINGFENCE_ASSIGN(os::UniqueFd lock, os::LockFile(folder + "/" + std::string(kLockFile)));
  RINGFENCE_ASSIGN(crypto::SigningKey own_key,
                   crypto::SigningKey::FromSeed(SecretBytes(key.seed().Reveal())));
  std::unique_ptr<TileLogWriter> writer(new TileLogWriter(
      folder, std::move(origin), std::move(own_key), std::move(disk), std::move(lock)));
  if (const Status status = writer->Recover(); !status.has_value()) {
    return Prefix("audit log " + folder, status.error());
  }
  return std::unique_ptr<LogWriter>(std::move(writer));
}

Status TileLogWriter::Recover() {
  const Result<std::string> note =
      os::ReadText(folder_ + "/" + std::string(kCheckpointFile), kNoteBytesMax);
  if (!note.has_value()) {
    return note.error().code == Code::kNotFound ? StartNew() : Status(note.error());
  }
  const NamedKey log_key{origin_, kTypeEd25519, key_.public_key()};
  RINGFENCE_ASSIGN(const Checkpoint checkpoint, OpenCheckpoint(*note, log_key));
  RINGFENCE_ASSIGN(NoteParts parts, SplitNote(*note));
  head_ = checkpoint.head;
  // Signing is deterministic, so this is the note as it was first signed.
  checkpoint_ = SignCheckpoint(checkpoint, key_);
  for (NoteSignature& signature : parts.signatures) {
    if (checkpoint_.find(signature.line) == std::string::npos) {
      cosignatures_.push_back(std::move(signature));
    }
  }
  RINGFENCE_ASSIGN(edge_, ReadEdge(folder_, head_));
  RINGFENCE_TRY(Clean());
  // What was read may still be only in memory, if the writer before died between its rename and
  // the sync: it becomes durable before anyone is told of it.
  return WriteCheckpoint(WithCosignatures());
}

Status TileLogWriter::StartNew() {
  if (os::Exists(folder_ + "/tile")) {
    return Error{Code::kCorrupt, "there are tiles but no checkpoint",
                 "restore the checkpoint file; a new log needs an empty folder"};
  }
  head_ = {0, EmptyRoot()};
  checkpoint_ = SignCheckpoint({origin_, head_}, key_);
  RINGFENCE_TRY(disk_->SyncDir(folder_ + "/.."));
  return WriteCheckpoint(checkpoint_);
}

// Removes what a writer that died left beyond the checkpoint, and the partial tiles of tiles that
// are full. Not synced: what comes back after a power cut is removed again.
Status TileLogWriter::Clean() {
  RINGFENCE_TRY(Remove(folder_ + "/" + std::string(kCheckpointNewFile)));
  for (unsigned level = 0; level < kTileLevels; ++level) {
    RINGFENCE_TRY(CleanPieces(HashesAt(head_.size, level), [level](std::uint64_t index) {
      return TilePath(level, index, kTileWidth);
    }));
  }
  return CleanPieces(head_.size, [](std::uint64_t index) { return BundlePath(index, kTileWidth); });
}

// `count` hashes or entries are covered by the checkpoint. A batch is bounded, so only the folders
// around the edge can hold anything to remove.
Status TileLogWriter::CleanPieces(std::uint64_t count,
                                  const std::function<std::string(std::uint64_t)>& path) {
  const std::uint64_t full = count / kTileWidth;
  const std::uint64_t first = full > kTilesPerBatchMax ? full - kTilesPerBatchMax : 0;
  for (std::uint64_t group = first / kTilesPerFolder;
       group <= (full + kTilesPerBatchMax) / kTilesPerFolder; ++group) {
    const std::string folder = folder_ + "/" + ParentOf(path(group * kTilesPerFolder));
    const Result<std::vector<std::string>> names = os::ListDir(folder);
    if (!names.has_value()) {
      continue;  // not there, or it will be found unreadable where it is needed
    }
    for (const std::string& name : *names) {
      std::uint64_t index = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
      index += group * kTilesPerFolder;
      const std::string_view rest(end, static_cast<std::size_t>(name.data() + name.size() - end));
      if (error != std::errc() || (!rest.empty() && rest != ".p")) {
        continue;
      }
      const bool is_edge = rest == ".p" && index == full && count % kTileWidth != 0;
      if (is_edge) {
        RINGFENCE_TRY(CleanPartials(folder + "/" + name, count % kTileWidth));
      } else if (rest == ".p" || index >= full) {
        RINGFENCE_TRY(Remove(folder + "/" + name));
      }
    }
  }
  return {};
}

// Of the partial tiles in `folder`, those wider than the checkpoint's are removed.
Status TileLogWriter::CleanPartials(const std::string& folder, std::uint64_t width) {
  RINGFENCE_ASSIGN(const std::vector<std::string> names, os::ListDir(folder));
  for (const std::string& name : names) {
    std::uint64_t has = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), has);
    if (error != std::errc() || end != name.data() + name.size() || has > width) {
      RINGFENCE_TRY(Remove(folder + "/" + name));
    }
  }
  return {};
}

Status TileLogWriter::Remove(const std::string& path) {
  return os::Exists(path) ? disk_->RemoveTree(path) : Status();
}

Result<TreeHead> TileLogWriter::Append(const std::vector<Bytes>& entries) {
  if (broken_) {
    return Error{Code::kFailedPrecondition, "audit log: an earlier append failed",
                 "open the log again and go on from its head"};
  }
  if (entries.size() > kBatchEntriesMax) {
    return Error{Code::kInvalidArgument, "audit log: a batch of " + std::to_string(entries.size()) +
                                             " entries is over the limit of " +
                                             std::to_string(kBatchEntriesMax)};
  }
  for (const Bytes& entry : entries) {
    if (entry.size() > kEntryBytesMax) {
      return Error{Code::kInvalidArgument,
                   "audit log: an entry of " + std::to_string(entry.size()) +
                       " bytes is over the limit of " + std::to_string(kEntryBytesMax)};
    }
  }
  if (entries.empty()) {
    return head_;
  }
  broken_ = true;  // until the last step has worked
  if (const Status status = AppendAll(entries); !status.has_value()) {
    return Prefix("audit log " + folder_, status.error());
  }
  broken_ = false;
  return head_;
}

Status TileLogWriter::AppendAll(const std::vector<Bytes>& entries) {
  const std::uint64_t old_size = edge_.size;
  for (const Bytes& entry : entries) {
    RINGFENCE_TRY(AddEntry(entry));
  }
  RINGFENCE_TRY(WritePartials(old_size));
  RINGFENCE_TRY(SyncStaged());
  const TreeHead head{edge_.size, edge_.Root()};
  const std::string note = SignCheckpoint({origin_, head}, key_);
  RINGFENCE_TRY(WriteCheckpoint(note));
  head_ = head;
  checkpoint_ = note;
  cosignatures_.clear();
  DropPartials(old_size);
  return {};
}

// Adds to the edge; each tile that becomes full is staged and leaves it.
Status TileLogWriter::AddEntry(const Bytes& entry) {
  ringfence::Append(edge_.bundle, PutBigEndian(static_cast<std::uint16_t>(entry.size())));
  ringfence::Append(edge_.bundle, entry);
  Digest hash = LeafHash(entry);
  unsigned height = 0;
  edge_.tiles[0].push_back(hash);
  for (; ((edge_.size >> height) & 1U) != 0; ++height) {
    hash = NodeHash(edge_.peaks[height], hash);
    if ((height + 1) % kTileHeight == 0) {
      edge_.tiles[(height + 1) / kTileHeight].push_back(hash);
    }
  }
  edge_.peaks[height] = hash;
  ++edge_.size;
  if (edge_.size % kTileWidth == 0) {
    RINGFENCE_TRY(Stage(BundlePath(edge_.size / kTileWidth - 1, kTileWidth), edge_.bundle));
    edge_.bundle.clear();
  }
  for (unsigned level = 0; level < kTileLevels && edge_.tiles[level].size() == kTileWidth;
       ++level) {
    const std::uint64_t index = HashesAt(edge_.size, level) / kTileWidth - 1;
    RINGFENCE_TRY(Stage(TilePath(level, index, kTileWidth), AsBytes(edge_.tiles[level])));
    edge_.tiles[level].clear();
  }
  return {};
}

Status TileLogWriter::WritePartials(std::uint64_t old_size) {
  if (!edge_.bundle.empty()) {
    RINGFENCE_TRY(
        Stage(BundlePath(edge_.size / kTileWidth, edge_.size % kTileWidth), edge_.bundle));
  }
  for (unsigned level = 0; level < kTileLevels; ++level) {
    const std::uint64_t count = HashesAt(edge_.size, level);
    if (count == HashesAt(old_size, level)) {
      break;
    }
    if (count % kTileWidth != 0) {
      RINGFENCE_TRY(Stage(TilePath(level, count / kTileWidth, count % kTileWidth),
                          AsBytes(edge_.tiles[level])));
    }
  }
  return {};
}

// Writes a file that the next SyncStaged makes durable, name and all.
Status TileLogWriter::Stage(const std::string& path, ByteView bytes) {
  if (staged_files_.size() == kOpenFilesMax - 1) {
    RINGFENCE_TRY(SyncStaged());
  }
  const std::string whole = folder_ + "/" + path;
  RINGFENCE_TRY(MakeParents(ParentOf(whole)));
  RINGFENCE_TRY(disk_->Write(whole, bytes));
  staged_files_.push_back(whole);
  staged_folders_.insert(ParentOf(whole));
  return {};
}

Status TileLogWriter::MakeParents(const std::string& path) {
  if (path == folder_ || durable_folders_.contains(path)) {
    return {};
  }
  const std::string parent = ParentOf(path);
  RINGFENCE_TRY(MakeParents(parent));
  // One that is there may have been made by a writer that died before it synced the name.
  RINGFENCE_TRY(disk_->MakeDir(path));
  staged_folders_.insert(parent);
  new_folders_.push_back(path);
  return {};
}

// All files are written before the first is synced, so that the file system can commit them
// together.
Status TileLogWriter::SyncStaged() {
  RINGFENCE_TRY(disk_->SyncAll(staged_files_, staged_folders_));
  if (durable_folders_.size() + new_folders_.size() > kDurableFoldersMax) {
    durable_folders_.clear();
  }
  durable_folders_.insert(new_folders_.begin(), new_folders_.end());
  new_folders_.clear();
  staged_files_.clear();
  staged_folders_.clear();
  return {};
}

Status TileLogWriter::WriteCheckpoint(const std::string& note) {
  const std::string fresh = folder_ + "/" + std::string(kCheckpointNewFile);
  RINGFENCE_TRY(disk_->Write(fresh, ringfence::AsBytes(note)));
  RINGFENCE_TRY(disk_->SyncFile(fresh));
  RINGFENCE_TRY(disk_->Rename(fresh, folder_ + "/" + std::string(kCheckpointFile)));
  return disk_->SyncDir(folder_);
}

// The partial tiles of what became full are of no more use. Failing to remove them harms nothing:
// the next Open tries again.
void TileLogWriter::DropPartials(std::uint64_t old_size) {
  for (unsigned level = 0; level < kTileLevels; ++level) {
    const std::uint64_t old_count = HashesAt(old_size, level);
    const std::uint64_t index = old_count / kTileWidth;
    if (index == HashesAt(edge_.size, level) / kTileWidth) {
      break;
    }
    if (old_count % kTileWidth == 0) {
      continue;
    }
    (void)disk_->RemoveTree(folder_ + "/" + PartialFolder(TilePath(level, index, kTileWidth)));
    if (level == 0) {
      (void)disk_->RemoveTree(folder_ + "/" + PartialFolder(BundlePath(index, kTileWidth)));
    }
  }
}

std::string TileLogWriter::WithCosignatures() const {
  std::string note = checkpoint_;
  for (const NoteSignature& signature : cosignatures_) {
    note += signature.line;
  }
  return note;
}

Status TileLogWriter::AddCosignature(std::string_view line) {
  if (broken_) {
    return Error{Code::kFailedPrecondition, "audit log: an earlier append failed",
                 "open the log again and go on from its head"};
  }
  const Result<NoteSignature> parsed = ParseSignatureLine(line);
  if (!parsed.has_value() || parsed->blob.size() != kCosignatureBlobBytes ||
      line.find('\n') + 1 != line.size() || parsed->name == origin_) {
    return Error{Code::kInvalidArgument, "not a cosignature line"};
  }
  std::vector<NoteSignature> before = cosignatures_;
  const auto same = std::find_if(cosignatures_.begin(), cosignatures_.end(), [&](const auto& one) {
    return one.name == parsed->name && one.key_id == parsed->key_id;
  });
  if (same != cosignatures_.end()) {
    *same = *parsed;
  } else if (cosignatures_.size() == kCosignaturesMax) {
    return Error{Code::kExhausted, "the checkpoint has " + std::to_string(kCosignaturesMax) +
                                       " cosignatures already"};
  } else {
    cosignatures_.push_back(*parsed);
  }
  Status status = WriteCheckpoint(WithCosignatures());
  if (!status.has_value()) {
    cosignatures_ = std::move(before);
  }
  return status;
}

Result<std::unique_ptr<LogWriter>> LogWriter::Open(const std::string& folder, std::string origin,
                                                   const crypto::SigningKey& key) {
  return TileLogWriter::Open(folder, std::move(origin), key, std::make_unique<RealDisk>());
}

}  // namespace ringfence::audit
