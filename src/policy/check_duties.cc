// Duties that must be apart are not held by one person at one place; declared in policy/draft.h.

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "policy/draft.h"
#include "policy/roles.h"

namespace ringfence::policy {
namespace {

using RolePair = std::pair<std::string_view, std::string_view>;

std::set<RolePair> PairsOf(const Draft& draft, wire::YamlProblems& problems) {
  std::set<RolePair> pairs;
  std::set<std::string_view> known;
  for (const Role& role : BuiltInRoles()) {
    known.insert(role.name);
  }
  for (const DraftRole& role : draft.roles) {
    known.insert(role.head.name);
  }
  for (const auto& [a, b] : BuiltInDutiesApart()) {
    pairs.insert(std::minmax(a, b));
  }
  for (const DraftRole& role : draft.roles) {
    for (const wire::YamlText& other : role.apart_from) {
      if (!known.contains(other.text) || other.text == role.head.name) {
        problems.Add({role.head.source.file, other.line, "spec.apartFrom",
                      known.contains(other.text) ? "a role cannot be apart from itself"
                                                 : "unknown role \"" + other.text + "\"",
                      "name another role of the folder, or one that is built in"});
      } else {
        pairs.insert(std::minmax(std::string_view(role.head.name), std::string_view(other.text)));
      }
    }
  }
  return pairs;
}

void CheckPair(const DraftBinding& first, const DraftBinding& second,
               wire::YamlProblems& problems) {
  const model::TenantPath& a = *first.tenant.path;
  const model::TenantPath& b = *second.tenant.path;
  if (a.Contains(b) || b.Contains(a) || a.is_root() || b.is_root()) {
    problems.Add({second.head.source.file, second.role->line, "spec.role",
                  second.principal->text + " holds " + first.role->text + " at " + a.text() +
                      " already, at " + first.head.source.file + ":" +
                      std::to_string(first.head.source.line) + ", and " + second.role->text +
                      " must be apart from it",
                  "give one of the two to somebody else"});
  }
}

}  // namespace

void CheckDuties(const Draft& draft, wire::YamlProblems& problems) {
  const std::set<RolePair> pairs = PairsOf(draft, problems);
  std::map<RolePair, std::vector<const DraftBinding*>> held;  // by principal and role
  for (const DraftBinding& binding : draft.bindings) {
    if (!binding.principal.has_value() || !binding.role.has_value() ||
        !binding.tenant.path.has_value()) {
      continue;
    }
    for (const auto& [a, b] : pairs) {
      const bool is_a = binding.role->text == a;
      if (!is_a && binding.role->text != b) {
        continue;
      }
      const auto others = held.find({binding.principal->text, is_a ? b : a});
      for (std::size_t i = 0; others != held.end() && i < others->second.size() && !problems.full();
           ++i) {
        CheckPair(*others->second[i], binding, problems);
      }
    }
    held[{binding.principal->text, binding.role->text}].push_back(&binding);
  }
}

}  // namespace ringfence::policy
