#pragma once

// What must lie between two tenants.

#include <string>

#include "model/isolation.h"
#include "model/tenant.h"
#include "policy/policy.h"

namespace ringfence::policy {

struct IsolationDemand {
  model::IsolationClass least = model::IsolationClass::kNode;
  std::string reason;  // "boundary between acme and globex/trading (boundaries.yaml:6)"
};

// The strongest boundary that holds between `a` and `b` or anything above them; where policy has
// none, the default: a tenant with itself anything, projects of one team time, all else mig.
// Neither may be the root.
IsolationDemand LeastBetween(const Policy& policy, const model::TenantPath& a,
                             const model::TenantPath& b);

}  // namespace ringfence::policy
