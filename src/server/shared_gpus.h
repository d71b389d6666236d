#pragma once

// GPUs of leases, whole or shared, as leases come and go; in the caller's transaction.

#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/readings.h"
#include "isolate/grant.h"
#include "model/lease.h"
#include "server/core.h"

namespace ringfence::server {

// The lease's place: a whole GPU is held, a shared one is shared from now on.
Status HoldGpus(store::Connection& db, const model::Lease& lease);
// No node has the lease yet, so that nothing of its GPUs was touched.
Status ReleaseUntouched(store::Connection& db, const model::Lease& lease);
// Its job has ended: what nobody else has is to be scrubbed.
Status AwaitScrub(store::Connection& db, const model::Lease& lease, Timestamp now);

// Other open leases with a share of this one's GPU.
Result<std::vector<model::Lease>> NeighboursOf(store::Connection& db, const model::Lease& lease);

// What becomes of a shared GPU with the receipt of a lease that had a share of it.
// Where it was scrubbed, the receipt must cover it.
Status LeaveShared(store::Connection& db, const model::Lease& lease,
                   const isolate::Receipt& receipt, Timestamp now);

// Leases of this node with a share whose processes have more of their GPU's memory than they may,
// each with the reason for ending it.
struct Breach {
  model::Lease lease;
  std::string why;
};
Result<std::vector<Breach>> BreachesOf(store::Connection& db, const std::string& node,
                                       const std::vector<gpu::Reading>& readings);

// [{"lease","tenant","class","memory_bytes"}] of the leases that run on that GPU.
JsonArray SharesToJson(const std::vector<const model::Lease*>& sharers);

}  // namespace ringfence::server
