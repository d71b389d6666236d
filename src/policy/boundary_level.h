#pragma once

// How near two tenants are to each other. Internal to policy/.

#include "model/tenant.h"
#include "policy/boundary_rule.h"

namespace ringfence::policy {

// The ancestor (or itself) that is of `kind`, or higher where the path is higher already.
inline model::TenantPath CutTo(model::TenantPath path, model::TenantKind kind) {
  while (path.kind() > kind) {
    path = path.parent();
  }
  return path;
}

// kDepartments, kTeams or kProjects. Neither is the root.
inline BoundaryScope LevelOf(const model::TenantPath& a, const model::TenantPath& b) {
  using enum model::TenantKind;
  if (CutTo(a, kDepartment) != CutTo(b, kDepartment)) {
    return BoundaryScope::kDepartments;
  }
  const model::TenantPath team = CutTo(a, kTeam);
  return team.kind() == kTeam && team == CutTo(b, kTeam) ? BoundaryScope::kProjects
                                                         : BoundaryScope::kTeams;
}

// Two teams of one department. A boundary that names them is their own affair, weaker than between
// other teams or not.
inline bool AreTeams(const model::TenantPath& a, const model::TenantPath& b) {
  return a.kind() == model::TenantKind::kTeam && b.kind() == model::TenantKind::kTeam &&
         a.parent() == b.parent();
}

}  // namespace ringfence::policy
