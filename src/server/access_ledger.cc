#include "server/access_ledger.h"

#include <algorithm>

#include "base/json.h"
#include "policy/roles.h"

namespace ringfence::server {
namespace {

constexpr std::size_t kGrantsBytesMax = std::size_t{64} << 20U;

std::string KeyOf(const policy::Binding& binding) {
  return binding.principal + "\n" + binding.role + "\n" + binding.tenant.text();
}

bool Covers(const policy::Binding& binding, policy::Action action, const std::string& tenant_text) {
  const policy::ActionScope scope = policy::ScopeOf(action);
  if (scope == policy::ActionScope::kAnywhere || binding.tenant.is_root()) {
    return true;
  }
  if (scope == policy::ActionScope::kCluster) {
    return false;
  }
  const std::string& at = binding.tenant.text();
  return tenant_text == at || tenant_text.starts_with(at + "/");
}

JsonObject ReadGrants(const std::string& text) {
  const auto json = ParseJson(text.empty() ? "{}" : text, kGrantsBytesMax);
  return json.has_value() && json->is_object() ? json->get_object() : JsonObject();
}

}  // namespace

void AccessLedger::Used(const std::string& principal, policy::Action action,
                        const model::TenantPath& tenant, Timestamp now) {
  const bool about_tenant = policy::ScopeOf(action) == policy::ActionScope::kTenant;
  Key key{principal, std::string(Name(action)), about_tenant ? tenant.text() : "/"};
  const std::lock_guard lock(mutex_);
  const auto found = uses_.find(key);
  if (found == uses_.end() && uses_.size() >= kUsesCollectedMax) {
    ++not_kept_;
    return;
  }
  Use& use = found == uses_.end() ? uses_.emplace(std::move(key), Use{now, now, 0}).first->second
                                  : found->second;
  use.last = std::max(use.last, now);
  ++use.count;
}

std::vector<store::AccessUse> AccessLedger::Take() {
  std::map<Key, Use> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(uses_);
  }
  std::vector<store::AccessUse> uses;
  uses.reserve(taken.size());
  for (const auto& [key, use] : taken) {
    uses.push_back(
        {std::get<0>(key), std::get<1>(key), std::get<2>(key), use.first, use.last, use.count});
  }
  return uses;
}

void AccessLedger::Return(const std::vector<store::AccessUse>& uses) {
  const std::lock_guard lock(mutex_);
  for (const store::AccessUse& back : uses) {
    const auto [place, is_new] =
        uses_.emplace(Key{back.principal, back.action, back.tenant}, Use{back.first, back.last, 0});
    place->second.first = std::min(place->second.first, back.first);
    place->second.last = std::max(place->second.last, back.last);
    place->second.count += back.count;
  }
}

std::uint64_t AccessLedger::not_kept() const {
  const std::lock_guard lock(mutex_);
  return not_kept_;
}

std::vector<BindingUse> UsesByBinding(const policy::Policy& policy,
                                      const std::vector<store::AccessUse>& uses) {
  std::map<std::string, policy::ActionBits, std::less<>> allows;
  for (const policy::Role& role : policy.roles()) {
    allows[role.name] = policy::BitsOf(role.allows);
  }
  std::vector<BindingUse> bindings;
  std::map<std::string, std::vector<std::size_t>, std::less<>> of_principal;
  for (policy::Binding& binding : policy.bindings()) {
    of_principal[binding.principal].push_back(bindings.size());
    bindings.push_back({std::move(binding), 0, {}});
  }
  for (const store::AccessUse& use : uses) {
    const auto action = policy::ParseAction(use.action);
    const auto held = of_principal.find(use.principal);
    if (!action.has_value() || held == of_principal.end()) {
      continue;  // of an action or a principal that is no more
    }
    BindingUse* nearest = nullptr;
    for (const std::size_t index : held->second) {
      BindingUse& one = bindings[index];
      if ((allows[one.binding.role] & policy::BitOf(*action)) == 0 ||
          !Covers(one.binding, *action, use.tenant)) {
        continue;
      }
      if (nearest == nullptr ||
          one.binding.tenant.text().size() > nearest->binding.tenant.text().size()) {
        nearest = &one;
      }
    }
    if (nearest != nullptr) {
      nearest->uses.push_back(use);
    }
  }
  return bindings;
}

std::string NextGrants(const policy::Policy& policy, const std::string& before,
                       std::int64_t version) {
  const JsonObject known = ReadGrants(before);
  JsonObject next;
  for (const policy::Binding& binding : policy.bindings()) {
    const std::string key = KeyOf(binding);
    const Json* const old = known.if_contains(key);
    next[key] = old != nullptr && old->is_int64() ? old->get_int64() : version;
  }
  return CanonicalJson(next);
}

void AddGrants(std::vector<BindingUse>& bindings, const std::string& grants) {
  const JsonObject known = ReadGrants(grants);
  for (BindingUse& one : bindings) {
    const Json* const version = known.if_contains(KeyOf(one.binding));
    one.granted = version != nullptr && version->is_int64() ? version->get_int64() : 0;
  }
}

}  // namespace ringfence::server
