#pragma once

// Where a lease of a MIG slice goes: one of the slices that are there. A slice is of class `mig`,
// so who else is on its GPU counts, and the boundaries are asked for each of them, in both
// directions.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lease/placement.h"
#include "model/lease.h"
#include "model/node.h"
#include "policy/policy.h"

namespace ringfence::lease {

// Whether the request is for a slice, or may be given one.
inline bool WantsSlice(const model::LeaseRequest& request) {
  return !request.profile.empty() || request.gpu_memory_bytes > 0;
}
// Whether this slice, as it is cut, is what was asked for.
bool IsWanted(const model::LeaseRequest& request, const model::Gpu& slice);

// GPUs, by UUID, where somebody holds a slice from whom policy wants this tenant further away than
// the walls of MIG; and why.
std::map<std::string, std::string> ClosedGpus(const policy::Policy& policy,
                                              const model::TenantPath& tenant,
                                              const std::vector<model::Lease>& open,
                                              const std::vector<model::Gpu>& gpus);

struct SliceSearch {
  const model::LeaseRequest& request;
  const policy::Policy& policy;
  const std::vector<model::Lease>& open;
  const Fleet& fleet;
};

// The smallest slice that does, on a GPU that the tenant is on already, else on the one with the
// fewest free slices; of a request for memory that no slice could ever meet (none is that large, or
// every such one has a neighbour whom policy keeps away) a whole GPU. Errors as of Place.
Result<Placement> PlaceSlice(const SliceSearch& search);

// How much of a GPU a slice counts as, in thousandths: its part of the GPU's memory, rounded to the
// nearest. A whole GPU is 1000.
std::uint32_t MillisOf(const model::Gpu& gpu, const std::vector<model::Gpu>& gpus);

// The least that this request can count as: for a slice, that of the smallest one that would do.
std::uint64_t LeastMillis(const model::LeaseRequest& request, const std::vector<model::Gpu>& gpus);

}  // namespace ringfence::lease
