#pragma once

// How far the audit log is built, and which server's turn it is to build it. The log is a pure
// function of the audit records, so any server can build it; the turn decides who publishes.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace ringfence::store {

// The newest published checkpoint: nobody was shown a newer one.
struct LogHead {
  std::int64_t size = 0;
  std::string note;  // empty as long as nothing was published
};
Result<LogHead> GetLogHead(Connection& db);

// `epoch` counts the holders and fences the earlier ones off; `beat` moves while the holder lives.
// No clock is compared with another: whoever sees neither of them move for a while may take over.
struct LogTurn {
  std::string holder;  // empty: it was given back
  std::int64_t epoch = 0;
  std::int64_t beat = 0;
  bool operator==(const LogTurn&) const = default;
};
Result<LogTurn> GetLogTurn(Connection& db);
// Takes the turn as it was seen. kConflict when it has moved since.
Result<LogTurn> TakeLogTurn(Connection& db, const LogTurn& seen, const std::string& holder);
// Moves the beat. kConflict when another server has taken the turn.
Status KeepLogTurn(Connection& db, const LogTurn& turn);
Status GiveBackLogTurn(Connection& db, const LogTurn& turn);

// kConflict when another server has taken the turn, or has published more.
Status PublishLogHead(Connection& db, const LogTurn& turn, const LogHead& head);

// In a database that a backup is being restored into, and nobody works on yet: what was published
// before stays published. kConflict when something is published there.
Status RestoreLogHead(Connection& db, const LogHead& head);

// The newest cosignature of each witness.
Status PutCosignature(Connection& db, const std::string& witness, std::int64_t size,
                      const std::string& line);
// Those of the checkpoint of exactly this size.
Result<std::vector<std::string>> CosignaturesOf(Connection& db, std::int64_t size);

}  // namespace ringfence::store
