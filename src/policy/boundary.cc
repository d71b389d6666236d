#include "policy/boundary.h"

#include <algorithm>

#include "base/check.h"
#include "policy/boundary_level.h"

namespace ringfence::policy {
namespace {

using model::IsolationClass;
using model::TenantPath;

std::string At(const Source& source) {
  return " (" + source.file + ":" + std::to_string(source.line) + ")";
}

IsolationDemand Default(const TenantPath& a, const TenantPath& b) {
  if (a == b) {
    return {IsolationClass::kMps, "default within one tenant"};
  }
  const BoundaryScope level = LevelOf(a, b);
  if (level == BoundaryScope::kDepartments) {
    return {IsolationClass::kMig, "default between departments"};
  }
  if (level == BoundaryScope::kProjects) {
    return {IsolationClass::kTime, "default between projects of one team"};
  }
  return {IsolationClass::kMig, "default between teams"};
}

bool PartsBy(const TenantPath& wall, const TenantPath& a, const TenantPath& b) {
  return wall.Contains(a) != wall.Contains(b);
}

bool ClassifiedApart(const Policy& policy, const std::string& classification, const TenantPath& a,
                     const TenantPath& b) {
  for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
    TenantPath at = TenantPath::Root();
    if (ClassificationOf(policy, one, &at) == classification && !at.Contains(other)) {
      return true;
    }
  }
  return false;
}

bool Holds(const Policy& policy, const Boundary& boundary, const TenantPath& a,
           const TenantPath& b) {
  if (a == b) {
    return false;
  }
  if (boundary.scope == BoundaryScope::kPair) {
    return (boundary.a.Contains(a) && boundary.b.Contains(b)) ||
           (boundary.a.Contains(b) && boundary.b.Contains(a));
  }
  if (boundary.scope == BoundaryScope::kTenant) {
    return PartsBy(boundary.a, a, b);
  }
  if (boundary.scope == BoundaryScope::kClassification) {
    return ClassifiedApart(policy, boundary.classification, a, b);
  }
  return boundary.scope == LevelOf(a, b);
}

const Boundary* Stronger(const Boundary* before, const Boundary& one) {
  return before == nullptr || one.least > before->least ? &one : before;
}

}  // namespace

std::string ClassificationOf(const Policy& policy, const TenantPath& tenant, TenantPath* at) {
  for (TenantPath path = tenant; !path.is_root(); path = path.parent()) {
    const Tenant* const found = policy.FindTenant(path);
    if (found != nullptr && !found->classification.empty()) {
      if (at != nullptr) {
        *at = path;
      }
      return found->classification;
    }
  }
  return {};
}

std::string Describe(const Boundary& boundary) {
  std::string who;
  if (boundary.scope == BoundaryScope::kPair) {
    who = (boundary.never_together ? "conflict of interest between " : "boundary between ") +
          boundary.a.text() + " and " + boundary.b.text();
  } else if (boundary.scope == BoundaryScope::kTenant) {
    who = "boundary around " + boundary.a.text();
  } else if (boundary.scope == BoundaryScope::kClassification) {
    who = "boundary around what is " + boundary.classification;
  } else {
    who = boundary.scope == BoundaryScope::kDepartments ? "boundary between departments"
          : boundary.scope == BoundaryScope::kTeams     ? "boundary between teams"
                                                        : "boundary between projects of one team";
  }
  return who + At(boundary.source);
}

BetweenTenants Between(const Policy& policy, const TenantPath& a, const TenantPath& b) {
  RINGFENCE_CHECK(!a.is_root() && !b.is_root());
  BetweenTenants between;
  const Boundary* pair = nullptr;
  const Boundary* level = nullptr;
  const Boundary* around = nullptr;  // a tenant or what is classified
  for (const Boundary& boundary : policy.boundaries()) {
    if (!Holds(policy, boundary, a, b)) {
      continue;
    }
    between.hold.push_back(&boundary);
    between.never_together = between.never_together || boundary.never_together;
    if (boundary.nvlink_one_tenant && !between.nvlink_apart.has_value()) {
      between.nvlink_apart = Describe(boundary);
    }
    if (boundary.proven_within.has_value() &&
        (!between.proven_within.has_value() || *boundary.proven_within < *between.proven_within)) {
      between.proven_within = boundary.proven_within;
      between.proven_reason = Describe(boundary);
    }
    if (boundary.least == IsolationClass::kMps) {
      continue;
    }
    if (boundary.scope == BoundaryScope::kPair) {
      pair = Stronger(pair, boundary);
    } else if (boundary.scope == BoundaryScope::kTenant ||
               boundary.scope == BoundaryScope::kClassification) {
      around = Stronger(around, boundary);
    } else {
      level = Stronger(level, boundary);
    }
  }
  const Boundary* decides = pair;
  if (level != nullptr && (pair == nullptr || !AreTeams(pair->a, pair->b))) {
    decides = pair == nullptr ? level : Stronger(pair, *level);
  }
  between.least =
      decides == nullptr ? Default(a, b) : IsolationDemand{decides->least, Describe(*decides)};
  if (around != nullptr && around->least > between.least.least) {
    between.least = {around->least, Describe(*around)};
  }
  return between;
}

IsolationDemand LeastBetween(const Policy& policy, const TenantPath& a, const TenantPath& b) {
  return Between(policy, a, b).least;
}

JsonObject ToJson(const BetweenTenants& between, const TenantPath& a, const TenantPath& b) {
  JsonArray rules;
  for (const Boundary* const boundary : between.hold) {
    JsonObject rule{{"name", boundary->name},
                    {"what", Describe(*boundary)},
                    {"file", boundary->source.file},
                    {"line", boundary->source.line},
                    {"decides", Describe(*boundary) == between.least.reason}};
    if (boundary->least != IsolationClass::kMps) {
      rule["least"] = std::string(Name(boundary->least));
    }
    rules.emplace_back(std::move(rule));
  }
  JsonObject json{{"between", JsonArray{Json(a.text()), Json(b.text())}},
                  {"least", std::string(Name(between.least.least))},
                  {"reason", between.least.reason},
                  {"never_together", between.never_together},
                  {"nvlink_one_tenant", between.nvlink_apart.has_value()},
                  {"rules", std::move(rules)}};
  if (between.nvlink_apart.has_value()) {
    json["nvlink_reason"] = *between.nvlink_apart;
  }
  if (between.proven_within.has_value()) {
    json["proven_within_ms"] = between.proven_within->count();
    json["proven_reason"] = between.proven_reason;
  }
  return json;
}

std::optional<ProofDemand> ProofFor(const Policy& policy, const TenantPath& tenant) {
  std::optional<ProofDemand> demand;
  for (const Boundary& boundary : policy.boundaries()) {
    const bool about = (boundary.scope == BoundaryScope::kTenant && boundary.a.Contains(tenant)) ||
                       (boundary.scope == BoundaryScope::kClassification &&
                        ClassificationOf(policy, tenant) == boundary.classification);
    if (about && boundary.proven_within.has_value() &&
        (!demand.has_value() || *boundary.proven_within < demand->within)) {
      demand = {*boundary.proven_within, Describe(boundary)};
    }
  }
  return demand;
}

}  // namespace ringfence::policy
