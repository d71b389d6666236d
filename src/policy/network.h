#pragma once

// Questions to the network rules of a policy.

#include <string>
#include <vector>

#include "base/result.h"
#include "policy/policy.h"

namespace ringfence::policy {

// The rules by which boxes of `tenant` may begin to talk, and those by which they may be talked
// to. Pointers into the policy.
std::vector<const NetworkRule*> RulesFrom(const Policy& policy, const model::TenantPath& tenant);
std::vector<const NetworkRule*> RulesTo(const Policy& policy, const model::TenantPath& tenant);

struct FlowQuery {
  model::TenantPath from = model::TenantPath::Root();
  std::string to;  // a tenant, an address, a network or a DNS name
  model::PortRange port;
};
struct FlowAnswer {
  bool allowed = false;
  std::string reason;  // which rule, where; or what is missing
};
// kInvalidArgument when `to` is none of these, kNotFound for an unknown tenant.
Result<FlowAnswer> AskFlow(const Policy& policy, const FlowQuery& query);

}  // namespace ringfence::policy
