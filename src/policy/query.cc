#include "policy/query.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/closest.h"
#include "cedar/extension.h"
#include "cedar/print.h"
#include "cedar/types.h"
#include "model/isolation.h"
#include "policy/roles.h"
#include "policy/rulebook.h"

namespace ringfence::policy {
namespace {

using cedar::EntityUid;
using cedar::Expr;
using cedar::PolicyBody;
using cedar::ScopeClause;
using cedar::Type;
using cedar::Value;
using cedar::ValueRecord;

constexpr std::array<std::string_view, 7> kWeekdays = {"sun", "mon", "tue", "wed",
                                                       "thu", "fri", "sat"};
constexpr std::array<std::string_view, 2> kMfaKinds = {"totp", "webauthn"};

// Every action has the same context.
const Type& ContextType() { return *CedarSchema().actions.begin()->second.context; }

const Type* MemberOf(const Type* type, std::string_view name) {
  if (type == nullptr || type->kind != Type::Kind::kRecord) {
    return nullptr;
  }
  const auto found = type->attributes.find(name);
  return found == type->attributes.end() ? nullptr : found->second.type.get();
}

Error BadContext(std::string_view assignment, std::string what, std::string hint) {
  return Error{Code::kInvalidArgument,
               "context \"" + std::string(assignment) + "\": " + std::move(what), std::move(hint),
               "context"};
}

Error BadMember(std::string_view member, std::string what, std::string hint) {
  return Error{Code::kInvalidArgument, "context: " + std::string(member) + " " + std::move(what),
               std::move(hint), "context"};
}

// What is there must be whole: a second factor has both its age and its kind.
Status CheckWhole(const ValueRecord& context) {
  for (const auto& [name, value] : context) {
    const Type* const type = MemberOf(&ContextType(), name);
    if (type == nullptr || cedar::HasType(value, *type)) {
      continue;
    }
    std::string members;
    for (const auto& [member, attribute] : type->attributes) {
      members += (members.empty() ? "" : ", ") + name + "." + member;
    }
    return BadMember(name, "is not whole", "give " + members + " together");
  }
  return {};
}

Status CheckWord(std::string_view member, const Value& value, const auto& known) {
  std::string all;
  for (const std::string_view one : known) {
    if (value.string() == one) {
      return {};
    }
    all += (all.empty() ? "" : ", ") + std::string(one);
  }
  return BadMember(member, "\"" + value.string() + "\" is none of " + all, "write one of them");
}

// What no request can have would be answered for nothing. `context` is whole.
Status CheckPossible(const ValueRecord& context) {
  const auto find = [&](std::string_view name) {
    const auto found = context.find(name);
    return found == context.end() ? nullptr : &found->second;
  };
  if (const Value* const day = find("weekday")) {
    RINGFENCE_TRY(CheckWord("weekday", *day, kWeekdays));
  }
  if (const Value* const mfa = find("mfa")) {
    RINGFENCE_TRY(CheckWord("mfa.kind", mfa->record().at("kind"), kMfaKinds));
    if (mfa->record().at("age").extension().number < 0) {
      return BadMember("mfa.age", "is less than nothing", "write how long ago it was, as 10m");
    }
  }
  if (const Value* const name = find("class")) {
    const auto known = model::ParseIsolationClass(name->string());
    if (!known.has_value()) {
      return BadMember("class", "\"" + name->string() + "\" is no isolation class",
                       known.error().hint);
    }
  }
  if (const Value* const network = find("network")) {
    const cedar::IpRange& ip = network->extension().ip;
    if (ip.prefix != (ip.v6 ? 128 : 32)) {
      return BadMember("network", "is a network, and a request comes from one address",
                       "write an address, as 10.0.0.7");
    }
  }
  return {};
}

Result<Value> ReadValue(std::string_view assignment, std::string_view text, const Type& type) {
  const bool yes = text == "true";
  if (type.is_bool() && (yes || text == "false")) {
    return Value::Bool(yes);
  }
  if (type.kind == Type::Kind::kString) {
    return Value::String(std::string(text));
  }
  if (type.kind == Type::Kind::kExtension) {
    auto value = cedar::ParseExtension(type.extension, text);
    if (value.has_value()) {
      return Value::Extended(*value);
    }
    return BadContext(assignment, value.error().message, value.error().hint);
  }
  return BadContext(assignment, "is no " + cedar::ToText(type),
                    type.is_bool() ? "write true or false" : "name one of its members, as mfa.age");
}

bool Holds(const ScopeClause& clause, const EntityUid& entity, const cedar::Entities& entities) {
  using Kind = ScopeClause::Kind;
  const bool in = clause.entity == entity || entities.IsAncestor(clause.entity, entity);
  const bool is = clause.type == entity.type;
  return clause.kind == Kind::kAny || (clause.kind == Kind::kEqual && clause.entity == entity) ||
         (clause.kind == Kind::kIn && in) || (clause.kind == Kind::kIs && is) ||
         (clause.kind == Kind::kIsIn && is && in);
}

// The parts that all must hold, in order.
void Conjuncts(const Expr& expr, std::vector<const Expr*>& parts) {
  if (expr.op == cedar::Op::kAnd) {
    Conjuncts(*expr.args[0], parts);
    Conjuncts(*expr.args[1], parts);
  } else {
    parts.push_back(&expr);
  }
}

class NearestFinder {
 public:
  NearestFinder(const Policy& policy, const cedar::Request& request, const Query& query)
      : policy_(policy),
        entities_(policy.rulebook().engine().store().entities()),
        request_(request),
        query_(query) {}

