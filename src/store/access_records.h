#pragma once

// Who used which permission, last and how often; and since which version of the policy each
// binding is there. What is recorded is bounded: the longest unused go first.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "store/database.h"

namespace ringfence::store {

inline constexpr std::int64_t kAccessUsesMax = 200'000;

struct AccessUse {
  std::string principal;
  std::string action;  // "lease.request"
  std::string tenant;  // what it was about; "/" for the cluster
  Timestamp first;
  Timestamp last;
  std::int64_t count = 0;
};

// False in a database that a program of before has left as it was.
Result<bool> HasAccessRecords(Connection& db);
// Adds to what is there.
Status AddAccessUses(Connection& db, const std::vector<AccessUse>& uses,
                     std::int64_t rows_max = kAccessUsesMax);
// Sorted by principal, action and tenant; "": of everybody.
Result<std::vector<AccessUse>> ListAccessUses(Connection& db, const std::string& principal);

// Since when each binding is in the policy: JSON, version by binding. "": not known.
Result<std::string> GetBindingGrants(Connection& db);
Status PutBindingGrants(Connection& db, const std::string& json);

}  // namespace ringfence::store
