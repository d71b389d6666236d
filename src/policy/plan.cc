#include "policy/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "policy/rulebook.h"

namespace ringfence::policy {
namespace {

using Answer = cedar::Outlook::Answer;
using Place = std::pair<Action, std::string>;

// What a person's rights follow from beside his own bindings.
bool SameForAll(const Policy& a, const Policy& b) {
  const auto cedar_files = [](const Policy& policy) {
    std::map<std::string, std::string> files = policy.files();
    std::erase_if(files, [](const auto& file) { return !IsCedarFile(file.first); });
    return files;
  };
  const auto tenants = [](const Policy& policy) {
    std::set<std::string> paths;
    for (const Tenant& tenant : policy.tenants()) {
      paths.insert(tenant.path.text());
    }
    return paths;
  };
  const auto roles = [](const Policy& policy) {
    std::map<std::string, std::vector<Action>> allows;
    for (const Role& role : policy.roles()) {
      allows.emplace(role.name, role.allows);
    }
    return allows;
  };
  return cedar_files(a) == cedar_files(b) && tenants(a) == tenants(b) && roles(a) == roles(b);
}

std::multiset<std::string> BindingsOf(const Policy& policy, const std::string& principal) {
  std::multiset<std::string> bindings;
  const Principal* const known = policy.FindPrincipal(principal);
  bindings.insert(known == nullptr ? "nobody" : known->service ? "service" : "user");
  for (const Binding* const binding : policy.BindingsOf(principal)) {
    bindings.insert(binding->role + "@" + binding->tenant.text() + " " +
                    (binding->when.has_value() ? binding->when->ToCedar() : ""));
  }
  return bindings;
}

std::map<Place, Point> PointsOf(const Policy& policy, const std::string& principal) {
  std::map<Place, Point> points;
  if (auto all = WhatCan(policy, principal, {}); all.has_value()) {
    for (Point& point : *all) {
      const Place place(point.action, point.tenant.text());
      points.emplace(place, std::move(point));
    }
  }
  return points;
}

bool SameAnswer(const Point& a, const Point& b) {
  return a.answer == b.answer && a.condition == b.condition;
}

void AddChanges(const std::string& principal, std::map<Place, Point> before,
                std::map<Place, Point> after, std::vector<Change>& changes) {
  for (const auto& [from, to] : {std::pair(&before, &after), std::pair(&after, &before)}) {
    for (const auto& [place, point] : *from) {
      Point none = point;
      none.answer = Answer::kNo;
      none.condition.clear();
      to->emplace(place, std::move(none));
    }
  }
  std::map<Place, Change> changed;
  for (const auto& [place, point] : before) {
    const Point& now = after.at(place);
    if (SameAnswer(point, now)) {
      continue;
    }
    Change change{point, now};
    const auto above = changed.find({place.first, point.tenant.parent().text()});
    const bool said = !point.tenant.is_root() && above != changed.end() &&
                      SameAnswer(above->second.before, point) &&
                      SameAnswer(above->second.after, now);
    changed.emplace(place, change);
    if (!said) {
      change.before.principal = principal;
      change.after.principal = principal;
      changes.push_back(std::move(change));
    }
  }
}

}  // namespace

std::vector<Change> PlanChange(const Policy& before, const Policy& after) {
  const bool same_for_all = SameForAll(before, after);
  std::set<std::string> principals;
  for (const Policy* policy : {&before, &after}) {
    for (const Principal& principal : policy->principals()) {
      principals.insert(principal.name);
    }
  }
  std::vector<Change> changes;
  for (const std::string& principal : principals) {
    if (same_for_all && BindingsOf(before, principal) == BindingsOf(after, principal)) {
      continue;
    }
    AddChanges(principal, PointsOf(before, principal), PointsOf(after, principal), changes);
  }
  return changes;
}

}  // namespace ringfence::policy