  void Find(Explanation& explanation) {
    const auto& policies = policy_.rulebook().engine().policies();
    for (std::size_t i = 0; i < policies.size(); ++i) {
      if (policies[i].body->effect == cedar::Effect::kPermit && ActionHolds(*policies[i].body)) {
        Consider(i, *policies[i].body);
      }
    }
    if (best_.has_value()) {
      explanation.nearest = InWords(policy_, best_rule_, query_.principal);
      explanation.missing = std::move(missing_);
    }
  }

 private:
  // Lacking, how far the tenant is, how much the role would allow.
  using Distance = std::tuple<std::size_t, std::size_t, std::size_t>;

  bool ActionHolds(const PolicyBody& body) const {
    using Kind = cedar::ActionClause::Kind;
    return body.action.kind == Kind::kAny ||
           std::find(body.action.actions.begin(), body.action.actions.end(), request_.action) !=
               body.action.actions.end();
  }

  void Consider(std::size_t index, const PolicyBody& body) {
    const Rule& rule = policy_.rulebook().rules()[index];
    std::vector<std::string> missing;
    std::size_t lacking = 0;
    const bool principal = Holds(body.principal, request_.principal, entities_);
    const bool resource = Holds(body.resource, request_.resource, entities_);
    if (!principal && !rule.binding.empty()) {
      return;  // somebody else's condition says nothing
    }
    if (!principal) {
      lacking += 3;
      missing.push_back(rule.role.empty()
                            ? query_.principal + " is not whom the rule is for"
                            : query_.principal + " does not hold the role " + rule.role +
                                  (rule.tenant ? " at " + rule.tenant->text() : std::string()));
    }
    if (!resource) {
      lacking += 2;
      missing.push_back("the rule is about " + cedar::ToText(body.resource.entity) + ", not " +
                        cedar::ToText(request_.resource));
    }
    for (const cedar::Condition& condition : body.conditions) {
      std::vector<const Expr*> parts = {condition.body};
      if (condition.when) {
        parts.clear();
        Conjuncts(*condition.body, parts);
      }
      for (const Expr* part : parts) {
        const auto value = cedar::Evaluate(*part, request_, entities_);
        const bool held = value.has_value() && value->is(Value::Kind::kBool) &&
                          value->boolean() == condition.when;
        if (!held) {
          ++lacking;
          missing.push_back((condition.when ? "must hold: " : "must not hold: ") +
                            cedar::ToText(*part) +
                            (value.has_value() ? "" : " (" + value.error().message + ")"));
        }
      }
    }
    const Distance distance(lacking, Apart(rule), RoleSize(rule));
    if (lacking > 0 && (!best_.has_value() || distance < *best_)) {
      best_ = distance;
      best_rule_ = index;
      missing_ = std::move(missing);
    }
  }

  std::size_t Apart(const Rule& rule) const {
    std::size_t levels = 0;
    if (rule.tenant.has_value()) {
      for (auto at = query_.tenant; !at.Contains(*rule.tenant) && !at.is_root(); at = at.parent()) {
        ++levels;
      }
      for (auto at = *rule.tenant; !at.Contains(query_.tenant) && !at.is_root(); at = at.parent()) {
        ++levels;
      }
    }
    return levels;
  }

