#pragma once

// What servers on one database must have in common: the keys they hold, the policy in force, and
// when each node was heard of, whichever of them it spoke to.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "store/database.h"

namespace ringfence::store {

// A fact that is set once and the same for all. Returns what holds: `value`, or what was there.
Result<std::string> SettleFact(Connection& db, const std::string& name, const std::string& value);
Result<std::string> GetFact(Connection& db, const std::string& name);  // "" where there is none

// Policies in the order they came into force; the newest one is in force.
struct StoredPolicy {
  std::string digest;
  std::map<std::string, std::string> files;
};
Status PutPolicy(Connection& db, const StoredPolicy& policy);
Result<std::optional<std::string>> NewestPolicy(Connection& db);  // its digest
Result<StoredPolicy> GetPolicy(Connection& db, const std::string& digest);

struct Pulse {
  Timestamp seen;
  std::uint64_t witnessed = 0;
};
// The one that was heard later stays.
Status PutPulse(Connection& db, const std::string& node, const Pulse& pulse);
Result<std::map<std::string, Pulse>> ListPulses(Connection& db);

}  // namespace ringfence::store
