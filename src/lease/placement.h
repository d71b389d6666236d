#pragma once

// Where a lease goes: state in, decision and reason out. Whole GPUs of one node.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/lease.h"
#include "model/node.h"
#include "policy/policy.h"
#include "store/proofs.h"

namespace ringfence::lease {

struct Placement {
  std::string node;
  std::vector<std::string> gpus;  // UUIDs
  bool simulated = false;
};

struct Fleet {
  std::vector<model::Node> nodes;
  std::vector<model::Gpu> gpus;
  // Nodes that the tenant may not share with whoever is there now, and why (BarredNodes).
  std::map<std::string, std::string> barred;
  std::set<std::string> lacking;              // nodes that do not have the image that was asked for
  std::optional<Timestamp> earliest_release;  // of a lease that runs; for the explanation
  Timestamp now;
};

// A whole GPU satisfies every boundary but `node`: where policy demands that between `tenant` and
// somebody with an open lease on a node, that node is barred.
std::map<std::string, std::string> BarredNodes(const policy::Policy& policy,
                                               const model::TenantPath& tenant,
                                               const std::vector<model::Lease>& open);

// Where `ringfence prove` saw a whole GPU's walls leak, only one tenant at a time is served: the
// nodes of `leaks` where somebody else has an open lease, and why.
std::map<std::string, std::string> LeakingNodes(const std::vector<store::LeakingNode>& leaks,
                                                const model::TenantPath& tenant,
                                                const std::vector<model::Lease>& open);

// The node with the fewest free GPUs that still suffice (so that large requests keep finding room)
// and on it the free GPUs with the lowest index. Errors: kInvalidArgument when no node could ever
// hold it, kUnavailable when it must wait, each saying what stands in the way.
Result<Placement> Place(std::uint32_t gpus, const Fleet& fleet);

// kExhausted, naming the quota with file and line, when `gpus` more for `tenant` would break one.
// `open` are the leases that are not closed.
Status CheckQuotas(const policy::Policy& policy, const model::TenantPath& tenant,
                   std::uint32_t gpus, const std::vector<model::Lease>& open);

// How many GPUs the jobs of a tenant and those below it have. One that is being scrubbed after its
// job has ended is nobody's any more.
std::uint32_t GpusHeld(const model::TenantPath& tenant, const std::vector<model::Lease>& open);

}  // namespace ringfence::lease