  std::size_t RoleSize(const Rule& rule) {
    if (roles_.empty()) {
      roles_ = policy_.roles();
    }
    const auto found = std::find_if(roles_.begin(), roles_.end(),
                                    [&](const Role& role) { return role.name == rule.role; });
    return found == roles_.end() ? 0 : found->allows.size();
  }

  const Policy& policy_;
  const cedar::Entities& entities_;
  const cedar::Request& request_;
  const Query& query_;
  std::vector<Role> roles_;
  std::optional<Distance> best_;
  std::size_t best_rule_ = 0;
  std::vector<std::string> missing_;
};

}  // namespace

ValueRecord ContextOf(const Circumstances& circumstances) {
  ValueRecord context;
  if (circumstances.now.has_value()) {
    const std::int64_t now = circumstances.now->time_since_epoch().count();
    context.emplace("now", Value::Extended({cedar::Extension::kDatetime, now}));
    const std::chrono::weekday day(std::chrono::floor<std::chrono::days>(*circumstances.now));
    context.emplace("weekday", Value::String(std::string(kWeekdays[day.c_encoding()])));
  }
  if (!circumstances.network.empty()) {
    auto ip = cedar::ParseExtension(cedar::Extension::kIp, circumstances.network);
    if (ip.has_value()) {
      context.emplace("network", Value::Extended(*ip));
    }
  }
  return context;
}

Status AddContext(std::string_view assignment, ValueRecord& context) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    return BadContext(assignment, "has no \"=\"", "write it as class=mig or mfa.age=10m");
  }
  const std::string_view key = assignment.substr(0, equals);
  const std::size_t dot = key.find('.');
  const std::string outer(key.substr(0, dot));
  const Type* type = MemberOf(&ContextType(), outer);
  if (dot != std::string_view::npos) {
    type = MemberOf(type, key.substr(dot + 1));
  }
  if (type == nullptr) {
    std::vector<std::string_view> names;
    for (const auto& [name, attribute] : ContextType().attributes) {
      names.push_back(name);
    }
    const auto closest = Closest(outer, names);
    return BadContext(assignment, "no rule can ask for \"" + std::string(key) + "\"",
                      closest.has_value() && *closest != outer
                          ? "did you mean " + *closest + "?"
                          : "ringfence policy compile --schema shows what there is");
  }
  RINGFENCE_ASSIGN(Value value, ReadValue(assignment, assignment.substr(equals + 1), *type));
  if (dot == std::string_view::npos) {
    context.insert_or_assign(outer, std::move(value));
    return {};
  }
  const auto found = context.find(outer);
  ValueRecord members = found == context.end() ? ValueRecord() : found->second.record();
  members.insert_or_assign(std::string(key.substr(dot + 1)), std::move(value));
  context.insert_or_assign(outer, Value::Record(std::move(members)));
  return {};
}

Result<Timestamp> ParseTimeOrDay(std::string_view text) {
  constexpr std::size_t kDaySize = 10;
  const bool day = text.size() == kDaySize;
  auto time = ParseTime(std::string(text) + (day ? "T00:00:00Z" : ""));
  if (!time.has_value()) {
    return Error{Code::kInvalidArgument, "not a time: \"" + std::string(text.substr(0, 40)) + "\"",
                 "write it in UTC, as 2026-11-15T08:46:30Z or 2026-11-15"};
  }
  return time;
}

Result<ValueRecord> ReadContext(const std::vector<std::string>& assignments,
                                const WhenAsked& when) {
  ValueRecord said;
  for (const std::string& assignment : assignments) {
    RINGFENCE_TRY(AddContext(assignment, said));
  }
  RINGFENCE_TRY(CheckWhole(said));
  RINGFENCE_TRY(CheckPossible(said));
  std::optional<Timestamp> time = when.at;
  if (const auto now = said.find("now"); now != said.end()) {
    const Timestamp told{Milliseconds(now->second.extension().number)};
    if (time.has_value() && *time != told) {
      return BadMember("now", "is not the time that was said: " + FormatTime(*time),
                       "say the time once");
    }
    time = told;
  }
  const auto weekday = said.find("weekday");
  if (!time.has_value() && when.usual.has_value()) {
    if (weekday != said.end()) {
      return BadMember("weekday", "follows from the time, and none was said",
                       "say the time: --at, or at: of a case");
    }
    time = when.usual;
  }
  ValueRecord context = ContextOf({.now = time});
  if (weekday != said.end() && time.has_value() && weekday->second != context.at("weekday")) {
    return BadMember("weekday",
                     "\"" + weekday->second.string() + "\" is not the day of " + FormatTime(*time),
                     "leave it out: it follows from the time");
  }
  for (auto& [name, value] : said) {
    context.insert_or_assign(name, std::move(value));
  }
  return context;
}

