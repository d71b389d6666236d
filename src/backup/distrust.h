#pragma once

// What must be doubted after a restore: whatever happened since the backup is not in the records.

#include <cstdint>
#include <string>

#include "backup/format.h"
#include "base/result.h"
#include "base/time.h"
#include "store/database.h"

namespace ringfence::backup {

struct DistrustOptions {
  Manifest manifest;  // of the backup
  Timestamp now;
  bool keep_tokens = false;
  bool rollback_accepted = false;  // known to be older than what a witness saw, and wanted anyway
  std::string policy;              // digest of the restored policy; may be empty
};

struct Distrusted {
  std::uint64_t gpus = 0;  // that must be scrubbed before anybody gets them
  std::uint64_t leases_ended = 0;
  std::uint64_t tokens_revoked = 0;
  std::uint64_t tokens_in_force = 0;
  std::uint64_t join_tokens_dropped = 0;
};

// Inside the transaction that restores the records, so that they never exist without it: no GPU
// counts as clean, every lease that was open is over, no join token is good, and no token is unless
// they are to be kept. One entry `server.restored`, and one for each lease that ends by it.
Result<Distrusted> Distrust(store::Connection& db, const DistrustOptions& options);

}  // namespace ringfence::backup
