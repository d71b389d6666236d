#pragma once

// The tamper-evident log: C2SP tlog-tiles on disk, Ed25519 checkpoints as signed notes.
// Bytes on disk: docs/formats/audit-log.md. The offline verifier is audit/verify.h and shares no
// code with this.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "crypto/ed25519.h"

namespace ringfence::audit {

inline constexpr std::size_t kEntryBytesMax = 65535;
inline constexpr std::size_t kBatchEntriesMax = 65536;  // entries of one Append

struct TreeHead {
  std::uint64_t size = 0;
  Digest root{};  // of the empty tree: SHA-256 of nothing
  bool operator==(const TreeHead&) const = default;
};

// Grows a log in a folder. One writer at a time holds a folder (it is locked). One thread.
class LogWriter {
 public:
  // Opens or makes the log. `origin` is the log's name, the first line of its checkpoints
  // ("ringfence.local/NAME"). Recovers from a crash at any point: what lies beyond the last signed
  // checkpoint is rewritten, never trusted. kCorrupt when tiles below the checkpoint are damaged.
  static Result<std::unique_ptr<LogWriter>> Open(const std::string& folder, std::string origin,
                                                 const crypto::SigningKey& key);
  virtual ~LogWriter() = default;
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Adds the entries after the current ones, writes and syncs the tiles, then signs and durably
  // writes the checkpoint. Returns the new head once all of that is durable, never before. When it
  // fails for another reason than its input (kInvalidArgument), whether the entries are in is not
  // known, and each later call is kFailedPrecondition: drop the writer, open the log again, and go
  // on after its head().size entries.
  virtual Result<TreeHead> Append(const std::vector<Bytes>& entries) = 0;
  virtual TreeHead head() const = 0;
  virtual std::string checkpoint() const = 0;  // the signed note, without cosignatures
  // Stores the checkpoint with witnesses' cosignature lines for readers ("checkpoint" file), until
  // the next Append. A line of an unknown shape is kInvalidArgument. The caller, who knows the
  // witness's key, has verified it: VerifyCosignature(checkpoint() + line, witness).
  virtual Status AddCosignature(std::string_view line) = 0;

 protected:
  LogWriter() = default;
};

// Reads entries and proofs from a log folder; for the server's API. Any thread.
Result<Bytes> ReadEntry(const std::string& folder, std::uint64_t index, std::uint64_t tree_size);
Result<std::vector<Digest>> InclusionProof(const std::string& folder, std::uint64_t index,
                                           std::uint64_t tree_size);
Result<std::vector<Digest>> ConsistencyProof(const std::string& folder, std::uint64_t old_size,
                                             std::uint64_t new_size);

}  // namespace ringfence::audit
