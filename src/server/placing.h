#pragma once

// Where a request goes, decided and recorded in the caller's transaction.

#include <string>

#include "lease/placement.h"
#include "model/lease.h"
#include "server/core.h"

namespace ringfence::server {

// Resolves the image too. kUnavailable: no room now; kExhausted: the quota is used up; anything
// else will not get better by waiting. `waiting` is the lease's id when it is in the queue: those
// behind it do not count.
Result<lease::Placement> PlaceInside(Core& core, store::Connection& db,
                                     const model::LeaseRequest& request, std::string& image,
                                     const std::string& waiting = {});

// The lease is placed, its GPUs held, with the entry. The lease itself is the caller's to store.
Status HoldPlace(Core& core, store::Connection& db, model::Lease& lease,
                 const lease::Placement& placement);

}  // namespace ringfence::server
