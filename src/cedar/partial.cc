#include "cedar/partial.h"

#include <algorithm>
#include <array>

namespace ringfence::cedar {
namespace {

using Kind = Residual::Kind;

// Whatever its arguments are, it gives true or false, or fails.
bool GivesBool(const Expr& expr) {
  constexpr std::array kOps = {
      Op::kAnd,          Op::kOr,          Op::kNot,         Op::kEqual,        Op::kNotEqual,
      Op::kLess,         Op::kLessEqual,   Op::kGreater,     Op::kGreaterEqual, Op::kIn,
      Op::kContains,     Op::kContainsAll, Op::kContainsAny, Op::kIsEmpty,      Op::kHasTag,
      Op::kHasAttribute, Op::kHasPath,     Op::kLike,        Op::kIs,
  };
  return std::find(kOps.begin(), kOps.end(), expr.op) != kOps.end() ||
         (expr.op == Op::kLiteral && expr.value.is(Value::Kind::kBool));
}

bool IsContext(const Expr& expr) { return expr.op == Op::kVar && expr.var == Var::kContext; }

// No context makes it true.
bool NeverTrue(const Expr& expr) {
  if (expr.op == Op::kLiteral) {
    return !expr.value.is(Value::Kind::kBool) || !expr.value.boolean();
  }
  if (expr.op == Op::kAnd) {
    return NeverTrue(*expr.args[0]) || NeverTrue(*expr.args[1]);
  }
  if (expr.op == Op::kOr) {
    return NeverTrue(*expr.args[0]) && NeverTrue(*expr.args[1]);
  }
  return expr.op == Op::kIf && NeverTrue(*expr.args[1]) && NeverTrue(*expr.args[2]);
}

class Partial {
 public:
  Partial(const Request& request, const Entities& entities, ExprArena& arena)
      : request_(request), entities_(entities), arena_(arena) {}

  Residual Of(const Expr& expr) {
    if (!Mentions(expr, Var::kContext)) {
      return Now(expr);
    }
    if (expr.op == Op::kAnd || expr.op == Op::kOr) {
      return Logical(expr);
    }
    if (expr.op == Op::kIf) {
      return If(expr);
    }
    const bool member = expr.op == Op::kGetAttribute || expr.op == Op::kHasAttribute;
    if ((member || expr.op == Op::kHasPath) && IsContext(*expr.args[0])) {
      const std::string& name = member ? expr.text : expr.keys.front();
      return request_.context.record().contains(name) ? Now(expr) : Open(&expr);
    }
    return IsContext(expr) ? Open(&expr) : Strict(expr);
  }

 private:
  static Residual Open(const Expr* expr) {
    return expr == nullptr ? Residual() : Residual{Kind::kOpen, {}, expr};
  }
  static Residual Known(Value value) { return {Kind::kValue, std::move(value), nullptr}; }
  static bool IsBool(const Residual& residual) {
    return residual.kind == Kind::kValue && residual.value.is(Value::Kind::kBool);
  }

  Residual Now(const Expr& expr) const {
    auto value = Evaluate(expr, request_, entities_);
    return value.has_value() ? Known(std::move(value).value()) : Residual();
  }

  // The residual as a part of an open expression; one that fails stays as it was, and fails again.
  const Expr* Part(const Residual& residual, const Expr& original) {
    if (residual.kind == Kind::kValue) {
      return arena_.Literal(residual.value, original.offset);
    }
    return residual.kind == Kind::kOpen ? residual.expr : &original;
  }

  Residual Logical(const Expr& expr) {
    const bool is_and = expr.op == Op::kAnd;
    const Residual left = Of(*expr.args[0]);
    if (left.kind == Kind::kError || (left.kind == Kind::kValue && !IsBool(left))) {
      return {};
    }
    if (IsBool(left) && left.value.boolean() != is_and) {
      return left;  // decided without the right side
    }
    const Residual right = Of(*expr.args[1]);
    if (IsBool(left)) {
      if (right.kind == Kind::kOpen && !GivesBool(*right.expr)) {
        return Open(arena_.Make(expr.op, {Part(left, *expr.args[0]), right.expr}, expr.offset));
      }
      return right.kind == Kind::kValue && !IsBool(right) ? Residual() : right;
    }
    if (IsBool(right) && right.value.boolean() == is_and && GivesBool(*left.expr)) {
      return left;  // `x && true` is x
    }
    return Open(arena_.Make(expr.op, {left.expr, Part(right, *expr.args[1])}, expr.offset));
  }

  Residual If(const Expr& expr) {
    const Residual test = Of(*expr.args[0]);
    if (test.kind != Kind::kOpen) {
      return IsBool(test) ? Of(*expr.args[test.value.boolean() ? 1 : 2]) : Residual();
    }
    const Residual yes = Of(*expr.args[1]);
    const Residual no = Of(*expr.args[2]);
    return Open(arena_.Make(Op::kIf, {test.expr, Part(yes, *expr.args[1]), Part(no, *expr.args[2])},
                            expr.offset));
  }

