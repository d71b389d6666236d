#pragma once

// One Boundary of the policy folder.

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"
#include "model/isolation.h"
#include "model/tenant.h"
#include "policy/source.h"

namespace ringfence::policy {

// Between whom it lies.
enum class BoundaryScope : std::uint8_t {
  kPair,            // two tenants, with everything below each
  kDepartments,     // any two departments
  kTeams,           // any two teams of one department; a pair of teams may be named weaker
  kProjects,        // any two projects of one team
  kTenant,          // a tenant and everybody outside it
  kClassification,  // each tenant of that classification and everybody outside it
};

struct Boundary {
  BoundaryScope scope = BoundaryScope::kPair;
  model::TenantPath a = model::TenantPath::Root();  // of kPair and kTenant
  model::TenantPath b = model::TenantPath::Root();  // of kPair
  std::string classification;
  model::IsolationClass least = model::IsolationClass::kMps;  // kMps: says nothing about it
  bool never_together = false;                                // then `least` is node
  bool nvlink_one_tenant = false;
  std::optional<Milliseconds> proven_within;
  std::string name;
  Source source;
};

// "boundary between acme and globex (boundaries.yaml:6)".
std::string Describe(const Boundary& boundary);

}  // namespace ringfence::policy
