#pragma once

// A time-limited exception from a wall of boxes, asked for by one person and approved by another:
// the kind Exception of the policy folder. Used by `run --exception NAME`.

#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/tenant.h"
#include "policy/source.h"

namespace ringfence::policy {

class Policy;

inline constexpr auto kExceptionMax = std::chrono::days(30);

struct BoxException {
  std::string name;
  model::TenantPath tenant = model::TenantPath::Root();  // and below; never "/"
  bool host_network = false;
  bool host_pid = false;
  std::string reason;
  std::string requested_by;
  std::string approved_by;  // somebody else
  Timestamp from;
  Timestamp until;  // at most kExceptionMax later
  Source source;

  std::vector<std::string> what() const;  // "host_network", "host_pid"
  std::string Where() const;              // "exceptions.yaml:3"
  bool InForce(Timestamp now) const { return now >= from && now < until; }
  // "NAME lets boxes of TENANT have host_network until ..."
  std::string Warning() const;
};

// kNotFound: no such; kPermissionDenied: for another tenant, or not in force at `now`.
Result<BoxException> FindException(const Policy& policy, const model::TenantPath& tenant,
                                   const std::string& name, Timestamp now);
std::vector<BoxException> ExceptionsInForce(const Policy& policy, Timestamp now);

}  // namespace ringfence::policy
