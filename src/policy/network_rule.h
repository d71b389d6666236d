#pragma once

// Who may talk to whom. Everything that no rule names is closed, both ways.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/network.h"
#include "model/tenant.h"
#include "policy/source.h"

namespace ringfence::policy {

inline constexpr std::size_t kNetworkRulesMax = 1024;
inline constexpr std::size_t kNetworkRulesPerTenantMax = 128;
inline constexpr std::size_t kPortsPerRuleMax = 32;

enum class NetworkTarget {
  kTenant,  // boxes of a tenant and below
  kCidr,    // addresses outside
  kName,    // a DNS name
  kLease,   // the other boxes of the same lease: rank to rank
};
std::string_view Name(NetworkTarget target);  // as the policy writes it: "tenant", "cidr", ...

struct NetworkRule {
  std::string name;
  model::TenantPath from = model::TenantPath::Root();
  NetworkTarget target = NetworkTarget::kTenant;
  model::TenantPath to_tenant = model::TenantPath::Root();  // of kTenant
  std::optional<model::Ipv4Network> to_cidr;                // of kCidr
  std::string to_name;                                      // of kName
  bool allow_private = false;                               // of kName: private addresses too
  std::vector<model::PortRange> ports;                      // at least one, sorted, each once
  Source source;

  std::string To() const;     // "tenant acme/data", "10.0.0.0/8", "pypi.org", "its own lease"
  std::string Where() const;  // "network.yaml:12"
};

}  // namespace ringfence::policy
