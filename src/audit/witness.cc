#include "audit/note.h"
#include "audit/note_text.h"
#include "audit/tiles.h"
#include "base/encoding.h"
#include "os/file.h"

namespace ringfence::audit {
namespace {

std::string Describe(const TreeHead& head) {
  return std::to_string(head.size) + " entries with root " + Base64(head.root);
}

}  // namespace

Witness::Witness(std::string path, std::string name, crypto::SigningKey key, NamedKey log_key,
                 TreeHead seen)
    : path_(std::move(path)),
      name_(std::move(name)),
      key_(std::move(key)),
      log_key_(std::move(log_key)),
      seen_(seen) {}

// The state is the newest note itself: it says which log it is of and proves that the log signed
// it.
Result<Witness> Witness::Open(std::string path, std::string name, crypto::SigningKey key,
                              NamedKey log_key) {
  if (!IsKeyName(name)) {
    return Error{Code::kInvalidArgument,
                 "a witness's name must not be empty nor hold spaces or '+'",
                 {},
                 "name"};
  }
  TreeHead seen{0, EmptyRoot()};
  const Result<std::string> note = os::ReadText(path, kNoteBytesMax);
  if (note.has_value()) {
    const Result<Checkpoint> checkpoint = OpenCheckpoint(*note, log_key);
    if (!checkpoint.has_value()) {
      Error error = Prefix("the witness's memory " + path, checkpoint.error());
      error.hint = "find out who changed it; remove it only to begin anew with this log";
      return error;
    }
    seen = checkpoint->head;
  } else if (note.error().code != Code::kNotFound) {
    return note.error();
  }
  return Witness(std::move(path), std::move(name), std::move(key), std::move(log_key), seen);
}

Result<std::string> Witness::Check(std::string_view note,
                                   const std::vector<Digest>& consistency_proof, Timestamp now) {
  RINGFENCE_ASSIGN(const Checkpoint checkpoint, OpenCheckpoint(note, log_key_));
  const TreeHead& head = checkpoint.head;
  const auto refuse = [&](std::string_view why) {
    return Error{Code::kCorrupt,
                 "not cosigned, " + std::string(why) + ": the log shows " + Describe(head) +
                     ", but " + Describe(seen_) + " were seen before",
                 "keep both checkpoints: together they prove what the log did"};
  };
  if (head.size < seen_.size) {
    return refuse("a rollback");
  }
  if (head.size == seen_.size && head.root != seen_.root) {
    return refuse("a fork");
  }
  if (head.size > seen_.size) {
    if (const Status status = VerifyConsistency(seen_, head, consistency_proof);
        !status.has_value()) {
      return refuse("a fork or a wrong proof (" + status.error().message + ")");
    }
    RINGFENCE_TRY(os::WriteFileDurable(path_, AsBytes(note), 0600));
    seen_ = head;
  }
  const std::string line = Cosign(note, name_, key_, now);
  if (line.empty()) {
    return Error{Code::kInvalidArgument, "the clock is before 1970: no cosignature can say so"};
  }
  return line;
}

std::string Witness::vkey() const { return VerifierKey(name_, kTypeCosigner, key_.public_key()); }

}  // namespace ringfence::audit
