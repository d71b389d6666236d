// Holds the documents of a policy folder against each other; declared in policy/draft.h.

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/closest.h"
#include "policy/draft.h"
#include "policy/roles.h"

namespace ringfence::policy {
namespace {

using wire::YamlProblem;
using wire::YamlProblems;
using wire::YamlText;

std::string Where(const Source& source) { return source.file + ":" + std::to_string(source.line); }

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

class Checker {
 public:
  Checker(const Draft& draft, YamlProblems& problems) : draft_(draft), problems_(problems) {}

  void Run() {
    CheckNames();
    CheckTenants();
    CheckBindings();
    CheckDuties(draft_, problems_);
    CheckBoundaries(
        draft_,
        [this](const DraftHead& head, const DraftTenantRef& ref, std::string_view field) {
          return CheckTenantRef(head, ref, field);
        },
        problems_);
    CheckQuotas();
    CheckNetworkRules();
    for (const DraftBoxRule& rule : draft_.box_rules) {
      (void)CheckTenantRef(rule.head, rule.tenant, "spec.tenant");
    }
    for (const DraftException& exception : draft_.exceptions) {
      CheckException(exception);
    }
    for (const DraftCase& one : draft_.cases) {
      CheckCase(one);
    }
    CheckSomeoneCanAdminister();
  }

 private:
  void Add(const DraftHead& head, int line, std::string path, std::string what, std::string hint) {
    problems_.Add(
        YamlProblem{head.source.file, line, std::move(path), std::move(what), std::move(hint)});
  }

  // Finding the nearest name walks all of them; once no more problems are kept, nobody would see
  // it.
  std::string Nearest(std::string_view text, const std::map<std::string_view, Source>& known,
                      std::string otherwise) const {
    if (problems_.full()) {
      return {};
    }
    std::vector<std::string_view> names;
    for (const auto& [name, source] : known) {
      names.push_back(name);
    }
    const auto closest = Closest(text, names);
    return closest.has_value() ? "did you mean " + Quoted(*closest) + "?" : std::move(otherwise);
  }

  template <typename Drafts>
  std::map<std::string_view, Source> Unique(const Drafts& drafts, std::string_view kind) {
    std::map<std::string_view, Source> first;
    for (const auto& draft : drafts) {
      if (draft.head.name.empty()) {
        continue;
      }
      const auto [at, fresh] = first.emplace(draft.head.name, draft.head.source);
      if (!fresh) {
        Add(draft.head, draft.head.name_line, "metadata.name",
            "a second " + std::string(kind) + " named " + Quoted(draft.head.name) +
                "; the first is at " + Where(at->second),
            "rename or remove one of the two");
      }
    }
    return first;
  }

  void CheckNames() {
    tenants_ = Unique(draft_.tenants, "Tenant");
    principals_ = Unique(draft_.principals, "Principal");
    roles_ = Unique(draft_.roles, "Role");
    Unique(draft_.bindings, "Binding");
    Unique(draft_.boundaries, "Boundary");
    Unique(draft_.quotas, "Quota");
    Unique(draft_.network_rules, "NetworkRule");
    Unique(draft_.box_rules, "BoxRule");
    Unique(draft_.exceptions, "Exception");
    Unique(draft_.cases, "Case");
    for (const Role& role : BuiltInRoles()) {
      for (const DraftRole& draft : draft_.roles) {
        if (draft.head.name == role.name) {
          Add(draft.head, draft.head.name_line, "metadata.name",
              "the role " + Quoted(role.name) + " is built in and may not be redefined",
              "choose another name");
        }
      }
      roles_.emplace(role.name, Source{});
    }
  }

  void CheckTenants() {
    for (const DraftTenant& tenant : draft_.tenants) {
      if (!tenant.path.has_value() || tenant.path->parent().is_root()) {
        continue;
      }
      const std::string parent = tenant.path->parent().text();
      if (!tenants_.contains(parent)) {
        Add(tenant.head, tenant.head.name_line, "metadata.name",
            "the parent " + Quoted(parent) + " of " + Quoted(tenant.head.name) + " is not declared",
            Nearest(parent, tenants_, "add a Tenant named " + parent));
      }
    }
  }

