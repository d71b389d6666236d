#pragma once

// What the files of a policy folder say, read one by one and not yet held against each other.
// Internal to policy/.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "wire/yaml.h"

namespace ringfence::policy {

inline constexpr std::string_view kApiVersion = "ringfence.dev/v1";
inline constexpr std::uint32_t kQuotaGpusMax = 1'000'000;
inline constexpr std::size_t kNameBytesMax = 128;
inline constexpr std::size_t kClassificationBytesMax = 40;

// What every document has. `name` is empty when it could not be read: that was a problem already,
// and later checks pass over it, so that one mistake gives one line.
struct DraftHead {
  std::string name;
  int name_line = 0;
  Source source;
};
// A field that names something declared elsewhere.
struct DraftTenantRef {
  std::optional<model::TenantPath> path;
  int line = 0;
};

struct DraftTenant {
  DraftHead head;
  std::optional<model::TenantPath> path;
  std::string display_name;
  std::string classification;
};
struct DraftPrincipal {
  DraftHead head;
  bool service = false;
  std::string display_name;
};
struct DraftRole {
  DraftHead head;
  std::vector<Action> allows;
  std::vector<wire::YamlText> apart_from;
};
struct DraftBinding {
  DraftHead head;
  std::optional<wire::YamlText> principal;
  std::optional<wire::YamlText> role;
  DraftTenantRef tenant;
  std::optional<BindingCondition> when;
};
struct DraftBoundary {
  DraftHead head;
  BoundaryScope scope = BoundaryScope::kPair;
  bool scope_known = false;  // it could be read
  DraftTenantRef a;          // of kPair and kTenant
  DraftTenantRef b;
  std::optional<wire::YamlText> classification;
  std::optional<model::IsolationClass> least;
  bool never_together = false;
  bool nvlink_one_tenant = false;
  std::optional<Milliseconds> proven_within;
};
struct DraftQuota {
  DraftHead head;
  DraftTenantRef tenant;
  std::optional<std::uint32_t> gpus;
  int gpus_line = 0;
};

struct DraftNetworkRule {
  DraftHead head;
  DraftTenantRef from;
  std::optional<NetworkTarget> target;
  DraftTenantRef to_tenant;
  std::optional<model::Ipv4Network> to_cidr;
  std::string to_name;
  bool allow_private = false;
  std::vector<model::PortRange> ports;
};

struct DraftBoxRule {
  DraftHead head;
  DraftTenantRef tenant;
  BoxRule rule;  // without tenant and source
};

struct DraftException {
  DraftHead head;
  DraftTenantRef tenant;
  BoxException exception;  // without name, tenant, people and source
  std::optional<wire::YamlText> requested_by;
  std::optional<wire::YamlText> approved_by;
};

struct DraftCase {
  DraftHead head;
  std::optional<wire::YamlText> principal;
  DraftTenantRef resource;
  PolicyCase given;  // without name, principal, tenant and source
};

struct Draft {
  std::vector<DraftTenant> tenants;
  std::vector<DraftPrincipal> principals;
  std::vector<DraftRole> roles;
  std::vector<DraftBinding> bindings;
  std::vector<DraftBoundary> boundaries;
  std::vector<DraftQuota> quotas;
  std::vector<DraftNetworkRule> network_rules;
  std::vector<DraftBoxRule> box_rules;
  std::vector<DraftException> exceptions;
  std::vector<DraftCase> cases;
};

// Adds one document of `file` to the draft; what is wrong with it goes to `problems`.
void ReadDocument(const wire::YamlNode& document, const std::string& file, Draft& draft,
                  wire::YamlProblems& problems);

void ReadBoundary(DraftHead head, wire::YamlReader& spec, Draft& draft);
Boundary BoundaryOf(DraftBoundary&& draft);  // of one without problems
// Whether a reference names a declared tenant; if not, that is a problem now.
using KnowsTenant =
    std::function<bool(const DraftHead& head, const DraftTenantRef& ref, std::string_view field)>;
void CheckBoundaries(const Draft& draft, const KnowsTenant& knows, wire::YamlProblems& problems);

// The spec of a NetworkRule.
void ReadNetworkRule(DraftHead head, wire::YamlReader& spec, Draft& draft,
                     wire::YamlProblems& problems);
void ReadBoxRule(DraftHead head, DraftTenantRef tenant, wire::YamlReader& spec, Draft& draft);
void ReadCase(DraftHead head, DraftTenantRef resource, wire::YamlReader& spec, Draft& draft);
void ReadException(DraftHead head, DraftTenantRef tenant, wire::YamlReader& spec, Draft& draft);

// Holds the documents against each other: references, duplicates, contradictions, lock-out.
void CheckDraft(const Draft& draft, wire::YamlProblems& problems);

// That nobody holds two roles which must be apart.
void CheckDuties(const Draft& draft, wire::YamlProblems& problems);

// Lower-case letters, digits and ". _ @ + -", beginning with a letter or digit.
bool IsPrincipalName(std::string_view name);

}  // namespace ringfence::policy
