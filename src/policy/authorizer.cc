#include "policy/authorizer.h"

#include <array>

#include "policy/permissions.h"
#include "policy/roles.h"

namespace ringfence::policy {
namespace {

struct ActionFacts {
  Action action;
  std::string_view label;  // stable: policy folders and audit logs hold it
  ActionScope scope;
};

constexpr std::array kActionTable = {
    ActionFacts{Action::kLeaseRequest, "lease.request", ActionScope::kTenant},
    ActionFacts{Action::kLeaseRead, "lease.read", ActionScope::kTenant},
    ActionFacts{Action::kLeaseEnd, "lease.end", ActionScope::kTenant},
    ActionFacts{Action::kLeaseLogs, "lease.logs", ActionScope::kTenant},
    ActionFacts{Action::kLeaseHold, "lease.hold", ActionScope::kTenant},
    ActionFacts{Action::kTenantRead, "tenant.read", ActionScope::kTenant},
    ActionFacts{Action::kAssetRead, "asset.read", ActionScope::kTenant},
    ActionFacts{Action::kAssetWrite, "asset.write", ActionScope::kTenant},
    ActionFacts{Action::kAssetCopy, "asset.copy", ActionScope::kTenant},
    ActionFacts{Action::kAssetShare, "asset.share", ActionScope::kTenant},
    ActionFacts{Action::kKeyRotate, "key.rotate", ActionScope::kTenant},
    ActionFacts{Action::kMigReshape, "mig.reshape", ActionScope::kCluster},
    ActionFacts{Action::kNodeQuarantine, "node.quarantine", ActionScope::kCluster},
    ActionFacts{Action::kExceptionGrant, "exception.grant", ActionScope::kTenant},
    ActionFacts{Action::kDrillRun, "drill.run", ActionScope::kCluster},
    ActionFacts{Action::kNodeRead, "node.read", ActionScope::kAnywhere},
    ActionFacts{Action::kNodeJoin, "node.join", ActionScope::kCluster},
    ActionFacts{Action::kGpuScrub, "gpu.scrub", ActionScope::kCluster},
    ActionFacts{Action::kNodeProve, "node.prove", ActionScope::kCluster},
    ActionFacts{Action::kAuditRead, "audit.read", ActionScope::kCluster},
    ActionFacts{Action::kTokenCreate, "token.create", ActionScope::kCluster},
    ActionFacts{Action::kTokenRead, "token.read", ActionScope::kCluster},
    ActionFacts{Action::kTokenRevoke, "token.revoke", ActionScope::kCluster},
    ActionFacts{Action::kPolicyRead, "policy.read", ActionScope::kCluster},
    ActionFacts{Action::kPolicyApply, "policy.apply", ActionScope::kCluster},
    ActionFacts{Action::kStatusRead, "status.read", ActionScope::kAnywhere},
    ActionFacts{Action::kEventRead, "event.read", ActionScope::kTenant},
    ActionFacts{Action::kAlertRead, "alert.read", ActionScope::kTenant},
    ActionFacts{Action::kAlertManage, "alert.manage", ActionScope::kTenant},
    ActionFacts{Action::kUsageRead, "usage.read", ActionScope::kTenant},
    ActionFacts{Action::kAssessRead, "assess.read", ActionScope::kCluster},
};

constexpr bool InEnumOrder() {
  for (std::size_t i = 0; i < kActionTable.size(); ++i) {
    if (kActionTable[i].action != static_cast<Action>(i)) {
      return false;
    }
  }
  return true;
}
static_assert(InEnumOrder());
static_assert(static_cast<std::size_t>(Action::kAssessRead) + 1 == kActionTable.size(),
              "every action has a row");
static_assert(kActionTable.size() <= 64, "ActionBits has 64 bits");

std::vector<Action> Except(const std::vector<Action>& left_out) {
  std::vector<Action> actions;
  for (const Action action : AllActions()) {
    if ((BitsOf(left_out) & BitOf(action)) == 0) {
      actions.push_back(action);
    }
  }
  return actions;
}

std::vector<Action> OfKind(ActionKind kind) {
  std::vector<Action> actions;
  for (const Action action : AllActions()) {
    if (PermissionOf(action).kind == kind) {
      actions.push_back(action);
    }
  }
  return actions;
}

std::vector<Action> With(std::vector<Action> actions, const std::vector<Action>& more) {
  actions.insert(actions.end(), more.begin(), more.end());
  return actions;
}

std::vector<Role> MakeBuiltInRoles() {
  using enum Action;
  // An auditor sees everything but secrets and changes nothing.
  const std::vector<Action> reads = OfKind(ActionKind::kRead);
  return {
      {"admin", Except({kAssetRead, kAssetWrite, kAssetCopy, kAssetShare}), {}},
      {"auditor", reads, {}},
      {"developer",
       {kLeaseRequest, kLeaseRead, kLeaseEnd, kLeaseLogs, kTenantRead, kAssetRead, kAssetWrite,
        kAssetCopy, kNodeRead, kStatusRead, kEventRead, kUsageRead},
       {}},
      {"operator",
       {kNodeJoin, kGpuScrub, kNodeProve, kMigReshape, kNodeQuarantine, kDrillRun, kLeaseEnd,
        kLeaseRead, kTenantRead, kNodeRead, kPolicyRead, kStatusRead, kEventRead, kAlertRead,
        kAlertManage, kUsageRead, kAssessRead},
       {}},
      {"security",
       With(reads, {kLeaseEnd, kNodeProve, kNodeQuarantine, kKeyRotate, kExceptionGrant, kDrillRun,
                    kAlertManage}),
       {}},
      {"service", {kLeaseRequest, kLeaseRead, kLeaseEnd, kLeaseLogs, kAssetRead}, {}},
  };
}

}  // namespace

std::string_view Name(Action action) {
  const auto index = static_cast<std::size_t>(action);
  return index < kActionTable.size() ? kActionTable[index].label : "unknown";
}

ActionScope ScopeOf(Action action) {
  const auto index = static_cast<std::size_t>(action);
  return index < kActionTable.size() ? kActionTable[index].scope : ActionScope::kCluster;
}

std::optional<Action> ParseAction(std::string_view label) {
  for (const ActionFacts& facts : kActionTable) {
    if (facts.label == label) {
      return facts.action;
    }
  }
  return std::nullopt;
}

const std::vector<Action>& AllActions() {
  static const std::vector<Action> actions = [] {
    std::vector<Action> all;
    for (const ActionFacts& facts : kActionTable) {
      all.push_back(facts.action);
    }
    return all;
  }();
  return actions;
}

ActionBits BitsOf(const std::vector<Action>& actions) {
  ActionBits bits = 0;
  for (const Action action : actions) {
    bits |= BitOf(action);
  }
  return bits;
}

const std::vector<Role>& BuiltInRoles() {
  static const std::vector<Role> roles = MakeBuiltInRoles();
  return roles;
}

std::span<const std::pair<std::string_view, std::string_view>> BuiltInDutiesApart() {
  // Who changes the cluster does not also vouch for it.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kPairs = {
      std::pair("auditor", "admin"), {"auditor", "operator"}, {"auditor", "security"}};
  return kPairs;
}

}  // namespace ringfence::policy
