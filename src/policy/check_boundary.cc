// Holds the boundaries of a policy folder against each other; declared in policy/draft.h. Of two
// that cannot both be meant, the later one is refused, and both are named.

#include <algorithm>
#include <map>
#include <tuple>

#include "base/closest.h"
#include "policy/boundary_level.h"
#include "policy/draft.h"

namespace ringfence::policy {
namespace {

using model::IsolationClass;
using model::TenantPath;
using wire::YamlProblem;

std::string Where(const DraftBoundary& boundary) {
  return boundary.head.source.file + ":" + std::to_string(boundary.head.source.line);
}

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

bool SaysLeast(const DraftBoundary& boundary) { return boundary.least.has_value(); }

std::string_view LevelName(BoundaryScope scope) {
  return scope == BoundaryScope::kDepartments ? "departments"
         : scope == BoundaryScope::kTeams     ? "teams"
                                              : "projects";
}

class BoundaryChecker {
 public:
  BoundaryChecker(const Draft& draft, const KnowsTenant& knows, wire::YamlProblems& problems)
      : draft_(draft), knows_(knows), problems_(problems) {}

  void Run() {
    for (const DraftTenant& tenant : draft_.tenants) {
      if (!tenant.classification.empty() && tenant.path.has_value()) {
        classified_.emplace(tenant.classification, *tenant.path);
      }
    }
    for (const DraftBoundary& boundary : draft_.boundaries) {
      if (IsWhole(boundary) && IsFirst(boundary)) {
        good_.push_back(&boundary);
      }
    }
    for (const DraftBoundary* const boundary : good_) {
      if (boundary->scope == BoundaryScope::kPair && SaysLeast(*boundary)) {
        CheckPair(*boundary);
      }
    }
  }

 private:
  void Add(const DraftBoundary& boundary, int line, std::string field, std::string what,
           std::string hint) {
    problems_.Add(YamlProblem{boundary.head.source.file, line, std::move(field), std::move(what),
                              std::move(hint)});
  }

  // Its references are good.
  bool IsWhole(const DraftBoundary& boundary) {
    if (boundary.scope == BoundaryScope::kPair) {
      const bool a_known = knows_(boundary.head, boundary.a, "spec.between");
      const bool b_known = knows_(boundary.head, boundary.b, "spec.between");
      return a_known && b_known && AreApart(boundary);
    }
    if (boundary.scope == BoundaryScope::kTenant) {
      return knows_(boundary.head, boundary.a, "spec.tenant");
    }
    if (boundary.scope == BoundaryScope::kClassification && boundary.scope_known &&
        !classified_.contains(boundary.classification->text)) {
      std::vector<std::string_view> names;
      for (const auto& [name, tenant] : classified_) {
        names.push_back(name);
      }
      const auto closest = Closest(boundary.classification->text, names);
      Add(boundary, boundary.classification->line, "spec.classification",
          "no tenant is classified " + Quoted(boundary.classification->text),
          closest.has_value() ? "did you mean " + Quoted(*closest) + "?"
                              : "write classification: NAME into the spec of a Tenant");
      return false;
    }
    return boundary.scope_known;
  }

  bool AreApart(const DraftBoundary& boundary) {
    const TenantPath& a = *boundary.a.path;
    const TenantPath& b = *boundary.b.path;
    if (!a.Contains(b) && !b.Contains(a)) {
      return true;
    }
    Add(boundary, boundary.a.line, "spec.between",
        a == b ? Quoted(a.text()) + " is there twice"
               : "one of " + Quoted(a.text()) + " and " + Quoted(b.text()) + " contains the other",
        "name two tenants of which neither contains the other");
    return false;
  }

