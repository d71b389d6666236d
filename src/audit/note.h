#pragma once

// C2SP signed-note, tlog-checkpoint and tlog-cosignature (v1, Ed25519).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "audit/log.h"
#include "base/result.h"

namespace ringfence::audit {

struct Checkpoint {
  std::string origin;
  TreeHead head;
};

// "ringfence.local/x+1a2b3c4d+AbC...=": the vkey form of a note key. `type` 1 is Ed25519, 4 is an
// Ed25519 cosigner.
std::string VerifierKey(std::string_view name, std::uint8_t type, const crypto::PublicKey& key);
struct NamedKey {
  std::string name;
  std::uint8_t type = 1;
  crypto::PublicKey key;
};
Result<NamedKey> ParseVerifierKey(std::string_view vkey);

std::string SignCheckpoint(const Checkpoint& checkpoint, const crypto::SigningKey& key);
// Verifies the log's own signature; kCorrupt with the reason otherwise.
Result<Checkpoint> OpenCheckpoint(std::string_view note, const NamedKey& log_key);

// One cosignature line ("— NAME base64\n") over the note's text at `time`.
std::string Cosign(std::string_view note, std::string_view witness_name,
                   const crypto::SigningKey& key, Timestamp time);
// OK with the time when `note` carries a valid cosignature line by this key.
Result<Timestamp> VerifyCosignature(std::string_view note, const NamedKey& witness);

// RFC 6962 proofs, as a witness checks them.
Status VerifyConsistency(const TreeHead& old_head, const TreeHead& new_head,
                         const std::vector<Digest>& proof);
Status VerifyInclusion(const Digest& leaf, std::uint64_t index, const TreeHead& head,
                       const std::vector<Digest>& proof);
Digest LeafHash(ByteView entry);

// A witness: remembers the newest head it has seen (durably, in `path`), and cosigns only what is
// consistent with it. One thread.
class Witness {
 public:
  static Result<Witness> Open(std::string path, std::string name, crypto::SigningKey key,
                              NamedKey log_key);
  // The cosignature line. kCorrupt, with both heads in the message, when `note` is not consistent
  // with what was seen before: a rollback or a fork. That refusal is for good until a person
  // removes the file.
  Result<std::string> Check(std::string_view note, const std::vector<Digest>& consistency_proof,
                            Timestamp now);
  TreeHead seen() const { return seen_; }
  std::string vkey() const;

 private:
  Witness(std::string path, std::string name, crypto::SigningKey key, NamedKey log_key,
          TreeHead seen);
  std::string path_;
  std::string name_;
  crypto::SigningKey key_;
  NamedKey log_key_;
  TreeHead seen_;
};

}  // namespace ringfence::audit