  // All others need every argument.
  Residual Strict(const Expr& expr) {
    Expr made = expr;
    bool open = false;
    for (std::size_t i = 0; i < expr.args.size(); ++i) {
      const Residual argument = Of(*expr.args[i]);
      if (argument.kind == Kind::kError) {
        return {};
      }
      open = open || argument.kind == Kind::kOpen;
      made.args[i] = Part(argument, *expr.args[i]);
    }
    made.depth = 1;
    const Expr* const kept = arena_.Add(std::move(made));
    return open || kept == nullptr ? Open(kept) : Now(*kept);
  }

  const Request& request_;
  const Entities& entities_;
  ExprArena& arena_;
};

// What the conditions of a policy come to; its scope holds.
Residual OfConditions(const PolicyBody& body, Partial& partial, ExprArena& arena) {
  Residual all{Kind::kValue, Value::Bool(true), nullptr};
  for (const Condition& condition : body.conditions) {
    const Expr* part = condition.when ? condition.body : arena.Make(Op::kNot, {condition.body});
    const Residual next = part == nullptr ? Residual() : partial.Of(*part);
    const bool certain = next.kind == Kind::kValue && next.value.is(Value::Kind::kBool);
    if (next.kind == Kind::kError || (next.kind == Kind::kValue && !certain)) {
      return {};
    }
    if (certain && !next.value.boolean()) {
      return next;  // whether or not an earlier part fails, the policy does not apply
    }
    if (certain) {
      continue;
    }
    all = all.kind == Kind::kOpen
              ? Residual{Kind::kOpen, {}, arena.Make(Op::kAnd, {all.expr, next.expr})}
              : next;
    if (all.expr == nullptr) {
      return {};
    }
  }
  return all;
}

}  // namespace

bool Mentions(const Expr& expr, Var var) {
  return (expr.op == Op::kVar && expr.var == var) ||
         std::any_of(expr.args.begin(), expr.args.end(),
                     [&](const Expr* argument) { return Mentions(*argument, var); });
}

Residual EvaluatePartially(const Expr& expr, const Request& request, const Entities& entities,
                           ExprArena& arena) {
  return Partial(request, entities, arena).Of(expr);
}

Outlooks::Outlooks(const Engine& engine, ValueRecord known)
    : engine_(engine), kept_(engine.policies().size()) {
  request_.context = Value::Record(std::move(known));
  asks_context_.reserve(kept_.size());
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const Policy& policy = engine.policies()[i];
    const Expr& condition = *policy.body->condition;
    asks_context_.push_back(Mentions(condition, Var::kContext));
    kept_[i].fixed = std::none_of(
        policy.body->conditions.begin(), policy.body->conditions.end(), [](const Condition& one) {
          return Mentions(*one.body, Var::kPrincipal) || Mentions(*one.body, Var::kAction) ||
                 Mentions(*one.body, Var::kResource);
        });
  }
}

Residual Outlooks::ResidualOf(std::uint32_t policy) {
  Kept& kept = kept_[policy];
  if (!kept.fixed || !kept.residual.has_value()) {
    Partial partial(request_, engine_.store().entities(), arena_);
    kept.residual = OfConditions(*engine_.policies()[policy].body, partial, arena_);
  }
  return *kept.residual;
}

Outlook Outlooks::At(const EntityUid& principal, const EntityUid& action,
                     const EntityUid& resource) {
  request_.principal = principal;
  request_.action = action;
  request_.resource = resource;
  const Engine::Prospect found = engine_.Foresee(request_, asks_context_, scratch_);
  Outlook out;
  bool permitted = !found.permits.empty();
  bool forbidden = !found.forbids.empty();
  for (std::size_t i = 0; i < found.open.size() && !forbidden; ++i) {
    const std::uint32_t policy = found.open[i];
    const Residual residual = ResidualOf(policy);
    const bool permit = engine_.policies()[policy].body->effect == Effect::kPermit;
    const bool certain = residual.kind == Kind::kValue && residual.value.boolean();
    if (residual.kind == Kind::kOpen && !NeverTrue(*residual.expr)) {
      (permit ? out.permits : out.forbids).push_back({policy, residual.expr});
    } else if (certain && permit) {
      permitted = true;
      out.permits.push_back({policy, nullptr});
    } else if (certain) {
      forbidden = true;
    }
  }
  if (forbidden || (!permitted && out.permits.empty())) {
    return {};
  }
  for (const std::uint32_t policy : found.permits) {
    out.permits.push_back({policy, nullptr});
  }
  const bool always = permitted && out.forbids.empty();
  if (always) {
    std::erase_if(out.permits, [](const OpenRule& rule) { return rule.condition != nullptr; });
  }
  out.answer = always ? Outlook::Answer::kYes : Outlook::Answer::kIf;
  return out;
}

}  // namespace ringfence::cedar
