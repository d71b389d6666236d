#include "policy/network.h"

#include <algorithm>

namespace ringfence::policy {
namespace {

struct Target {
  NetworkTarget kind = NetworkTarget::kTenant;
  std::optional<model::TenantPath> tenant;
  std::optional<model::Ipv4Network> network;
};

Result<Target> TargetOf(const Policy& policy, const std::string& text) {
  Target target;
  const std::string whole = text.find('/') == std::string::npos ? text + "/32" : text;
  if (const auto network = model::Ipv4Network::Parse(whole); network.has_value()) {
    target.kind = NetworkTarget::kCidr;
    target.network = *network;
    return target;
  }
  if (model::IsDnsName(text)) {
    target.kind = NetworkTarget::kName;
    return target;
  }
  RINGFENCE_ASSIGN(target.tenant, model::TenantPath::Create(text));
  if (policy.FindTenant(*target.tenant) == nullptr) {
    const auto closest = policy.ClosestTenant(text);
    return Error{Code::kNotFound, "there is no tenant \"" + text + "\"",
                 closest ? "did you mean \"" + *closest + "\"?" : "ringfence tenant list"};
  }
  return target;
}

bool Reaches(const NetworkRule& rule, const Target& target, const std::string& text) {
  if (rule.target != target.kind) {
    return false;
  }
  switch (rule.target) {
    case NetworkTarget::kTenant:
      return rule.to_tenant.Contains(*target.tenant);
    case NetworkTarget::kCidr:
      return rule.to_cidr->Contains(*target.network);
    case NetworkTarget::kName:
      return rule.to_name == text;
    case NetworkTarget::kLease:
      return false;
  }
  return false;
}

}  // namespace

std::string_view Name(NetworkTarget target) {
  switch (target) {
    case NetworkTarget::kTenant:
      return "tenant";
    case NetworkTarget::kCidr:
      return "cidr";
    case NetworkTarget::kName:
      return "name";
    case NetworkTarget::kLease:
      return "lease";
  }
  return "?";
}

std::string NetworkRule::To() const {
  switch (target) {
    case NetworkTarget::kTenant:
      return "tenant " + to_tenant.text();
    case NetworkTarget::kCidr:
      return to_cidr->text();
    case NetworkTarget::kName:
      return to_name;
    case NetworkTarget::kLease:
      return "its own lease";
  }
  return "?";
}

std::string NetworkRule::Where() const { return source.file + ":" + std::to_string(source.line); }

std::vector<const NetworkRule*> RulesFrom(const Policy& policy, const model::TenantPath& tenant) {
  std::vector<const NetworkRule*> rules;
  for (const NetworkRule& rule : policy.network_rules()) {
    if (rule.from.Contains(tenant)) {
      rules.push_back(&rule);
    }
  }
  return rules;
}

std::vector<const NetworkRule*> RulesTo(const Policy& policy, const model::TenantPath& tenant) {
  std::vector<const NetworkRule*> rules;
  for (const NetworkRule& rule : policy.network_rules()) {
    if (rule.target == NetworkTarget::kTenant && rule.to_tenant.Contains(tenant)) {
      rules.push_back(&rule);
    }
  }
  return rules;
}

Result<FlowAnswer> AskFlow(const Policy& policy, const FlowQuery& query) {
  RINGFENCE_ASSIGN(const Target target, TargetOf(policy, query.to));
  if (target.network.has_value()) {
    for (const model::Ipv4Network& never : model::NeverReachable()) {
      if (never.Contains(*target.network)) {
        return FlowAnswer{false, query.to + " lies in " + never.text() + ", which no rule opens"};
      }
    }
  }
  const NetworkRule* near = nullptr;
  for (const NetworkRule* rule : RulesFrom(policy, query.from)) {
    if (!Reaches(*rule, target, query.to)) {
      continue;
    }
    if (std::any_of(rule->ports.begin(), rule->ports.end(),
                    [&](const model::PortRange& ports) { return ports.Contains(query.port); })) {
      return FlowAnswer{true, "rule " + rule->name + " (" + rule->Where() + ")"};
    }
    near = rule;
  }
  const std::string what = query.from.text() + " to " + query.to + " " + query.port.text();
  if (near != nullptr) {
    return FlowAnswer{false, "rule " + near->name + " (" + near->Where() +
                                 ") opens other ports, not " + query.port.text()};
  }
  return FlowAnswer{false, "no rule lets " + what + ": what is not named is closed"};
}

}  // namespace ringfence::policy
