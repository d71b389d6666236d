#include "cedar/ast.h"

#include <algorithm>

#include "cedar/limits.h"

namespace ringfence::cedar {

std::string_view Name(Var var) {
  switch (var) {
    case Var::kPrincipal:
      return "principal";
    case Var::kAction:
      return "action";
    case Var::kResource:
      return "resource";
    case Var::kContext:
      return "context";
  }
  return "";
}

std::string_view Name(Slot slot) { return slot == Slot::kPrincipal ? "?principal" : "?resource"; }

bool SameExpr(const Expr& a, const Expr& b) {
  return a.op == b.op && a.var == b.var && a.slot == b.slot && a.text == b.text &&
         a.value == b.value && a.pattern == b.pattern && a.keys == b.keys &&
         std::equal(a.args.begin(), a.args.end(), b.args.begin(), b.args.end(),
                    [](const Expr* x, const Expr* y) { return SameExpr(*x, *y); });
}

const Expr* ExprArena::Add(Expr expr) {
  for (const Expr* arg : expr.args) {
    expr.depth = std::max(expr.depth, arg->depth + 1);
  }
  if (expr.depth > kExprDepthMax) {
    return nullptr;
  }
  return &exprs_.emplace_back(std::move(expr));
}

const Expr* ExprArena::Literal(Value value, std::size_t offset) {
  Expr expr;
  expr.value = std::move(value);
  expr.offset = offset;
  return Add(std::move(expr));
}

const Expr* ExprArena::Make(Op op, std::vector<const Expr*> args, std::size_t offset,
                            std::string text) {
  Expr expr;
  expr.op = op;
  expr.args = std::move(args);
  expr.offset = offset;
  expr.text = std::move(text);
  return Add(std::move(expr));
}

const std::string* PolicyBody::annotation(std::string_view name) const {
  for (const Annotation& annotation : annotations) {
    if (annotation.name == name) {
      return &annotation.value;
    }
  }
  return nullptr;
}

namespace {

const Expr* ScopeExpr(ExprArena& arena, Var var, const ScopeClause& clause, std::size_t offset) {
  using Kind = ScopeClause::Kind;
  if (clause.kind == Kind::kAny) {
    return arena.Literal(Value::Bool(true), offset);
  }
  Expr variable;
  variable.op = Op::kVar;
  variable.var = var;
  variable.offset = offset;
  const Expr* subject = arena.Add(variable);
  const Expr* object = nullptr;
  if (clause.slot) {
    Expr slot;
    slot.op = Op::kSlot;
    slot.slot = var == Var::kPrincipal ? Slot::kPrincipal : Slot::kResource;
    slot.offset = offset;
    object = arena.Add(slot);
  } else {
    object = arena.Literal(Value::Entity(clause.entity), offset);
  }
  switch (clause.kind) {
    case Kind::kAny:
      break;
    case Kind::kEqual:
      return arena.Make(Op::kEqual, {subject, object}, offset);
    case Kind::kIn:
      return arena.Make(Op::kIn, {subject, object}, offset);
    case Kind::kIs:
      return arena.Make(Op::kIs, {subject}, offset, clause.type);
    case Kind::kIsIn:
      return arena.Make(Op::kIs, {subject, object}, offset, clause.type);
  }
  return nullptr;
}

const Expr* ActionExpr(ExprArena& arena, const ActionClause& clause, std::size_t offset) {
  using Kind = ActionClause::Kind;
  if (clause.kind == Kind::kAny) {
    return arena.Literal(Value::Bool(true), offset);
  }
  Expr variable;
  variable.op = Op::kVar;
  variable.var = Var::kAction;
  variable.offset = offset;
  const Expr* subject = arena.Add(variable);
  std::vector<const Expr*> literals;
  for (const EntityUid& action : clause.actions) {
    literals.push_back(arena.Literal(Value::Entity(action), offset));
  }
  if (clause.kind == Kind::kEqual) {
    return arena.Make(Op::kEqual, {subject, literals.front()}, offset);
  }
  const Expr* object = clause.kind == Kind::kInList
                           ? arena.Make(Op::kSet, std::move(literals), offset)
                           : literals.front();
  return arena.Make(Op::kIn, {subject, object}, offset);
}

}  // namespace

bool Finish(PolicyBody& body) {
  ExprArena& arena = *body.arena;
  const Expr* all = nullptr;
  for (const Condition& condition : body.conditions) {
    const Expr* part = condition.when
                           ? condition.body
                           : arena.Make(Op::kNot, {condition.body}, condition.body->offset);
    all =
        all == nullptr || part == nullptr ? part : arena.Make(Op::kAnd, {all, part}, part->offset);
    if (all == nullptr) {
      return false;
    }
  }
  if (all == nullptr) {
    all = arena.Literal(Value::Bool(true), body.begin);
  }
  const Expr* scope = arena.Make(Op::kAnd,
                                 {ScopeExpr(arena, Var::kPrincipal, body.principal, body.begin),
                                  ActionExpr(arena, body.action, body.begin)},
                                 body.begin);
  scope = arena.Make(Op::kAnd, {scope, ScopeExpr(arena, Var::kResource, body.resource, body.begin)},
                     body.begin);
  body.condition = arena.Make(Op::kAnd, {scope, all}, body.begin);
  return body.condition != nullptr;
}

Status PolicySet::Claim(const std::string& id) {
  if (ids_.contains(id)) {
    return Error{Code::kConflict, "two policies have the id " + Quoted(id),
                 "give one of them another @id", id};
  }
  if (ids_.size() >= kPoliciesMax) {
    return Error{Code::kExhausted, "more than " + std::to_string(kPoliciesMax) + " policies"};
  }
  return {};
}

Status PolicySet::AddPolicy(std::shared_ptr<const PolicyBody> body) {
  RINGFENCE_TRY(Claim(body->id));
  ids_.emplace(body->id, policies_.size());
  policies_.push_back({body->id, body, {}});
  return {};
}

Status PolicySet::AddTemplate(std::shared_ptr<const PolicyBody> body) {
  RINGFENCE_TRY(Claim(body->id));
  ids_.emplace(body->id, templates_.size());
  templates_.push_back(std::move(body));
  return {};
}

Status PolicySet::Link(std::string_view template_id, std::string id, SlotValues slots) {
  const auto found = std::find_if(templates_.begin(), templates_.end(),
                                  [&](const auto& body) { return body->id == template_id; });
  if (found == templates_.end()) {
    return Error{Code::kNotFound, "no template has the id " + Quoted(template_id)};
  }
  for (const auto& [slot, needed] : {std::pair{Slot::kPrincipal, (*found)->principal.slot},
                                     std::pair{Slot::kResource, (*found)->resource.slot}}) {
    if (needed != slots.contains(slot)) {
      return Error{Code::kInvalidArgument,
                   "link " + Quoted(id) + ": " + std::string(Name(slot)) +
                       (needed ? " needs a value" : " is not in the template")};
    }
  }
  RINGFENCE_TRY(Claim(id));
  ids_.emplace(id, policies_.size());
  policies_.push_back({std::move(id), *found, std::move(slots)});
  return {};
}

const Policy* PolicySet::Find(std::string_view id) const {
  const auto found = ids_.find(id);
  return found != ids_.end() && found->second < policies_.size() &&
                 policies_[found->second].id == id
             ? &policies_[found->second]
             : nullptr;
}

const PolicyBody* PolicySet::FindTemplate(std::string_view id) const {
  const auto found = ids_.find(id);
  return found != ids_.end() && found->second < templates_.size() &&
                 templates_[found->second]->id == id
             ? templates_[found->second].get()
             : nullptr;
}

}  // namespace ringfence::cedar
