#pragma once

// Where a share of a GPU goes, and who has shares of which: state in, decision and reason out.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "lease/placement.h"
#include "model/lease.h"
#include "model/node.h"
#include "policy/policy.h"

namespace ringfence::lease {

// Of a GPU's memory, what is promised to no share: contexts and the driver need some themselves.
inline constexpr std::uint64_t kReserveDivisor = 32;
inline std::uint64_t ShareableBytes(const model::Gpu& gpu) {
  return gpu.memory_bytes - gpu.memory_bytes / kReserveDivisor;
}

// The open leases that have a share of that GPU; `running`: only those whose job has not ended.
enum class Sharers : std::uint8_t { kAll, kRunning };
std::vector<const model::Lease*> SharersOf(const std::string& uuid,
                                           const std::vector<model::Lease>& open, Sharers which);

struct ShareSurroundings {
  const policy::Policy& policy;
  const std::vector<model::Lease>& open;
  // Nodes where `ringfence prove` saw time slices leak, and when.
  const std::map<std::string, std::string>& time_leaks;
};

// A GPU that is shared already, of one class, with neighbours that policy lets be that near, and
// with room for the cap; else a free one. MPS is for one tenant alone. Errors: kInvalidArgument
// when no GPU is so large, kFailedPrecondition when no node can share its GPUs, kUnavailable when
// it must wait; each says what stands in the way.
Result<Placement> PlaceShare(const model::LeaseRequest& request, const Fleet& fleet,
                             const ShareSurroundings& around);

}  // namespace ringfence::lease
