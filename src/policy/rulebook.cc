#include "policy/rulebook.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "cedar/lexer.h"
#include "cedar/parser.h"
#include "cedar/print.h"
#include "cedar/validator.h"
#include "policy/roles.h"

namespace ringfence::policy {
namespace {

using cedar::EntityUid;
using cedar::PolicyBody;
using cedar::Value;
using wire::YamlProblem;

std::string Where(const Source& source) { return source.file + ":" + std::to_string(source.line); }

EntityUid HoldersUid(const std::string& role, const model::TenantPath& tenant) {
  return {"Holders", role + "@" + tenant.text()};
}

int LineAt(std::string_view text, std::size_t offset) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
  return static_cast<int>(std::count(text.begin(), end, '\n')) + 1;
}

// "3:14: what" as line 3 and "what (column 14)"; cedar's parser says where in front.
YamlProblem ProblemOf(const std::string& file, const Error& error) {
  YamlProblem problem{file, 0, {}, error.message, error.hint};
  const std::string& text = error.message;
  const std::size_t colon = text.find(':');
  const std::size_t second = colon == std::string::npos ? colon : text.find(':', colon + 1);
  const bool numbers = second != std::string::npos && second > 0 &&
                       text.find_first_not_of("0123456789:") == second + 1 && colon > 0 &&
                       colon < 9;
  if (numbers) {
    problem.line = std::stoi(text.substr(0, colon));
    problem.path = "column " + text.substr(colon + 1, second - colon - 1);
    problem.what = text.substr(std::min(second + 2, text.size()));
  }
  return problem;
}

constexpr std::size_t kAnnotationBytesMax = 256;

bool IsShortLine(std::string_view text) {
  return text.size() <= kAnnotationBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

class Builder {
 public:
  Builder(const RulebookParts& parts, wire::YamlProblems& problems)
      : parts_(parts), problems_(problems), arena_(std::make_shared<cedar::ExprArena>()) {}

  bool Run() {
    AddFacts();
    AddBindings();
    bool good = problems_.empty();
    for (const auto& [name, text] : parts_.files) {
      if (IsCedarFile(name)) {
        good = AddFile(name, text) && good;
      }
    }
    return good;
  }

  std::shared_ptr<const cedar::Engine> MakeEngine() {
    auto made = cedar::Entities::Make(std::move(entities_));
    RINGFENCE_CHECK(made.has_value());  // ids are unique and tenants are a tree: nothing can clash
    return cedar::Engine::Make(std::move(set_), cedar::EntityStore::Make(std::move(made).value()));
  }

  std::vector<Rule> rules;
  std::vector<std::string> warnings;

 private:
  void AddFacts() {
    for (const Action action : AllActions()) {
      entities_.push_back({ActionUid(action)});
    }
    const auto add = [&](const model::TenantPath& path, std::vector<EntityUid> parents) {
      entities_.push_back(
          {TenantUid(path), {{"path", Value::String(path.text())}}, {}, std::move(parents)});
    };
    add(model::TenantPath::Root(), {});
    for (const auto& [path, tenant] : parts_.tenants) {
      add(path, {TenantUid(path.parent())});
    }
    principals_.reserve(parts_.principals.size());
    for (const auto& [name, principal] : parts_.principals) {
      principals_.emplace(name, entities_.size());
      entities_.push_back(
          {{principal.service ? "Service" : "User", name}, {{"name", Value::String(name)}}});
    }
  }

  void AddBindings() {
    std::set<std::string_view> roles_in_use;
    std::set<std::pair<std::string_view, std::string_view>> in_use;
    for (const Binding& binding : parts_.bindings) {
      if (binding.when.has_value()) {
        AddConditional(binding);
        continue;
      }
      const EntityUid holders = HoldersUid(binding.role, binding.tenant);
      entities_[principals_.find(binding.principal)->second].parents.push_back(holders);
      if (!in_use.emplace(binding.role, binding.tenant.text()).second) {
        continue;
      }
      entities_.push_back({holders, {}, {}, {{"Holders", binding.role}}});
      AddRole(binding, holders);
      if (roles_in_use.insert(binding.role).second) {
        entities_.push_back({{"Holders", binding.role}});
        AddRoleAnywhere(binding);
      }
    }
  }

  // A binding with a condition is a policy of its own, and another for what a role allows anywhere.
  void AddConditional(const Binding& binding) {
    const cedar::ParsedExpr& condition = ConditionOf(*binding.when);
    if (condition.expr == nullptr) {
      problems_.Add(YamlProblem{binding.source.file, binding.source.line, "spec.when",
                                "is nothing that Cedar can say", "write it in other words"});
      return;
    }
    const bool root = binding.tenant.is_root();
    for (const bool anywhere : {false, true}) {
      PolicyBody body;
      body.action = {
          cedar::ActionClause::Kind::kInList, ActionsOf(binding.role, [&](ActionScope scope) {
            return anywhere
                       ? scope == ActionScope::kAnywhere
                       : scope == ActionScope::kTenant || (root && scope == ActionScope::kCluster);
          })};
      if (body.action.actions.empty()) {
        continue;
      }
      body.id = "binding:" + binding.name + (anywhere ? "+anywhere" : "");
      body.principal = {cedar::ScopeClause::Kind::kEqual,
                        false,
                        entities_[principals_.find(binding.principal)->second].uid,
                        {}};
      if (!anywhere) {
        body.resource = {cedar::ScopeClause::Kind::kIn, false, TenantUid(binding.tenant), {}};
      }
      body.conditions = {{true, condition.expr}};
      body.annotations = {
          {"id", body.id}, {"source", Where(binding.source)}, {"role", binding.role}};
      body.arena = condition.arena;
      Add(std::move(body),
          Rule{binding.source, binding.role,
               anywhere ? std::nullopt : std::optional(binding.tenant), binding.name});
    }
  }

  // Many bindings have the same condition: it is parsed once.
  const cedar::ParsedExpr& ConditionOf(const BindingCondition& when) {
    std::string text = when.ToCedar();
    const auto found = conditions_.find(text);
    if (found != conditions_.end()) {
      return found->second;
    }
    auto parsed = cedar::ParseExpr(text);
    return conditions_
        .emplace(std::move(text),
                 parsed.has_value() ? std::move(parsed).value() : cedar::ParsedExpr())
        .first->second;
  }

  std::vector<EntityUid> ActionsOf(const std::string& role, const auto& wanted) const {
    std::vector<EntityUid> actions;
    for (const Action action : parts_.roles.find(role)->second.allows) {
      if (wanted(ScopeOf(action))) {
        actions.push_back(ActionUid(action));
      }
    }
    return actions;
  }

  // What a role allows at a tenant and below it; at "/" also what is about the cluster.
  void AddRole(const Binding& binding, const EntityUid& holders) {
    const bool root = binding.tenant.is_root();
    auto actions = ActionsOf(binding.role, [&](ActionScope scope) {
      return scope == ActionScope::kTenant || (root && scope == ActionScope::kCluster);
    });
    PolicyBody body;
    body.id = binding.role + "@" + binding.tenant.text();
    body.resource = {cedar::ScopeClause::Kind::kIn, false, TenantUid(binding.tenant), {}};
    AddPermit(std::move(body), holders, std::move(actions),
              Rule{binding.source, binding.role, binding.tenant});
  }

  void AddRoleAnywhere(const Binding& binding) {
    auto actions =
        ActionsOf(binding.role, [](ActionScope scope) { return scope == ActionScope::kAnywhere; });
    PolicyBody body;
    body.id = binding.role;
    AddPermit(std::move(body), {"Holders", binding.role}, std::move(actions),
              Rule{binding.source, binding.role, std::nullopt});
  }

  void AddPermit(PolicyBody body, EntityUid holders, std::vector<EntityUid> actions, Rule rule) {
    if (actions.empty()) {
      return;
    }
    body.principal = {cedar::ScopeClause::Kind::kIn, false, std::move(holders), {}};
    body.action = {cedar::ActionClause::Kind::kInList, std::move(actions)};
    body.annotations = {{"id", body.id}, {"source", Where(rule.source)}, {"role", rule.role}};
    body.arena = arena_;
    Add(std::move(body), std::move(rule));
  }

  void Add(PolicyBody body, Rule rule) {
    RINGFENCE_CHECK(cedar::Finish(body));
    RINGFENCE_CHECK(
        set_.AddPolicy(std::make_shared<const PolicyBody>(std::move(body))).has_value());
    rules.push_back(std::move(rule));
  }

  bool AddFile(const std::string& name, const std::string& text) {
    auto parsed = cedar::ParsePolicies(text, {.id_annotations = true});
    if (!parsed.has_value()) {
      problems_.Add(ProblemOf(name, parsed.error()));
      return false;
    }
    bool good = true;
    for (const auto& body : parsed->templates()) {
      problems_.Add(YamlProblem{name,
                                LineAt(text, body->begin),
                                {},
                                "a template applies to nobody until it is linked",
                                "write a policy, with an entity in place of the slot"});
      good = false;
    }
    const cedar::ValidationResult found = cedar::Validate(*parsed, CedarSchema());
    for (const cedar::Finding& finding : found.errors) {
      problems_.Add(YamlProblem{name, LineAt(text, finding.offset), finding.policy, finding.message,
                                "ringfence policy compile --schema shows the types and actions"});
      good = false;
    }
    for (const cedar::Finding& finding : found.warnings) {
      warnings.push_back(name + ":" + std::to_string(LineAt(text, finding.offset)) + ": " +
                         finding.policy + ": " + finding.message);
    }
    for (const cedar::Policy& policy : parsed->policies()) {
      good = good && AddWritten(name, text, *policy.body);
    }
    return good;
  }

  // Whether what a rule names exists, so that a misspelt forbid does not pass for one that holds.
  bool IsDeclared(const EntityUid& uid) {
    if (declared_.empty()) {
      for (const cedar::Entity& entity : entities_) {
        declared_.insert(entity.uid.type + " " + entity.uid.id);
      }
    }
    return declared_.contains(uid.type + " " + uid.id) || IsRole(uid);
  }

  // `Holders::"developer@acme"`, which nobody may be today.
  bool IsRole(const EntityUid& uid) const {
    const std::size_t at = uid.id.find('@');
    return uid.type == "Holders" && parts_.roles.contains(uid.id.substr(0, at)) &&
           (at == std::string::npos || declared_.contains("Tenant " + uid.id.substr(at + 1)));
  }

  // The first entity of an expression that is not in the policy.
  std::optional<EntityUid> Undeclared(const cedar::Expr& expr) {
    if (expr.op == cedar::Op::kLiteral && expr.value.is(Value::Kind::kEntity) &&
        !IsDeclared(expr.value.entity())) {
      return expr.value.entity();
    }
    for (const cedar::Expr* const argument : expr.args) {
      if (auto found = Undeclared(*argument)) {
        return found;
      }
    }
    return std::nullopt;
  }

  std::optional<EntityUid> Undeclared(const PolicyBody& body) {
    using enum cedar::ScopeClause::Kind;
    for (const cedar::ScopeClause* scope : {&body.principal, &body.resource}) {
      if (!scope->slot && scope->kind != kAny && scope->kind != kIs && !IsDeclared(scope->entity)) {
        return scope->entity;
      }
    }
    for (const cedar::Condition& condition : body.conditions) {
      if (auto found = Undeclared(*condition.body)) {
        return found;
      }
    }
    return std::nullopt;
  }

  // The id has the file's name in front, so that files need not know of each other.
  bool AddWritten(const std::string& name, const std::string& text, PolicyBody body) {
    const Rule rule{{name, LineAt(text, body.begin)}, {}, std::nullopt};
    for (const std::string_view annotation : {"id", "description"}) {
      if (const std::string* value = body.annotation(annotation);
          value != nullptr && !IsShortLine(*value)) {
        problems_.Add(YamlProblem{name, rule.source.line, "@" + std::string(annotation),
                                  "must be one line of at most " +
                                      std::to_string(kAnnotationBytesMax) + " printable characters",
                                  "it is shown in refusals and audit entries"});
        return false;
      }
    }
    if (const auto lost = Undeclared(body)) {
      problems_.Add(YamlProblem{
          name, rule.source.line, body.id,
          cedar::ToText(*lost) + " is not in this policy: the rule would not mean what it says",
          "ringfence policy compile --entities shows what is there"});
      return false;
    }
    body.id = name + "#" + body.id;
    std::erase_if(body.annotations, [](const cedar::Annotation& annotation) {
      return annotation.name == "id" || annotation.name == "source";
    });
    body.annotations.insert(body.annotations.begin(),
                            {{"id", body.id}, {"source", Where(rule.source)}});
    const Status added = set_.AddPolicy(std::make_shared<const PolicyBody>(std::move(body)));
    if (!added.has_value()) {
      problems_.Add(
          YamlProblem{name, rule.source.line, {}, added.error().message, added.error().hint});
      return false;
    }
    rules.push_back(rule);
    return true;
  }

  const RulebookParts& parts_;
  wire::YamlProblems& problems_;
  std::shared_ptr<cedar::ExprArena> arena_;
  cedar::PolicySet set_;
  std::vector<cedar::Entity> entities_;
  std::unordered_map<std::string_view, std::size_t> principals_;   // where in entities_
  std::unordered_map<std::string, cedar::ParsedExpr> conditions_;  // by their text
  std::set<std::string> declared_;                                 // "TYPE ID" of entities
};

}  // namespace

bool IsCedarFile(std::string_view name) { return name.ends_with(kCedarSuffix); }

EntityUid ActionUid(Action action) { return {"Action", std::string(Name(action))}; }
EntityUid TenantUid(const model::TenantPath& tenant) { return {"Tenant", tenant.text()}; }

std::unique_ptr<const Rulebook> Rulebook::Make(const RulebookParts& parts,
                                               wire::YamlProblems& problems) {
  Builder builder(parts, problems);
  if (!builder.Run()) {
    return nullptr;
  }
  std::unique_ptr<Rulebook> book(new Rulebook());
  book->engine_ = builder.MakeEngine();
  book->rules_ = std::move(builder.rules);
  book->warnings_ = std::move(builder.warnings);
  return book;
}

std::string Rulebook::Text() const {
  std::string text;
  for (const cedar::Policy& policy : engine_->policies()) {
    text += (text.empty() ? "" : "\n") + cedar::ToText(*policy.body);
  }
  return text;
}

EntityUid Rulebook::PrincipalUid(std::string_view name) const {
  EntityUid service{"Service", std::string(name)};
  return engine_->store().entities().Find(service) != nullptr
             ? std::move(service)
             : EntityUid{"User", std::string(name)};
}

}  // namespace ringfence::policy
