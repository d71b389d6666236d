#pragma once

#include <set>
#include <string>
#include <vector>

#include "server/router.h"

namespace ringfence::server {

// The lease of this id, if it is on the calling node; kPermissionDenied otherwise.
Result<model::Lease> LeaseOf(const Call& call, store::Connection& db, const std::string& id);

// Leases that this node should hold but does not know of (its state was lost): their job is over,
// and their GPUs are to be scrubbed. `touched` gets their ids.
Status CloseLost(const Call& call, store::Connection& db, const std::vector<std::string>& boxes,
                 std::vector<std::string>& touched);

// Orders for MIG that the node has not carried out yet; from here on they are under way. Answers
// with their GPUs, which are not scrubbed meanwhile.
Result<std::set<std::string>> AddMigOrders(Core& core, const std::string& node, JsonArray& orders);

}  // namespace ringfence::server