  // True when the reference can be used.
  bool CheckTenantRef(const DraftHead& head, const DraftTenantRef& ref, std::string_view field) {
    if (!ref.path.has_value()) {
      return false;
    }
    if (ref.path->is_root() || tenants_.contains(ref.path->text())) {
      return true;
    }
    Add(head, ref.line, std::string(field), "unknown tenant " + Quoted(ref.path->text()),
        Nearest(ref.path->text(), tenants_, "declare it as a Tenant"));
    return false;
  }

  void CheckBindings() {
    std::map<std::tuple<std::string_view, std::string_view, std::string_view>, Source> first;
    for (const DraftBinding& binding : draft_.bindings) {
      const auto& [head, principal, role, tenant, when] = binding;
      if (principal.has_value() && !principals_.contains(principal->text)) {
        Add(head, principal->line, "spec.principal", "unknown principal " + Quoted(principal->text),
            Nearest(principal->text, principals_, "declare it as a Principal"));
      }
      if (role.has_value() && !roles_.contains(role->text)) {
        Add(head, role->line, "spec.role", "unknown role " + Quoted(role->text),
            Nearest(role->text, roles_,
                    "built in are admin, auditor, developer, operator, security, service; declare "
                    "others as a Role"));
      }
      (void)CheckTenantRef(head, tenant, "spec.tenant");  // whether usable does not matter here
      if (!principal.has_value() || !role.has_value() || !tenant.path.has_value() ||
          when.has_value()) {
        continue;  // the same role under two conditions is no mistake
      }
      const auto [at, fresh] =
          first.emplace(std::tuple(std::string_view(principal->text), std::string_view(role->text),
                                   std::string_view(tenant.path->text())),
                        head.source);
      if (!fresh) {
        Add(head, head.source.line, "spec",
            principal->text + " is bound to " + role->text + " at " + tenant.path->text() +
                " already, at " + Where(at->second),
            "remove one of the two");
      }
    }
  }

  void CheckQuotas() {
    std::map<std::string, const DraftQuota*, std::less<>> first;
    for (const DraftQuota& quota : draft_.quotas) {
      if (!CheckTenantRef(quota.head, quota.tenant, "spec.tenant")) {
        continue;
      }
      const auto [at, fresh] = first.emplace(quota.tenant.path->text(), &quota);
      if (!fresh) {
        Add(quota.head, quota.tenant.line, "spec.tenant",
            "a second quota of " + Quoted(quota.tenant.path->text()) + "; the first is at " +
                Where(at->second->head.source),
            "keep one of the two");
      }
    }
    for (const auto& [tenant, quota] : first) {
      for (auto above = quota->tenant.path->parent(); !above.is_root(); above = above.parent()) {
        const auto at = first.find(above.text());
        if (at == first.end() || !at->second->gpus.has_value() || !quota->gpus.has_value()) {
          continue;
        }
        if (*quota->gpus > *at->second->gpus) {
          Add(quota->head, quota->gpus_line, "spec.gpus",
              std::to_string(*quota->gpus) + " is more than the " +
                  std::to_string(*at->second->gpus) + " of " + above.text() + " at " +
                  Where(at->second->head.source),
              "lower this quota or raise that one");
          break;
        }
      }
    }
  }

  void CheckNetworkRules() {
    if (draft_.network_rules.size() > kNetworkRulesMax) {
      const DraftHead& head = draft_.network_rules[kNetworkRulesMax].head;
      Add(head, head.source.line, "kind",
          "more than " + std::to_string(kNetworkRulesMax) + " network rules",
          "join rules: one may name a tenant above, a wider network or several ports");
      return;
    }
    for (const DraftNetworkRule& rule : draft_.network_rules) {
      (void)CheckTenantRef(rule.head, rule.from, "spec.from");  // whether usable does not matter
      (void)CheckTenantRef(rule.head, rule.to_tenant, "spec.to.tenant");
    }
    for (const DraftTenant& tenant : draft_.tenants) {
      if (tenant.path.has_value()) {
        CheckRulesOf(tenant);
      }
    }
  }

