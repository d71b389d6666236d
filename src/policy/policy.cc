#include "policy/policy.h"

#include <algorithm>

#include "base/check.h"
#include "base/closest.h"
#include "base/encoding.h"
#include "crypto/sha256.h"
#include "policy/limits.h"
#include "policy/outlook.h"
#include "policy/tables.h"

namespace ringfence::policy {
namespace {

using wire::YamlProblem;
using wire::YamlProblems;

// Nothing in here may be ambiguous, so each part has its length before it.
std::string DigestOf(const std::map<std::string, std::string>& files) {
  Bytes all;
  for (const auto& [name, text] : files) {
    for (const std::string_view part : {std::string_view(name), std::string_view(text)}) {
      Append(all, PutBigEndian(static_cast<std::uint64_t>(part.size())));
      Append(all, AsBytes(part));
    }
  }
  return Hex(crypto::Sha256(all));
}

// The whole draft of all files, or none: a file that is no YAML would make every reference into it
// look wrong, so then only what stands by itself is reported.
bool ReadFiles(const std::map<std::string, std::string>& files, Draft& draft,
               YamlProblems& problems) {
  std::size_t bytes = 0;
  for (const auto& [name, text] : files) {
    bytes += text.size();
  }
  if (files.size() > kPolicyFilesMax || bytes > kPolicyBytesMax) {
    problems.Add(YamlProblem{
        "policy folder",
        0,
        {},
        std::to_string(files.size()) + " files of " + std::to_string(bytes) + " bytes in all",
        "keep to " + std::to_string(kPolicyFilesMax) + " files and " +
            std::to_string(kPolicyBytesMax) + " bytes"});
    return false;
  }
  bool all_parsed = true;
  bool any_document = false;
  for (const auto& [name, text] : files) {
    if (!text.empty() && text.back() != '\n') {
      problems.Add(YamlProblem{name,
                               0,
                               {},
                               "the last line has no end: the file may be cut short",
                               "end the file with a newline"});
      all_parsed = false;
      continue;
    }
    if (IsCedarFile(name)) {
      continue;  // read once all that it may name is there
    }
    YamlProblems in_file;
    const auto documents = wire::ParseYaml(text, name, in_file);
    all_parsed = all_parsed && in_file.empty();
    problems.AddAll(in_file);
    for (const wire::YamlNode& document : documents) {
      any_document = true;
      ReadDocument(document, name, draft, problems);
    }
  }
  if (all_parsed && !any_document) {
    problems.Add(YamlProblem{"policy folder",
                             0,
                             {},
                             "there is no document in it",
                             "put *.yaml files there; content/sample-policy shows how"});
    return false;
  }
  return all_parsed;
}

Error Refused(const YamlProblems& problems) {
  return Error{Code::kInvalidArgument, problems.Text(),
               "docs/formats/policy-folder.md describes every kind of document", "policy"};
}

// People only, and under whatever circumstances. Without Cedar files the role admin is enough.
bool SomeoneCanApply(const Policy& policy) {
  const auto is_cedar = [](const auto& file) { return IsCedarFile(file.first); };
  if (std::none_of(policy.files().begin(), policy.files().end(), is_cedar)) {
    return true;
  }
  for (const Point& point : WhoCan(policy, Action::kPolicyApply, model::TenantPath::Root(), {})) {
    if (point.answer != cedar::Outlook::Answer::kNo &&
        !policy.FindPrincipal(point.principal)->service) {
      return true;
    }
  }
  return false;
}

}  // namespace

Policy::Policy(std::unique_ptr<Tables> tables) : tables_(std::move(tables)) {}
Policy::~Policy() = default;

void Policy::Tables::Fill(Draft& draft) {
  for (DraftTenant& tenant : draft.tenants) {
    tenants.emplace(*tenant.path,
                    Tenant{*tenant.path, std::move(tenant.display_name),
                           std::move(tenant.classification), std::move(tenant.head.source)});
  }
  for (DraftPrincipal& principal : draft.principals) {
    principals.emplace(principal.head.name, Principal{principal.head.name, principal.service,
                                                      std::move(principal.display_name),
                                                      std::move(principal.head.source)});
  }
  for (const Role& role : BuiltInRoles()) {
    roles.emplace(role.name, role);
  }
  for (DraftRole& role : draft.roles) {
    Role kept{role.head.name, std::move(role.allows), std::move(role.head.source)};
    for (wire::YamlText& other : role.apart_from) {
      kept.apart_from.push_back(std::move(other.text));
    }
    roles.emplace(role.head.name, std::move(kept));
  }
  for (DraftBoundary& boundary : draft.boundaries) {
    boundaries.push_back(BoundaryOf(std::move(boundary)));
  }
  for (DraftQuota& quota : draft.quotas) {
    quota_of.emplace(quota.tenant.path->text(), quotas.size());
    quotas.push_back(Quota{*quota.tenant.path, *quota.gpus, std::move(quota.head.source)});
  }
  for (DraftNetworkRule& draft_rule : draft.network_rules) {
    NetworkRule& rule = network_rules.emplace_back();
    rule.name = std::move(draft_rule.head.name);
    rule.from = *draft_rule.from.path;
    rule.target = *draft_rule.target;
    rule.to_tenant = draft_rule.to_tenant.path.value_or(model::TenantPath::Root());
    rule.to_cidr = draft_rule.to_cidr;
    rule.to_name = std::move(draft_rule.to_name);
    rule.allow_private = draft_rule.allow_private;
    rule.ports = std::move(draft_rule.ports);
    rule.source = std::move(draft_rule.head.source);
  }
  for (DraftBoxRule& draft_rule : draft.box_rules) {
    BoxRule rule = std::move(draft_rule.rule);
    rule.tenant = *draft_rule.tenant.path;
    rule.source = std::move(draft_rule.head.source);
    box_rules.push_back(std::move(rule));
  }
  for (DraftException& draft_exception : draft.exceptions) {
    BoxException exception = std::move(draft_exception.exception);
    exception.name = std::move(draft_exception.head.name);
    exception.tenant = *draft_exception.tenant.path;
    exception.requested_by = std::move(draft_exception.requested_by->text);
    exception.approved_by = std::move(draft_exception.approved_by->text);
    exception.source = std::move(draft_exception.head.source);
    exceptions.push_back(std::move(exception));
  }
  for (DraftCase& draft_case : draft.cases) {
    PolicyCase one = std::move(draft_case.given);
    one.name = std::move(draft_case.head.name);
    one.query.principal = std::move(draft_case.principal->text);
    one.query.tenant = *draft_case.resource.path;
    one.source = std::move(draft_case.head.source);
    cases.push_back(std::move(one));
  }
}

void Policy::Tables::FillBindings(Draft& draft) {
  bindings.reserve(draft.bindings.size());  // grants point into it
  for (DraftBinding& binding : draft.bindings) {
    bindings.push_back(Binding{std::move(binding.principal->text), std::move(binding.role->text),
                               *binding.tenant.path, std::move(binding.head.source),
                               std::move(binding.head.name), std::move(binding.when)});
    const Binding& kept = bindings.back();
    const auto role = roles.find(kept.role);
    RINGFENCE_CHECK(role != roles.end());
    const Grant grant{BitsOf(role->second.allows), &kept};
    Holder& holder = holders[kept.principal];
    if (kept.when.has_value()) {
      holder.conditional.push_back(grant);
      continue;
    }
    holder.at[kept.tenant.text()].push_back(grant);
    holder.all.push_back(grant);
    if (some_admin.empty() && kept.role == "admin" && kept.tenant.is_root()) {
      some_admin = kept.principal;
    }
  }
}

Result<std::unique_ptr<Policy>> Policy::Parse(const std::map<std::string, std::string>& files) {
  Draft draft;
  YamlProblems problems;
  if (ReadFiles(files, draft, problems)) {
    CheckDraft(draft, problems);
  }
  if (!problems.empty()) {
    return Refused(problems);
  }
  auto tables = std::make_unique<Tables>();
  tables->digest = DigestOf(files);
  tables->files = files;
  tables->Fill(draft);
  tables->FillBindings(draft);
  tables->rulebook = Rulebook::Make(
      {tables->tenants, tables->principals, tables->roles, tables->bindings, tables->files},
      problems);
  if (tables->rulebook == nullptr) {
    return Refused(problems);
  }
  std::unique_ptr<Policy> policy(new Policy(std::move(tables)));
  if (!SomeoneCanApply(*policy)) {
    problems.Add(
        YamlProblem{"policy folder",
                    0,
                    {},
                    "its forbids leave nobody who may put another policy in force: everyone "
                    "would be locked out",
                    "leave policy.apply at / to somebody; `ringfence who-can policy.apply /`"});
    return Refused(problems);
  }
  return policy;
}

const Tenant* Policy::FindTenant(const model::TenantPath& path) const {
  const auto found = tables_->tenants.find(path);
  return found == tables_->tenants.end() ? nullptr : &found->second;
}

const Principal* Policy::FindPrincipal(std::string_view name) const {
  const auto found = tables_->principals.find(name);
  return found == tables_->principals.end() ? nullptr : &found->second;
}

std::vector<Tenant> Policy::tenants() const {
  std::vector<Tenant> all;
  for (const auto& [path, tenant] : tables_->tenants) {
    all.push_back(tenant);
  }
  return all;
}

std::vector<Principal> Policy::principals() const {
  std::vector<Principal> all;
  for (const auto& [name, principal] : tables_->principals) {
    all.push_back(principal);
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> Policy::DutiesApart() const {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& [a, b] : BuiltInDutiesApart()) {
    pairs.emplace_back(a, b);
  }
  for (const auto& [name, role] : tables_->roles) {
    for (const std::string& other : role.apart_from) {
      pairs.emplace_back(name, other);
    }
  }
  return pairs;
}

std::vector<Role> Policy::roles() const {
  std::vector<Role> all;
  for (const auto& [name, role] : tables_->roles) {
    all.push_back(role);
  }
  return all;
}

std::vector<Binding> Policy::bindings() const { return tables_->bindings; }
std::vector<const Binding*> Policy::BindingsOf(std::string_view principal) const {
  std::vector<const Binding*> bindings;
  const auto found = tables_->holders.find(principal);
  if (found != tables_->holders.end()) {
    for (const std::vector<Grant>* grants : {&found->second.all, &found->second.conditional}) {
      for (const Grant& grant : *grants) {
        bindings.push_back(grant.binding);
      }
    }
  }
  return bindings;
}

const std::vector<Boundary>& Policy::boundaries() const { return tables_->boundaries; }
std::vector<Quota> Policy::quotas() const { return tables_->quotas; }
const std::vector<NetworkRule>& Policy::network_rules() const { return tables_->network_rules; }
const std::vector<BoxException>& Policy::exceptions() const { return tables_->exceptions; }
const std::vector<PolicyCase>& Policy::cases() const { return tables_->cases; }
const Rulebook& Policy::rulebook() const { return *tables_->rulebook; }
const std::string& Policy::digest() const { return tables_->digest; }

const std::map<std::string, std::string>& Policy::files() const { return tables_->files; }

std::vector<Quota> Policy::QuotasOver(const model::TenantPath& tenant) const {
  std::vector<Quota> quotas;
  for (auto at = tenant; !at.is_root(); at = at.parent()) {
    if (const auto found = tables_->quota_of.find(at.text()); found != tables_->quota_of.end()) {
      quotas.push_back(tables_->quotas[found->second]);
    }
  }
  return quotas;
}

std::vector<BoxRule> Policy::BoxRulesOver(const model::TenantPath& tenant) const {
  std::vector<BoxRule> rules;
  for (const BoxRule& rule : tables_->box_rules) {
    if (rule.tenant.is_root() || rule.tenant.Contains(tenant)) {
      rules.push_back(rule);
    }
  }
  return rules;
}

std::optional<std::string> Policy::ClosestTenant(std::string_view text) const {
  std::vector<std::string_view> names;
  names.reserve(tables_->tenants.size());
  for (const auto& [path, tenant] : tables_->tenants) {
    names.push_back(path.text());
  }
  return Closest(text, names);
}

}  // namespace ringfence::policy
