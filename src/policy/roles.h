#pragma once

// The roles that exist without being declared, and what an action is about.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "policy/authorizer.h"
#include "policy/policy.h"

namespace ringfence::policy {

// Which bindings count for an action.
enum class ActionScope {
  kTenant,    // those at the tenant that the action is about, or above it
  kCluster,   // only those at "/": the action is about the whole cluster
  kAnywhere,  // those at any tenant: harmless facts that everyone who works here may see
};
ActionScope ScopeOf(Action action);
std::optional<Action> ParseAction(std::string_view label);
const std::vector<Action>& AllActions();  // in the order of the enum

// A set of actions as bits.
using ActionBits = std::uint64_t;
constexpr ActionBits BitOf(Action action) { return ActionBits{1} << static_cast<unsigned>(action); }
ActionBits BitsOf(const std::vector<Action>& actions);

// admin, operator, developer, auditor, security, service. They may not be redefined.
const std::vector<Role>& BuiltInRoles();

}  // namespace ringfence::policy
