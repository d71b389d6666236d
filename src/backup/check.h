#pragma once

// Whether a backup is whole, and whether its log is the one that witnesses saw.

#include <string>
#include <vector>

#include "backup/format.h"
#include "backup/seal.h"
#include "backup/walk.h"
#include "base/result.h"
#include "crypto/ed25519.h"

namespace ringfence::backup {

struct KnownCheckpoint {
  std::string name;  // for people: the file it came from
  std::string note;
};

struct CheckReport {
  bool ok = false;
  Manifest manifest;
  bool rollback = false;               // it has fewer entries than a known checkpoint signs
  bool fork = false;                   // its entries are others than a known checkpoint signs
  std::vector<std::string> problems;   // for people; empty when ok
  std::vector<std::string> witnesses;  // nodes whose cosignature its checkpoint bears
};

// Reads all of it and writes nothing. An error when it cannot be read as a backup (kCorrupt: it is
// damaged, or the passphrase is another); what is wrong with what it holds is in the report. The
// Merkle root is rebuilt from the entries by the verifier's code, not the writer's.
Result<CheckReport> Check(SealedReader& reader, const std::vector<KnownCheckpoint>& known,
                          const Progress& progress);

// A signing key as the server keeps it.
Result<crypto::SigningKey> ReadLogKey(const std::string& path);
Result<crypto::SigningKey> ParseLogKey(const SecretBytes& text);

}  // namespace ringfence::backup
