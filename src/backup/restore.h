#pragma once

// Puts a backup back onto an empty machine: all of it, or nothing.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "backup/check.h"
#include "backup/distrust.h"
#include "backup/seal.h"
#include "backup/walk.h"
#include "base/result.h"
#include "base/time.h"
#include "os/identity.h"
#include "store/database.h"

namespace ringfence::backup {

struct RestoreOptions {
  std::string state_folder;  // may exist, but hold no server's state and no policy
  // Opens the database to restore into, given the server's folder as it is being put together. Its
  // tables must be empty.
  std::function<Result<std::unique_ptr<store::Database>>(const std::string& server_folder)>
      open_database;
  bool database_apart = false;       // it does not lie in the server's folder
  std::optional<os::Account> owner;  // of the server's folder; nothing: whoever runs this
  bool keep_tokens = false;
  bool rollback_accepted = false;
  Timestamp now;
  Progress progress = {};
};

struct Restored {
  Manifest manifest;
  Distrusted distrusted;
};

// `reader` has passed Check: nothing is written before. The server's folder appears complete and
// durable, with its records already doubted (distrust.h), or not at all.
Result<Restored> Restore(SealedReader& reader, const RestoreOptions& options);

// kConflict, with what to do, when a server's state or a policy is there already.
Status CheckEmpty(const std::string& state_folder);

}  // namespace ringfence::backup
