#pragma once

// The policy folder, loaded: tenants, principals, roles, bindings, boundaries, quotas, network
// rules. Immutable; a reload makes a new one.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cedar/value.h"
#include "model/isolation.h"
#include "model/tenant.h"
#include "policy/authorizer.h"
#include "policy/boundary_rule.h"
#include "policy/box_rule.h"
#include "policy/case.h"
#include "policy/condition.h"
#include "policy/exception.h"
#include "policy/network_rule.h"
#include "policy/source.h"

namespace ringfence::policy {

class Rulebook;

struct Tenant {
  model::TenantPath path = model::TenantPath::Root();
  std::string display_name;
  std::string classification;  // may be empty: then that of the tenant above it
  Source source;
};

struct Principal {
  std::string name;  // "alice@acme.example" or "ci-runner"
  bool service = false;
  std::string display_name;
  Source source;
};

struct Role {
  std::string name;
  std::vector<Action> allows;
  Source source;                             // file empty for those built in
  std::vector<std::string> apart_from = {};  // as the folder has it
};

struct Binding {
  std::string principal;
  std::string role;
  model::TenantPath tenant = model::TenantPath::Root();
  Source source;
  std::string name = {};
  std::optional<BindingCondition> when = {};
};

struct Quota {
  model::TenantPath tenant = model::TenantPath::Root();
  std::uint32_t gpus_max = 0;
  Source source;
};

class Policy final : public Authorizer {
 public:
  // Reads every *.yaml, *.yml and *.cedar in `folder` and below. All errors are found, not only the
  // first; the message has a line each: "tenants.yaml:12: spec.parent: unknown tenant
  // "acme/reserch" (did you mean "acme/research"?)".
  static Result<std::unique_ptr<Policy>> Load(const std::string& folder);
  // Files by name and text.
  static Result<std::unique_ptr<Policy>> Parse(const std::map<std::string, std::string>& files);

  Decision Decide(const Query& query) const override;
  // The same with what is known as Cedar has it; the query's circumstances do not count.
  Decision DecideIn(const Query& query, const cedar::ValueRecord& context) const;

  const Tenant* FindTenant(const model::TenantPath& path) const;
  const Principal* FindPrincipal(std::string_view name) const;
  std::vector<Tenant> tenants() const;  // sorted by path
  std::vector<Principal> principals() const;
  std::vector<Role> roles() const;
  // Pairs of roles that nobody may hold together: those built in and those of the folder.
  std::vector<std::pair<std::string, std::string>> DutiesApart() const;
  std::vector<Binding> bindings() const;
  std::vector<const Binding*> BindingsOf(std::string_view principal) const;
  const std::vector<Boundary>& boundaries() const;  // in the order of the files
  std::vector<Quota> quotas() const;
  const std::vector<NetworkRule>& network_rules() const;  // in the order of the files
  const std::vector<BoxException>& exceptions() const;    // likewise; also those out of force
  const std::vector<PolicyCase>& cases() const;           // likewise
  // All that decides who may do what, as Cedar.
  const Rulebook& rulebook() const;
  // Every quota that holds for a tenant: its own and those above it.
  std::vector<Quota> QuotasOver(const model::TenantPath& tenant) const;
  // Likewise, down from "/".
  std::vector<BoxRule> BoxRulesOver(const model::TenantPath& tenant) const;
  // "acme/reserch" -> "acme/research", when one is close; for errors.
  std::optional<std::string> ClosestTenant(std::string_view text) const;
  // SHA-256 over the files' names and texts, hex: which policy decided.
  const std::string& digest() const;
  // The files that it was made of, by name.
  const std::map<std::string, std::string>& files() const;

 private:
  struct Tables;
  explicit Policy(std::unique_ptr<Tables> tables);

 public:
  ~Policy() override;

 private:
  std::unique_ptr<Tables> tables_;
};

}  // namespace ringfence::policy
