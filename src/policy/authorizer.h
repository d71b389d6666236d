#pragma once

// Who may do what. A small interface with a plain role check behind it; a richer engine replaces
// what is behind it without its callers noticing.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/tenant.h"

namespace ringfence::policy {

// Every action of the API. The table in authorizer.cc gives the label ("lease.request").
enum class Action {
  kLeaseRequest,
  kLeaseRead,
  kLeaseEnd,
  kLeaseLogs,
  kLeaseHold,  // ask for one that another runtime's containers take
  kTenantRead,
  kAssetRead,
  kAssetWrite,
  kAssetCopy,
  kAssetShare,  // with another tenant
  kKeyRotate,
  kMigReshape,
  kNodeQuarantine,
  kExceptionGrant,
  kDrillRun,
  kNodeRead,
  kNodeJoin,  // create join tokens
  kGpuScrub,
  kNodeProve,  // attack a node's walls, and keep what came of it
  kAuditRead,
  kTokenCreate,
  kTokenRead,
  kTokenRevoke,
  kPolicyRead,
  kPolicyApply,
  kStatusRead,
  kEventRead,
  kAlertRead,
  kAlertManage,  // acknowledge and silence
  kUsageRead,
  kAssessRead,  // what checks found on nodes
};
std::string_view Name(Action action);  // "lease.request"

// What is known of a request beside who, what and where. What is not known is left out, and a
// rule that asks for it does not allow.
struct Circumstances {
  std::optional<Timestamp> now = {};
  std::string network = {};  // the address that it came from
};

struct Query {
  std::string principal;
  Action action = Action::kStatusRead;
  model::TenantPath tenant = model::TenantPath::Root();  // what the action is about
  Circumstances circumstances = {};
};

struct Decision {
  bool allowed = false;
  // For people and the audit log: "role developer at acme/research (bindings.yaml:12)" or what is
  // missing and who could grant it.
  std::string reason;
  // The ids of the rules that decided, as `policy compile` names them; none: nothing allowed it.
  std::vector<std::string> rules = {};
};

// Any thread.
class Authorizer {
 public:
  Authorizer() = default;
  Authorizer(const Authorizer&) = delete;
  Authorizer& operator=(const Authorizer&) = delete;
  virtual ~Authorizer() = default;
  virtual Decision Decide(const Query& query) const = 0;
};

}  // namespace ringfence::policy
