#pragma once

// Which permissions are used, collected in memory and written now and then, so that a decision
// costs no write. What was not written yet is lost with the process: seconds of it.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "base/time.h"
#include "policy/policy.h"
#include "store/access_records.h"

namespace ringfence::server {

inline constexpr std::size_t kUsesCollectedMax = 20'000;

// Any thread.
class AccessLedger {
 public:
  // An allowed decision. Where there is no room for one more kind, it is counted as not kept.
  void Used(const std::string& principal, policy::Action action, const model::TenantPath& tenant,
            Timestamp now);
  // What was collected since the last call.
  std::vector<store::AccessUse> Take();
  // What could not be written comes back.
  void Return(const std::vector<store::AccessUse>& uses);
  std::uint64_t not_kept() const;

 private:
  struct Use {
    Timestamp first;
    Timestamp last;
    std::int64_t count = 0;
  };
  using Key = std::tuple<std::string, std::string, std::string>;  // principal, action, tenant

  mutable std::mutex mutex_;
  std::map<Key, Use> uses_;
  std::uint64_t not_kept_ = 0;
};

// One binding and what was done by it.
struct BindingUse {
  policy::Binding binding;
  std::int64_t granted = 0;  // since which version it is there; 0: not known
  std::vector<store::AccessUse> uses;
};

// Each use belongs to the binding that decides: the nearest to the tenant whose role allows it.
std::vector<BindingUse> UsesByBinding(const policy::Policy& policy,
                                      const std::vector<store::AccessUse>& uses);

// The grants of `policy` given those of before: a binding that stays keeps its version.
std::string NextGrants(const policy::Policy& policy, const std::string& before,
                       std::int64_t version);
void AddGrants(std::vector<BindingUse>& bindings, const std::string& grants);

}  // namespace ringfence::server
