#pragma once

// Where a lease goes: state in, decision and reason out. Whole GPUs of one node; slices of them
// are in lease/slice_placement.h.

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
  // Nodes and slices that somebody waits for who came earlier: nobody else is given the whole GPUs
  // of the one, nor the other.
  std::map<std::string, std::string> kept_nodes = {};
  std::map<std::string, std::string> kept = {};  // by UUID
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

// Why nodes cannot be used now, for the end of an explanation: "; node n1 is silent".
enum class Counted : std::uint8_t { kGpus, kSlices };
std::string WhyNodes(const Fleet& fleet, Counted what);

// How much of GPUs a lease has, in thousandths of one.
std::uint64_t MillisOf(const model::Lease& lease);
// "2", "0.125".
std::string FormatMillis(std::uint64_t millis);

// kExhausted, naming the quota with file and line, when so many thousandths of a GPU more for
// `tenant` would break one. `open` are the leases that are not closed.
Status CheckQuotas(const policy::Policy& policy, const model::TenantPath& tenant,
                   std::uint64_t gpu_millis, const std::vector<model::Lease>& open);

// How much of GPUs the jobs of a tenant and those below it have. One that is being scrubbed after
// its job has ended is nobody's any more.
std::uint64_t MillisHeld(const model::TenantPath& tenant, const std::vector<model::Lease>& open);

}  // namespace ringfence::lease