Status CheckPrincipal(const Policy& policy, std::string_view name) {
  if (policy.FindPrincipal(name) != nullptr) {
    return {};
  }
  const auto principals = policy.principals();
  std::vector<std::string_view> names;
  names.reserve(principals.size());
  for (const Principal& one : principals) {
    names.push_back(one.name);
  }
  const auto closest = Closest(name, names);
  return Error{Code::kNotFound, "the policy declares no principal " + std::string(name),
               closest.has_value() ? "did you mean " + *closest + "?" : "", "principal"};
}

Result<Action> FindAction(std::string_view label) {
  if (const auto action = ParseAction(label)) {
    return *action;
  }
  std::vector<std::string_view> labels;
  for (const Action known : AllActions()) {
    labels.push_back(Name(known));
  }
  const auto closest = Closest(label, labels);
  return Error{
      Code::kInvalidArgument, "there is no action \"" + std::string(label) + "\"",
      closest.has_value() ? "did you mean " + *closest + "?" : "docs/permissions.md lists them",
      "action"};
}

Result<model::TenantPath> FindResource(const Policy& policy, std::string_view text) {
  if (text == "/") {
    return model::TenantPath::Root();
  }
  RINGFENCE_ASSIGN(model::TenantPath path, model::TenantPath::Create(text));
  if (policy.FindTenant(path) == nullptr) {
    const auto closest = policy.ClosestTenant(text);
    return Error{Code::kNotFound, "the policy declares no tenant " + std::string(text),
                 closest.has_value() ? "did you mean " + *closest + "?" : "/ is the cluster",
                 "tenant"};
  }
  return path;
}

cedar::Request RequestOf(const Policy& policy, const Query& query, const ValueRecord& context) {
  model::TenantPath at =
      ScopeOf(query.action) == ActionScope::kTenant ? query.tenant : model::TenantPath::Root();
  while (!at.is_root() && policy.FindTenant(at) == nullptr) {
    at = at.parent();
  }
  return {policy.rulebook().PrincipalUid(query.principal), ActionUid(query.action), TenantUid(at),
          Value::Record(context)};
}

RuleInWords InWords(const Policy& policy, std::size_t rule, std::string_view principal) {
  const Rulebook& book = policy.rulebook();
  const Rule& facts = book.rules()[rule];
  const PolicyBody& body = *book.engine().policies()[rule].body;
  RuleInWords words{body.id, facts.source.file + ":" + std::to_string(facts.source.line), {}};
  if (facts.role.empty()) {
    const std::string* const described = body.annotation("description");
    words.words = body.effect == cedar::Effect::kPermit ? "permit" : "forbid";
    words.words += described == nullptr ? " " + body.id : ": " + *described;
    return words;
  }
  words.words =
      "role " + facts.role + (facts.tenant ? " at " + facts.tenant->text() : std::string());
  if (!facts.binding.empty()) {
    words.words += " under the condition of " + facts.binding;
    return words;
  }
  for (const Binding* const binding : policy.BindingsOf(principal)) {
    if (binding->role == facts.role && (!facts.tenant || binding->tenant == *facts.tenant)) {
      words.where = binding->source.file + ":" + std::to_string(binding->source.line);
      break;
    }
  }
  return words;
}

Explanation Explain(const Policy& policy, const Query& query, const ValueRecord& context) {
  const Decision decision = policy.DecideIn(query, context);
  Explanation explanation{decision.allowed, decision.reason, {}, {}, {}, {}};
  if (policy.FindPrincipal(query.principal) == nullptr) {
    return explanation;
  }
  const cedar::Engine& engine = policy.rulebook().engine();
  const cedar::Request request = RequestOf(policy, query, context);
  cedar::Engine::Scratch scratch;
  const cedar::Engine::Outcome outcome = engine.Decide(request, scratch);
  for (const std::uint32_t rule : outcome.reasons) {
    explanation.rules.push_back(InWords(policy, rule, query.principal));
  }
  const bool by_default = !decision.allowed && outcome.reasons.empty();
  for (const cedar::PolicyError& error : engine.Answer(request, scratch).errors) {
    explanation.errors.push_back(error.policy + ": " + error.message);
  }
  if (by_default) {
    NearestFinder(policy, request, query).Find(explanation);
  }
  return explanation;
}

}  // namespace ringfence::policy
