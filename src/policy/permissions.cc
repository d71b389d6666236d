#include "policy/permissions.h"

#include <algorithm>
#include <array>

#include "policy/policy.h"
#include "policy/roles.h"

namespace ringfence::policy {
namespace {

using enum Action;
using enum ActionKind;

constexpr std::array kPermissions = {
    Permission{kLeaseRequest, kChange, "ask for GPUs and run a job on them"},
    Permission{kLeaseRead, kRead, "see leases: who, where, how long, how they ended"},
    Permission{kLeaseEnd, kChange, "end a lease and the job that it runs"},
    Permission{kLeaseLogs, kRead, "read what a job printed"},
    Permission{kLeaseHold, kChange, "ask for a lease that another runtime's containers take"},
    Permission{kTenantRead, kRead, "see tenants and their quotas"},
    Permission{kAssetRead, kSecret, "open a model, dataset or checkpoint", false},
    Permission{kAssetWrite, kChange, "make an asset, or a new version of one", false},
    Permission{kAssetCopy, kChange, "copy an asset within its tenant", false},
    Permission{kAssetShare, kChange, "give another tenant an asset", false},
    Permission{kKeyRotate, kChange, "replace a key by a new one", false},
    Permission{kMigReshape, kChange, "cut a GPU into other MIG slices", false},
    Permission{kNodeQuarantine, kChange, "keep work away from a node or a GPU", false},
    Permission{kExceptionGrant, kChange, "approve somebody else's exception", false},
    Permission{kDrillRun, kChange, "run a drill against the cluster", false},
    Permission{kNodeRead, kRead, "see nodes and GPUs"},
    Permission{kNodeJoin, kChange, "let a machine join as a node"},
    Permission{kGpuScrub, kChange, "scrub a quarantined GPU again"},
    Permission{kNodeProve, kChange, "attack a node's walls, and keep what came of it"},
    Permission{kAuditRead, kRead, "read the audit log; each reading is on record"},
    Permission{kTokenCreate, kChange, "make tokens for anybody"},
    Permission{kTokenRead, kRead, "see which tokens there are, never the tokens"},
    Permission{kTokenRevoke, kChange, "revoke a token"},
    Permission{kPolicyRead, kRead, "see which policy is in force"},
    Permission{kPolicyApply, kChange, "put a policy in force"},
    Permission{kStatusRead, kRead, "see whether the cluster is well"},
    Permission{kEventRead, kRead, "see events"},
    Permission{kAlertRead, kRead, "see alerts"},
    Permission{kAlertManage, kChange, "acknowledge and silence alerts"},
    Permission{kUsageRead, kRead, "see what leases used"},
    Permission{kAssessRead, kRead, "see what checks found on nodes"},
};

constexpr std::string_view kHead =
    R"(# Permissions

Made from the code: `ringfence __permissions > docs/permissions.md`.

An action about a *tenant* needs a role at that tenant or above it. One about the *cluster* needs a role at `/`. One marked
*anywhere* needs a role at any tenant. `ringfence who-can ACTION RESOURCE` and `ringfence what-can PRINCIPAL` answer for a whole policy.

)";

constexpr std::string_view kTail = R"(
¹ Roles may name it and `can` answers for it, but no door of this version asks for it yet.

- **admin** runs the cluster and its policy, and cannot open assets.
- **operator** keeps nodes and GPUs well.
- **developer** runs jobs of a tenant and works with its assets. Sharing an asset with another tenant is in no role that is built in: declare a
  Role for whoever may.
- **auditor** reads everything but secrets, and changes nothing.
- **security** answers incidents: ends leases, quarantines, rotates keys, runs drills, approves exceptions.
- **service** is for programs: jobs of a tenant, and the assets that they read.

Duties that must be apart: nobody holds both roles of a line at the same tenant or one above the other; `ringfence policy check` refuses the folder.
A Role of the folder adds to these with `apartFrom`.

)";

std::string_view About(ActionScope scope) {
  return scope == ActionScope::kTenant    ? "tenant"
         : scope == ActionScope::kCluster ? "cluster"
                                          : "anywhere";
}

}  // namespace

Permission PermissionOf(Action action) {
  const auto found = std::find_if(kPermissions.begin(), kPermissions.end(),
                                  [&](const Permission& one) { return one.action == action; });
  return found != kPermissions.end()
             ? *found
             : Permission{action, Name(action).ends_with(".read") ? kRead : kChange, {}};
}

std::string PermissionsMarkdown() {
  std::string text(kHead);
  text += "| action | what | about | kind |";
  std::string line = "|---|---|---|---|";
  for (const Role& role : BuiltInRoles()) {
    text += " " + role.name + " |";
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (const Action action : AllActions()) {
    const Permission permission = PermissionOf(action);
    text += "| `" + std::string(Name(action)) + "`" + (permission.asked ? "" : " ¹") + " | " +
            std::string(permission.what) + " | " + std::string(About(ScopeOf(action))) + " | " +
            (permission.kind == kRead     ? "read"
             : permission.kind == kChange ? "change"
                                          : "secret") +
            " |";
    for (const Role& role : BuiltInRoles()) {
      text += (BitsOf(role.allows) & BitOf(action)) != 0 ? " yes |" : " |";
    }
    text += "\n";
  }
  text += kTail;
  for (const auto& [a, b] : BuiltInDutiesApart()) {
    text += "- " + std::string(a) + ", " + std::string(b) + "\n";
  }
  return text;
}

}  // namespace ringfence::policy
