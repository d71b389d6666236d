#include "server/network_grant.h"

#include <algorithm>

#include "policy/network.h"

namespace ringfence::server {

std::optional<isolate::NetworkGrant> CompileNetwork(const policy::Policy& policy,
                                                    const model::Lease& lease) {
  const auto from = policy::RulesFrom(policy, lease.request.tenant);
  const auto to = policy::RulesTo(policy, lease.request.tenant);
  if (from.empty() && to.empty()) {
    return std::nullopt;
  }
  isolate::NetworkGrant network;
  network.lease = lease.id;
  for (const policy::NetworkRule* rule : from) {
    switch (rule->target) {
      case policy::NetworkTarget::kTenant:
        network.to.push_back({rule->to_tenant.text(), rule->ports});
        break;
      case policy::NetworkTarget::kCidr:
        network.out.push_back({*rule->to_cidr, rule->ports});
        break;
      case policy::NetworkTarget::kLease:
        network.ranks.insert(network.ranks.end(), rule->ports.begin(), rule->ports.end());
        break;
      case policy::NetworkTarget::kName:
        network.names.push_back({rule->to_name, rule->allow_private, rule->ports});
        break;
    }
  }
  for (const policy::NetworkRule* rule : to) {
    network.from.push_back({rule->from.text(), rule->ports});
  }
  std::sort(network.ranks.begin(), network.ranks.end());
  network.ranks.erase(std::unique(network.ranks.begin(), network.ranks.end()), network.ranks.end());
  return network;
}

}  // namespace ringfence::server