  // All rules of a tenant travel in each grant of a box.
  void CheckRulesOf(const DraftTenant& tenant) {
    std::size_t rules = 0;
    for (const DraftNetworkRule& rule : draft_.network_rules) {
      const bool from = rule.from.path.has_value() && rule.from.path->Contains(*tenant.path);
      const bool to =
          rule.to_tenant.path.has_value() && rule.to_tenant.path->Contains(*tenant.path);
      rules += (from ? 1U : 0U) + (to ? 1U : 0U);
    }
    if (rules > kNetworkRulesPerTenantMax) {
      Add(tenant.head, tenant.head.name_line, "metadata.name",
          std::to_string(rules) + " network rules hold for " + Quoted(tenant.head.name) + ", and " +
              std::to_string(kNetworkRulesPerTenantMax) + " are the most",
          "join rules: one may name a wider network or several ports");
    }
  }

  bool IsService(const std::string& name) const {
    return std::any_of(
        draft_.principals.begin(), draft_.principals.end(),
        [&](const DraftPrincipal& one) { return one.head.name == name && one.service; });
  }

  // Two people: a program approves nothing, and nobody approves for himself.
  void CheckException(const DraftException& exception) {
    (void)CheckTenantRef(exception.head, exception.tenant, "spec.tenant");
    const auto& requested = exception.requested_by;
    const auto& approved = exception.approved_by;
    for (const auto& [who, field] :
         {std::pair(&requested, "spec.requestedBy"), {&approved, "spec.approvedBy"}}) {
      if (who->has_value() && !principals_.contains((*who)->text)) {
        Add(exception.head, (*who)->line, field, "unknown principal " + Quoted((*who)->text),
            Nearest((*who)->text, principals_, "declare it as a Principal"));
      }
    }
    if (approved.has_value() && IsService(approved->text)) {
      Add(exception.head, approved->line, "spec.approvedBy",
          Quoted(approved->text) + " is a service, and exceptions are approved by people",
          "name a user");
    }
    if (requested.has_value() && approved.has_value() && requested->text == approved->text) {
      Add(exception.head, approved->line, "spec.approvedBy",
          Quoted(approved->text) + " asked for it, and must not be who approves it",
          "have somebody else approve it");
    }
  }

  void CheckCase(const DraftCase& one) {
    (void)CheckTenantRef(one.head, one.resource, "spec.resource");
    if (one.principal.has_value() && !principals_.contains(one.principal->text)) {
      Add(one.head, one.principal->line, "spec.principal",
          "unknown principal " + Quoted(one.principal->text),
          Nearest(one.principal->text, principals_, "declare it as a Principal"));
    }
  }

  void CheckSomeoneCanAdminister() {
    bool under_conditions = false;
    for (const DraftBinding& binding : draft_.bindings) {
      if (binding.role.has_value() && binding.role->text == "admin" &&
          binding.tenant.path.has_value() && binding.tenant.path->is_root()) {
        if (!binding.when.has_value()) {
          return;
        }
        under_conditions = true;
      }
    }
    problems_.Add(YamlProblem{
        "policy folder",
        0,
        {},
        under_conditions ? "the role admin at \"/\" is held only under conditions: everyone could "
                           "be locked out"
                         : "nobody holds the role admin at \"/\": everyone would be locked out",
        under_conditions ? "add a Binding with role: admin and tenant: / without when"
                         : "add a Binding with role: admin and tenant: /"});
  }

  const Draft& draft_;
  YamlProblems& problems_;
  std::map<std::string_view, Source> tenants_;
  std::map<std::string_view, Source> principals_;
  std::map<std::string_view, Source> roles_;
};

}  // namespace

void CheckDraft(const Draft& draft, YamlProblems& problems) { Checker(draft, problems).Run(); }

}  // namespace ringfence::policy
