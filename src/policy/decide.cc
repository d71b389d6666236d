// What Cedar decides, and the words that explain it; declared in policy/policy.h.

#include <algorithm>

#include "policy/query.h"
#include "policy/tables.h"

namespace ringfence::policy {
namespace {

std::string Describe(const Binding& binding) {
  return binding.role + " at " + binding.tenant.text() + " (" + binding.source.file + ":" +
         std::to_string(binding.source.line) + ")";
}

const Grant* FirstThatAllows(const std::vector<Grant>& grants, Action action) {
  for (const Grant& grant : grants) {
    if ((grant.actions & BitOf(action)) != 0) {
      return &grant;
    }
  }
  return nullptr;
}

// The grant that decides, the nearest to the tenant first; null when there is none.
const Grant* FindGrant(const Holder& holder, Action action, std::string_view tenant) {
  if (ScopeOf(action) == ActionScope::kAnywhere) {
    return FirstThatAllows(holder.all, action);
  }
  for (std::string_view at = tenant;;) {
    if (const auto found = holder.at.find(at); found != holder.at.end()) {
      if (const Grant* const grant = FirstThatAllows(found->second, action)) {
        return grant;
      }
    }
    if (at == "/") {
      return nullptr;
    }
    const std::size_t slash = at.find_last_of('/');
    at = slash == std::string_view::npos ? std::string_view("/") : at.substr(0, slash);
  }
}

// How many leading names two paths share.
std::size_t SharedLevels(const model::TenantPath& a, const model::TenantPath& b) {
  std::size_t levels = 0;
  for (auto at = a; !at.is_root(); at = at.parent()) {
    levels += at.Contains(b) ? 1 : 0;
  }
  return levels;
}

// Of what the principal holds, what comes nearest to allowing the action: a role that allows it
// elsewhere before one that reaches the tenant without allowing it before anything else, and of
// equals the one whose tenant is nearest.
const Binding* Nearest(const Holder& holder, Action action, const model::TenantPath& tenant) {
  const Binding* nearest = nullptr;
  std::size_t best = 0;
  for (const Grant& grant : holder.all) {
    const bool allows = (grant.actions & BitOf(action)) != 0;
    const bool reaches = grant.binding->tenant.Contains(tenant);
    const std::size_t rank = (allows    ? 20U
                              : reaches ? 10U
                                        : 1U) +
                             SharedLevels(grant.binding->tenant, tenant);
    if (rank > best) {
      best = rank;
      nearest = grant.binding;
    }
  }
  return nearest;
}

// Not one that must be apart from what is held.
bool FitsBeside(const std::vector<std::pair<std::string, std::string>>& apart, const Holder* holder,
                std::string_view role) {
  for (const auto& [a, b] : apart) {
    if (holder == nullptr || (role != a && role != b)) {
      continue;
    }
    const std::string_view other = role == a ? b : a;
    for (const Grant& grant : holder->all) {
      if (grant.binding->role == other) {
        return false;
      }
    }
  }
  return true;
}

// The role to ask for: the one already held elsewhere, or else the one with the fewest actions.
// Null when only an administrator may.
const Role* LeastRole(const Policy& policy, const std::map<std::string, Role, std::less<>>& roles,
                      const Query& query, const Binding* held, const Holder* holder) {
  const auto apart = policy.DutiesApart();
  const Principal* const principal = policy.FindPrincipal(query.principal);
  const auto allows = [&](const Role& role) {
    return (BitsOf(role.allows) & BitOf(query.action)) != 0;
  };
  if (held != nullptr && allows(roles.find(held->role)->second)) {
    return &roles.find(held->role)->second;
  }
  const bool person = principal != nullptr && !principal->service;
  const Role* least = nullptr;
  for (const auto& [name, role] : roles) {
    if (allows(role) && !(person && name == "service") && FitsBeside(apart, holder, name) &&
        (least == nullptr || role.allows.size() < least->allows.size())) {
      least = &role;
    }
  }
  return least == nullptr || least->name == "admin" ? nullptr : least;
}

}  // namespace

Decision Policy::Decide(const Query& query) const {
  const cedar::ValueRecord context = ContextOf(query.circumstances);
  // A rule about networks would not see where the caller is, and a forbid would not hold.
  if (!query.circumstances.network.empty() && !context.contains("network")) {
    return {false, "the caller's address cannot be read"};
  }
  return DecideIn(query, context);
}

Decision Policy::DecideIn(const Query& query, const cedar::ValueRecord& context) const {
  const model::TenantPath tenant =
      ScopeOf(query.action) == ActionScope::kTenant ? query.tenant : model::TenantPath::Root();
  const auto held = tables_->holders.find(std::string_view(query.principal));
  const Holder* const holder = held == tables_->holders.end() ? nullptr : &held->second;
  if (holder == nullptr && FindPrincipal(query.principal) == nullptr) {
    return {false, "unknown principal" + (IsPrincipalName(query.principal)
                                              ? ": the policy does not declare " + query.principal
                                              : std::string())};
  }
  // Only a new lease needs the tenant to be declared: what is left of a tenant that was taken out
  // of the policy must still be seen and ended.
  if (query.action == Action::kLeaseRequest && !tenant.is_root() && FindTenant(tenant) == nullptr) {
    const auto closest = ClosestTenant(tenant.text());
    return {false, "unknown tenant " + tenant.text() +
                       (closest.has_value() ? " (did you mean " + *closest + "?)" : "")};
  }
  // Grown once for each thread; an engine never allocates in it again.
  thread_local cedar::Engine::Scratch scratch;
  const cedar::Engine::Outcome outcome =
      rulebook().engine().Decide(RequestOf(*this, query, context), scratch);
  const bool allowed = outcome.decision == cedar::Decision::kAllow;
  const Grant* const grant =
      holder == nullptr ? nullptr : FindGrant(*holder, query.action, tenant.text());
  Decision decision{allowed, {}};
  for (const std::uint32_t rule : outcome.reasons) {
    decision.rules.push_back(rulebook().engine().policies()[rule].id);
  }
  if (allowed && grant != nullptr) {
    decision.reason = "role " + Describe(*grant->binding);
    return decision;
  }
  if (!outcome.reasons.empty()) {
    const RuleInWords rule = InWords(*this, outcome.reasons.front(), query.principal);
    decision.reason = (allowed ? "" : "forbidden: ") + rule.words + " (" + rule.where + ")";
    return decision;
  }
  const bool anywhere = ScopeOf(query.action) == ActionScope::kAnywhere;
  if (holder != nullptr) {
    for (const Grant& conditional : holder->conditional) {
      const Binding& binding = *conditional.binding;
      if ((conditional.actions & BitOf(query.action)) != 0 &&
          (anywhere || binding.tenant.is_root() || binding.tenant.Contains(tenant))) {
        // It goes into audit entries, which have a limit.
        constexpr std::size_t kConditionBytesMax = 1024;
        const std::string condition = binding.when->ToCedar();
        decision.reason =
            "role " + Describe(binding) + " counts only when " +
            (condition.size() <= kConditionBytesMax ? condition : "its condition holds");
        return decision;
      }
    }
  }
  std::string reason = "needs " + std::string(Name(query.action)) +
                       (anywhere ? std::string(" at any tenant") : " at " + tenant.text()) + "; " +
                       query.principal + " holds ";
  const Binding* const nearest =
      holder == nullptr ? nullptr : Nearest(*holder, query.action, tenant);
  reason += nearest == nullptr ? std::string("no role") : Describe(*nearest);
  reason += "; ask someone with admin at / (such as " + tables_->some_admin + ") ";
  const Role* const least = LeastRole(*this, tables_->roles, query, nearest, holder);
  if (least == nullptr) {
    reason += "to do it";
  } else {
    reason += "for the role " + least->name + (anywhere ? "" : " at " + tenant.text());
  }
  return {false, std::move(reason)};
}

}  // namespace ringfence::policy
