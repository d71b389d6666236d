#pragma once

// The life of a lease: which step may follow which, and what each does to its GPUs.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/lease.h"
#include "model/node.h"

namespace ringfence::lease {

// Moves `lease` on and writes the step into its history; kFailedPrecondition, naming both states,
// when `to` may not follow.
Status Step(model::Lease& lease, model::LeaseState to, Timestamp now, std::string_view reason = {});

// How a node says that a box ended: the line from the jailer ("exited 3", "timeout", ...).
struct Ending {
  std::string outcome;  // "exited", "signalled", "timeout", "oom", "failed"
  int exit_code = 0;
  std::string reason;
};
Result<Ending> ParseEnding(std::string_view line);

// What becomes of a GPU.
void Hold(model::Gpu& gpu, const model::Lease& lease);
void Share(model::Gpu& gpu);  // among open leases that say so
void Dirty(model::Gpu& gpu, Timestamp now, std::string_view reason);
// One with a fault is quarantined instead.
void Free(model::Gpu& gpu, std::string_view receipt);
void Quarantine(model::Gpu& gpu, std::string_view reason);

}  // namespace ringfence::lease
