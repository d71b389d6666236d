#include "policy/boundary.h"

#include "base/check.h"

namespace ringfence::policy {
namespace {

using model::IsolationClass;
using model::TenantPath;

// The ancestor (or itself) that is of `kind`, or higher where the path is higher already.
TenantPath CutTo(TenantPath path, model::TenantKind kind) {
  while (path.kind() > kind) {
    path = path.parent();
  }
  return path;
}

IsolationDemand Default(const TenantPath& a, const TenantPath& b) {
  if (a == b) {
    return {IsolationClass::kMps, "default within one tenant"};
  }
  if (CutTo(a, model::TenantKind::kDepartment) != CutTo(b, model::TenantKind::kDepartment)) {
    return {IsolationClass::kMig, "default between departments"};
  }
  const TenantPath team = CutTo(a, model::TenantKind::kTeam);
  if (team.kind() == model::TenantKind::kTeam && team == CutTo(b, model::TenantKind::kTeam)) {
    return {IsolationClass::kTime, "default between projects of one team"};
  }
  return {IsolationClass::kMig, "default between teams"};
}

}  // namespace

IsolationDemand LeastBetween(const Policy& policy, const TenantPath& a, const TenantPath& b) {
  RINGFENCE_CHECK(!a.is_root() && !b.is_root());
  const Boundary* strongest = nullptr;
  const std::vector<Boundary> boundaries = policy.boundaries();
  for (const Boundary& boundary : boundaries) {
    const bool holds = (boundary.a.Contains(a) && boundary.b.Contains(b)) ||
                       (boundary.a.Contains(b) && boundary.b.Contains(a));
    if (holds && (strongest == nullptr || boundary.least > strongest->least)) {
      strongest = &boundary;
    }
  }
  if (strongest == nullptr) {
    return Default(a, b);
  }
  return {strongest->least, "boundary between " + strongest->a.text() + " and " +
                                strongest->b.text() + " (" + strongest->source.file + ":" +
                                std::to_string(strongest->source.line) + ")"};
}

}  // namespace ringfence::policy
