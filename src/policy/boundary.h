#pragma once

// What must lie between two tenants.

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
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

// Everything that policy says about two tenants.
struct BetweenTenants {
  IsolationDemand least;
  bool never_together = false;              // conflict of interest: no node holds both
  std::optional<std::string> nvlink_apart;  // why GPUs joined by NVLink may not be of both
  std::optional<Milliseconds> proven_within;
  std::string proven_reason;
  std::vector<const Boundary*>
      hold;  // every rule that holds, also those that a stronger one covers
};
// The policy must outlive what it returns.
BetweenTenants Between(const Policy& policy, const model::TenantPath& a,
                       const model::TenantPath& b);
JsonObject ToJson(const BetweenTenants& between, const model::TenantPath& a,
                  const model::TenantPath& b);

// How recently the isolation class must have been proven on a node that `tenant` is to be on,
// whoever else is there; and why.
struct ProofDemand {
  Milliseconds within;
  std::string reason;
};
std::optional<ProofDemand> ProofFor(const Policy& policy, const model::TenantPath& tenant);

// Its own, or the nearest above it; "" where there is none. `at`, if not null: who declares it.
std::string ClassificationOf(const Policy& policy, const model::TenantPath& tenant,
                             model::TenantPath* at = nullptr);

}  // namespace ringfence::policy
