#pragma once

// Leases that wait for room. Their order is that of their numbers; all servers of one database see
// the same queue.

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "store/database.h"

namespace ringfence::store {

Result<bool> AnyQueued(Connection& db);
// All, or those of one tenant.
Result<std::int64_t> CountQueued(Connection& db, const std::string& tenant = {});
// From 1: the next to be served; 0 for a lease that does not wait.
Result<std::int64_t> QueuePosition(Connection& db, const std::string& lease);

// When whoever asked for a lease was last heard of.
Status PutBeat(Connection& db, const std::string& lease, Timestamp now);
Result<std::optional<Timestamp>> GetBeat(Connection& db, const std::string& lease);
Status DropBeat(Connection& db, const std::string& lease);

}  // namespace ringfence::store
