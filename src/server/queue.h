#pragma once

// Requests that wait for room: a plain queue, first come, first served. A request is not overtaken
// by a later one on any node that it could be placed on; one whose own quota is used up is passed
// over meanwhile. Priorities and preemption are for Slurm and Kubernetes.
//
// The queue is the leases in the state queued, in the order of their numbers: it outlives a restart
// and is the same for all servers of one database.

#include <string>

#include "base/result.h"
#include "model/lease.h"
#include "server/core.h"

namespace ringfence::server {

// OK when the request wants to wait, and waiting can help against `why`; else `why`, or that the
// queue is full. In the caller's transaction, as the next two.
Status MayWait(Core& core, store::Connection& db, const model::LeaseRequest& request,
               const Error& why);
// Stores the admitted lease as one that waits, with its entry.
Status JoinQueue(Core& core, store::Connection& db, model::Lease& lease, const Error& why);
// Closes a lease that waits; storing it and the entry are the caller's.
Status LeaveQueue(Core& core, store::Connection& db, model::Lease& lease,
                  const std::string& reason);

// Whoever asked for the lease is still there. Anybody else's asking changes nothing.
Status StillWaits(Core& core, const std::string& lease, const std::string& principal);

// Places whoever can be placed now, and closes what waited too long, was abandoned, or may not run
// any more. Called when room may have come free; without a queue it costs one look-up.
Status ServeQueue(Core& core);
// The same after something else was done, which a failure here does not undo: the next sweep makes
// up for it.
void ServeQueueAfter(Core& core);

}  // namespace ringfence::server
