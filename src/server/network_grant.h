#pragma once

#include <optional>

#include "isolate/network_grant.h"
#include "model/lease.h"
#include "policy/policy.h"

namespace ringfence::server {

// What the policy opens for a lease's box; nothing when no rule names its tenant, so that the box
// has no network at all. DNS names are not in it: no node can enforce them yet, so they are closed.
std::optional<isolate::NetworkGrant> CompileNetwork(const policy::Policy& policy,
                                                    const model::Lease& lease);

}  // namespace ringfence::server
