#pragma once

// Makes a backup of a server's state, also while the server runs.

#include <cstdint>
#include <string>

#include "backup/check.h"
#include "backup/format.h"
#include "backup/walk.h"
#include "base/result.h"
#include "base/secret.h"
#include "base/time.h"
#include "crypto/scrypt.h"
#include "store/database.h"

namespace ringfence::backup {

struct CreateOptions {
  std::string server_folder;  // keys/
  std::string policy_folder;
  std::string file;  // must not exist
  bool with_output = true;
  bool verify = true;  // read it back before it gets its name
  Timestamp now;
  crypto::ScryptCost cost = {};
  Progress progress = {};  // audit entries
};

struct Created {
  Manifest manifest;
  std::uint64_t file_bytes = 0;
};

// One consistent view of the records, whatever happens meanwhile. The file appears under its name
// complete, durable and (unless told otherwise) verified, or not at all. kConflict when it exists.
// kCorrupt when what was read back does not hold: then the state itself is not sound.
Result<Created> Create(store::Database& database, const CreateOptions& options,
                       const SecretBytes& passphrase);

}  // namespace ringfence::backup
