#pragma once

// The folder's rules about who may do what, as Cedar. What the YAML says becomes policies and
// entities: a binding makes its principal a member of `Holders::"ROLE@TENANT"`, and one permit for
// each role and tenant in use says what those holders may do there. So ten thousand bindings are
// entities, not policies. The policies of *.cedar files are added as they stand.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cedar/engine.h"
#include "cedar/schema.h"
#include "policy/authorizer.h"
#include "policy/policy.h"
#include "wire/yaml.h"

namespace ringfence::policy {

// Of one Cedar policy, what people want to know.
struct Rule {
  Source source;     // of the first binding that brought it about, or of the policy in its file
  std::string role;  // empty for those of *.cedar files
  // Where the role is held; none: the rule is about actions that a role gives wherever it is held.
  std::optional<model::TenantPath> tenant;
};

// What a Rulebook is made of. All of it only for the length of a call.
struct RulebookParts {
  const std::map<model::TenantPath, Tenant>& tenants;
  const std::map<std::string, Principal, std::less<>>& principals;
  const std::map<std::string, Role, std::less<>>& roles;
  const std::vector<Binding>& bindings;
  const std::map<std::string, std::string>& files;  // those that end in .cedar count
};

// Immutable. Any thread.
class Rulebook {
 public:
  // Null when there are problems: all of them are in *.cedar files.
  static std::unique_ptr<const Rulebook> Make(const RulebookParts& parts,
                                              wire::YamlProblems& problems);

  const cedar::Engine& engine() const { return *engine_; }
  const std::vector<Rule>& rules() const { return rules_; }  // as engine().policies()
  std::string Text() const;                                  // every policy, with @id and @source
  // Policies of *.cedar files that can never apply, "extra.cedar:3: ...".
  const std::vector<std::string>& warnings() const { return warnings_; }

  cedar::EntityUid PrincipalUid(std::string_view name) const;

 private:
  Rulebook() = default;
  std::shared_ptr<const cedar::Engine> engine_;
  std::vector<Rule> rules_;
  std::vector<std::string> warnings_;
};

inline constexpr std::string_view kCedarSuffix = ".cedar";
bool IsCedarFile(std::string_view name);

cedar::EntityUid ActionUid(Action action);
cedar::EntityUid TenantUid(const model::TenantPath& tenant);
// The types, actions and context of every request, in Cedar's syntax for schemas.
const std::string& CedarSchemaText();
const cedar::Schema& CedarSchema();

}  // namespace ringfence::policy
