#pragma once

// What boundaries beyond a whole GPU's own walls leave of a fleet: nodes that a tenant may not be
// on now, and why.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/lease.h"
#include "model/node.h"
#include "policy/policy.h"

namespace ringfence::lease {

// When each node was last seen to hold against every attack; a node that is not there never was.
using ProvenTimes = std::map<std::string, Timestamp>;

struct Neighbourhood {
  const std::vector<model::Node>& nodes;
  const std::vector<model::Lease>& open;
  const ProvenTimes& proven;
  Timestamp now;
};

// Nodes with leases of somebody whose GPUs may not be joined to this tenant's by NVLink. Nodes do
// not say yet which of their GPUs are joined, so all GPUs of one node count as joined.
std::map<std::string, std::string> LinkedNodes(const policy::Policy& policy,
                                               const model::TenantPath& tenant,
                                               const Neighbourhood& around);

// Nodes that were not proven recently enough, for the tenant itself or beside those who are there.
std::map<std::string, std::string> UnprovenNodes(const policy::Policy& policy,
                                                 const model::TenantPath& tenant,
                                                 const Neighbourhood& around);

// Whether UnprovenNodes can name any: without such rules nobody need read the proofs.
bool DemandsProof(const policy::Policy& policy);

// When the first of these leases is over at the latest; none when none is running.
std::optional<Timestamp> EarliestRelease(const std::vector<model::Lease>& open);

}  // namespace ringfence::lease