  // Nothing else speaks about the very same.
  bool IsFirst(const DraftBoundary& boundary) {
    std::string first;
    std::string second;
    std::string what;
    std::string field = "spec.between";
    if (boundary.scope == BoundaryScope::kPair) {
      std::tie(first, second) = std::minmax({boundary.a.path->text(), boundary.b.path->text()});
      what = "between " + Quoted(first) + " and " + Quoted(second);
    } else if (boundary.scope == BoundaryScope::kTenant) {
      first = boundary.a.path->text();
      what = "around " + Quoted(first);
      field = "spec.tenant";
    } else if (boundary.scope == BoundaryScope::kClassification) {
      first = boundary.classification->text;
      what = "around what is " + Quoted(first);
      field = "spec.classification";
    } else {
      what = "between " + std::string(LevelName(boundary.scope));
    }
    const auto [at, fresh] = first_.emplace(std::tuple(boundary.scope, first, second), &boundary);
    if (fresh) {
      return true;
    }
    const DraftBoundary& other = *at->second;
    Add(boundary, boundary.head.source.line, field,
        "a second boundary " + what +
            (other.least.has_value() && other.least != boundary.least
                 ? " contradicts the one at " + Where(other) + ", which says " +
                       std::string(Name(*other.least))
                 : "; the first is at " + Where(other)),
        "keep one of the two");
    return false;
  }

  // A pair that says less than what holds between the two anyhow would never have its way: whoever
  // wrote it believes something that is not so.
  void CheckPair(const DraftBoundary& pair) {
    const TenantPath& a = *pair.a.path;
    const TenantPath& b = *pair.b.path;
    for (const DraftBoundary* const other : good_) {
      if (other == &pair || !SaysLeast(*other) || *other->least <= *pair.least) {
        continue;
      }
      std::string what;
      if (other->scope == BoundaryScope::kTenant) {
        if (other->a.path->Contains(a) != other->a.path->Contains(b)) {
          what = "around " + other->a.path->text();
        }
      } else if (other->scope == BoundaryScope::kClassification) {
        if (Parts(other->classification->text, a, b)) {
          what = "around what is " + other->classification->text;
        }
      } else if (other->scope == BoundaryScope::kPair) {
        // Of two pairs the stronger one holds, wherever it lies; but a conflict of interest is not
        // to be argued with.
        const bool inside = (other->a.path->Contains(a) && other->b.path->Contains(b)) ||
                            (other->a.path->Contains(b) && other->b.path->Contains(a));
        if (other->never_together && inside) {
          what = "of " + other->a.path->text() + " and " + other->b.path->text() +
                 ", who never share a node,";
        }
      } else if (other->scope == LevelOf(a, b) && !AreTeams(a, b)) {
        what = "between " + std::string(LevelName(other->scope));
      }
      if (!what.empty()) {
        Add(pair, pair.head.source.line, "spec.least",
            std::string(Name(*pair.least)) + " between " + Quoted(a.text()) + " and " +
                Quoted(b.text()) + " contradicts the boundary " + what + " at " + Where(*other) +
                ", which says " + std::string(Name(*other->least)),
            "raise this one, or lower that one");
        return;
      }
    }
  }

  // Whether one of the two lies under a tenant of that classification that the other is not under.
  bool Parts(const std::string& classification, const TenantPath& a, const TenantPath& b) const {
    const auto [first, last] = classified_.equal_range(classification);
    return std::any_of(first, last, [&](const auto& one) {
      return one.second.Contains(a) != one.second.Contains(b);
    });
  }

  const Draft& draft_;
  const KnowsTenant& knows_;
  wire::YamlProblems& problems_;
  std::multimap<std::string, TenantPath, std::less<>> classified_;
  std::map<std::tuple<BoundaryScope, std::string, std::string>, const DraftBoundary*> first_;
  std::vector<const DraftBoundary*> good_;
};

}  // namespace

void CheckBoundaries(const Draft& draft, const KnowsTenant& knows, wire::YamlProblems& problems) {
  BoundaryChecker(draft, knows, problems).Run();
}

}  // namespace ringfence::policy
