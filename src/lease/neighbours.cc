#include "lease/neighbours.h"

#include <algorithm>

#include "policy/boundary.h"

namespace ringfence::lease {
namespace {

// "" when the node was proven within `within`.
std::string WhyUnproven(const std::string& node, Milliseconds within, const std::string& rule,
                        const Neighbourhood& around) {
  const auto found = around.proven.find(node);
  if (found != around.proven.end() && around.now - found->second <= within) {
    return {};
  }
  return (found == around.proven.end()
              ? "its isolation was never proven"
              : "its isolation was last proven at " + FormatTime(found->second)) +
         ", and " + rule + " wants that within " + FormatDuration(within) + " (`ringfence prove " +
         node + "`)";
}

}  // namespace

std::map<std::string, std::string> LinkedNodes(const policy::Policy& policy,
                                               const model::TenantPath& tenant,
                                               const Neighbourhood& around) {
  std::map<std::string, std::string> barred;
  for (const model::Lease& lease : around.open) {
    if (lease.node.empty() || lease.gpus.empty() || lease.request.probe.has_value()) {
      continue;
    }
    const auto apart = policy::Between(policy, tenant, lease.request.tenant).nvlink_apart;
    if (apart.has_value()) {
      barred.emplace(lease.node, "its GPUs may be joined by NVLink to those of " +
                                     lease.request.tenant.text() + ", and " + *apart +
                                     " wants neighbours of one tenant");
    }
  }
  return barred;
}

std::map<std::string, std::string> UnprovenNodes(const policy::Policy& policy,
                                                 const model::TenantPath& tenant,
                                                 const Neighbourhood& around) {
  std::map<std::string, std::string> barred;
  const auto check = [&](const std::string& node, Milliseconds within, const std::string& rule) {
    const std::string why = WhyUnproven(node, within, rule, around);
    if (!why.empty()) {
      barred.emplace(node, why);
    }
  };
  if (const auto demand = policy::ProofFor(policy, tenant)) {
    for (const model::Node& node : around.nodes) {
      check(node.name, demand->within, demand->reason);
    }
  }
  for (const model::Lease& lease : around.open) {
    if (lease.node.empty() || lease.request.probe.has_value()) {
      continue;
    }
    const policy::BetweenTenants between = policy::Between(policy, tenant, lease.request.tenant);
    if (between.proven_within.has_value()) {
      check(lease.node, *between.proven_within, between.proven_reason);
    }
  }
  return barred;
}

bool DemandsProof(const policy::Policy& policy) {
  return std::any_of(
      policy.boundaries().begin(), policy.boundaries().end(),
      [](const policy::Boundary& boundary) { return boundary.proven_within.has_value(); });
}

std::optional<Timestamp> EarliestRelease(const std::vector<model::Lease>& open) {
  std::optional<Timestamp> earliest;
  for (const model::Lease& lease : open) {
    if (lease.gpus.empty() || lease.ended.has_value()) {
      continue;
    }
    const Timestamp end = lease.started.value_or(lease.updated) + lease.request.timeout;
    earliest = std::min(earliest.value_or(end), end);
  }
  return earliest;
}

}  // namespace ringfence::lease
