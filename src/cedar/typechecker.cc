#include "cedar/typechecker.h"

#include <algorithm>

#include "cedar/extension.h"

namespace ringfence::cedar {
namespace {

using Kind = Type::Kind;

std::set<std::string> Union(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::set<std::string> out = a;
  out.insert(b.begin(), b.end());
  return out;
}

std::set<std::string> Intersection(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::set<std::string> out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(out, out.end()));
  return out;
}

// Width does not matter where only "a record" or "an entity" is asked for.
bool Meets(const Type& actual, const Type& expected) {
  if (actual.kind == Kind::kNever) {
    return true;
  }
  if (expected.kind == Kind::kRecord) {
    return actual.kind == Kind::kRecord;
  }
  return IsSubtype(actual, expected, ValidationMode::kPermissive);
}

TypePtr AnyEntity() { return Type::Simple(Kind::kAnyEntity); }
TypePtr AnySet() { return Type::Simple(Kind::kSet); }
TypePtr Bool() { return Type::Simple(Kind::kBool); }

}  // namespace

std::string ExprKey(const Expr& expr) {
  std::string out = std::to_string(static_cast<int>(expr.op));
  if (expr.op == Op::kLiteral) {
    return out + "=" + ToText(expr.value);
  }
  if (expr.op == Op::kVar) {
    return std::string(Name(expr.var));
  }
  if (expr.op == Op::kSlot) {
    return std::string(Name(expr.slot));
  }
  if (expr.op == Op::kLike) {
    out += ToText(expr.pattern);
  }
  if (expr.op == Op::kHasPath) {
    for (const std::string& name : expr.keys) {
      out += "." + name;
    }
    return out + '(' + ExprKey(*expr.args[0]) + ')';
  }
  out += Quoted(expr.text) + '(';
  for (std::size_t i = 0; i < expr.args.size(); ++i) {
    if (i < expr.keys.size()) {
      out += Quoted(expr.keys[i]) + ":";
    }
    out += ExprKey(*expr.args[i]) + ",";
  }
  return out + ')';
}

Typechecker::Answer Typechecker::Success(TypePtr type, Capabilities capabilities) {
  return {std::move(type), true, std::move(capabilities)};
}

Typechecker::Answer Typechecker::Failure(TypePtr type) { return {std::move(type), false, {}}; }

void Typechecker::Wrong(const Expr& expr, std::string message) {
  Finding finding{policy_, expr.offset, std::move(message)};
  if (std::find(errors_.begin(), errors_.end(), finding) == errors_.end()) {
    errors_.push_back(std::move(finding));
  }
}

bool Typechecker::AlwaysFalse(const Expr& condition) {
  const Answer answer = ExpectBool(condition, {});
  return answer.type != nullptr && answer.type->kind == Kind::kFalse;
}

Typechecker::Answer Typechecker::Check(const Expr& expr, const Capabilities& prior) {
  switch (expr.op) {
    case Op::kLiteral:
      return CheckLiteral(expr.value);
    case Op::kVar:
      return CheckVar(expr.var);
    case Op::kSlot:
      return CheckSlot(expr.slot);
    case Op::kIf:
      return CheckIf(expr, prior);
    case Op::kAnd:
      return CheckAnd(*expr.args[0], *expr.args[1], prior);
    case Op::kOr:
      return CheckOr(expr, prior);
    case Op::kNot:
      return CheckNot(ExpectBool(*expr.args[0], prior));
    case Op::kNegate:
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
      return CheckArithmetic(expr, prior);
    case Op::kEqual:
      return CheckEqual(expr, prior);
    case Op::kNotEqual:
      return CheckNot(CheckEqual(expr, prior));
    case Op::kLess:
    case Op::kLessEqual:
    case Op::kGreater:
    case Op::kGreaterEqual:
      return CheckCompare(expr, prior);
    case Op::kIn:
      return CheckIn(expr, prior);
    case Op::kIs:
      return CheckIs(expr, prior);
    case Op::kContains:
    case Op::kContainsAll:
    case Op::kContainsAny:
      return CheckContains(expr, prior);
    case Op::kGetTag:
    case Op::kHasTag:
      return CheckTag(expr, prior);
    case Op::kGetAttribute:
      return CheckGetAttribute(expr, prior);
    case Op::kHasAttribute:
      return CheckHasAttribute(expr, prior);
    case Op::kHasPath:
      return CheckHasPath(expr, prior);
    case Op::kSet:
      return CheckSet(expr, prior);
    case Op::kRecord:
      return CheckRecord(expr, prior);
    case Op::kCall:
      return CheckCall(expr, prior);
    case Op::kIsEmpty: {
      const Answer set = Expect(*expr.args[0], prior, {AnySet()});
      return {Bool(), set.ok, {}};
    }
    case Op::kLike: {
      const Answer text = Expect(*expr.args[0], prior, {Type::Simple(Kind::kString)});
      return {Bool(), text.ok, {}};
    }
  }
  return Failure(nullptr);
}

Typechecker::Answer Typechecker::Expect(const Expr& expr, const Capabilities& prior,
                                        const std::vector<TypePtr>& expected) {
  Answer answer = Check(expr, prior);
  if (answer.type == nullptr) {
    return Failure(nullptr);
  }
  for (const TypePtr& type : expected) {
    if (Meets(*answer.type, *type)) {
      return answer;
    }
  }
  Wrong(expr, "expected " +
                  (expected.front()->kind == Kind::kRecord ? std::string("a record")
                                                           : ToText(*expected.front())) +
                  (expected.size() > 1
                       ? " or " + (expected[1]->kind == Kind::kRecord ? std::string("a record")
                                                                      : ToText(*expected[1]))
                       : std::string()) +
                  ", not " + ToText(*answer.type));
  return Failure(nullptr);
}

Typechecker::Answer Typechecker::ExpectBool(const Expr& expr, const Capabilities& prior) {
  return Expect(expr, prior, {Bool()});
}

Typechecker::Answer Typechecker::CheckVar(Var var) const {
  switch (var) {
    case Var::kPrincipal:
      return Success(Type::Entity(env_.principal));
    case Var::kAction:
      return Success(Type::Entity(env_.action->uid.type));
    case Var::kResource:
      return Success(Type::Entity(env_.resource));
    case Var::kContext:
      return Success(env_.action->context);
  }
  return Failure(nullptr);
}

Typechecker::Answer Typechecker::CheckSlot(Slot slot) const {
  const auto& type = slot == Slot::kPrincipal ? env_.principal_slot : env_.resource_slot;
  return Success(type ? Type::Entity(*type) : AnyEntity());
}

Typechecker::Answer Typechecker::CheckLiteral(const Value& value) const {
  switch (value.kind()) {
    case Value::Kind::kBool:
      return Success(Type::Bool(value.boolean()));
    case Value::Kind::kLong:
      return Success(Type::Simple(Kind::kLong));
    case Value::Kind::kString:
      return Success(Type::Simple(Kind::kString));
    case Value::Kind::kEntity: {
      // An unknown type or action is reported by another pass.
      const EntityUid& uid = value.entity();
      const bool known = IsActionType(uid.type) ? schema_.FindAction(uid) != nullptr
                                                : schema_.Find(uid.type) != nullptr;
      return known ? Success(Type::Entity(uid.type)) : Failure(nullptr);
    }
    case Value::Kind::kSet:
    case Value::Kind::kRecord:
    case Value::Kind::kExtension:
      break;
  }
  return Failure(nullptr);
}

Typechecker::Answer Typechecker::CheckIf(const Expr& expr, const Capabilities& prior) {
  const Answer test = ExpectBool(*expr.args[0], prior);
  const Kind kind = test.type == nullptr ? Kind::kBool : test.type->kind;
  if (kind == Kind::kTrue) {
    Answer yes = Check(*expr.args[1], Union(prior, test.capabilities));
    yes.capabilities = Union(yes.capabilities, test.capabilities);
    yes.ok = yes.ok && test.ok;
    return yes;
  }
  if (kind == Kind::kFalse) {
    Answer no = Check(*expr.args[2], prior);
    no.ok = no.ok && test.ok;
    return no;
  }
  Answer yes = Check(*expr.args[1], Union(prior, test.capabilities));
  yes.capabilities = Union(yes.capabilities, test.capabilities);
  Answer no = Check(*expr.args[2], prior);
  if (yes.type == nullptr || no.type == nullptr) {
    return Failure(nullptr);
  }
  TypePtr both = LeastUpperBound(yes.type, no.type, mode_);
  if (both == nullptr) {
    Wrong(expr, "the branches of if have types that do not go together: " + ToText(*yes.type) +
                    " and " + ToText(*no.type));
    return Failure(nullptr);
  }
  return {std::move(both), test.ok && yes.ok && no.ok,
          Intersection(yes.capabilities, no.capabilities)};
}

Typechecker::Answer Typechecker::CheckAnd(const Expr& left_expr, const Expr& right_expr,
                                          const Capabilities& prior) {
  const Answer left = ExpectBool(left_expr, prior);
  if (left.type != nullptr && left.type->kind == Kind::kFalse) {
    return {left.type, left.ok, {}};
  }
  return CheckAndTypes(left, ExpectBool(right_expr, Union(prior, left.capabilities)));
}

Typechecker::Answer Typechecker::CheckAndTypes(const Answer& left, const Answer& right) const {
  const bool ok = left.ok && right.ok;
  if (left.type == nullptr || right.type == nullptr) {
    return Failure(Bool());
  }
  if (right.type->kind == Kind::kFalse) {
    return {right.type, ok, {}};
  }
  if (right.type->kind == Kind::kTrue) {
    return {left.type, ok, Union(left.capabilities, right.capabilities)};
  }
  if (left.type->kind == Kind::kTrue) {
    return {right.type, ok, right.capabilities};
  }
  return {Bool(), ok, Union(left.capabilities, right.capabilities)};
}

Typechecker::Answer Typechecker::CheckOr(const Expr& expr, const Capabilities& prior) {
  const Answer left = ExpectBool(*expr.args[0], prior);
  if (left.type != nullptr && left.type->kind == Kind::kTrue) {
    return left;
  }
  const Answer right = ExpectBool(*expr.args[1], prior);
  const bool ok = left.ok && right.ok;
  if (left.type == nullptr || right.type == nullptr) {
    return Failure(Bool());
  }
  if (right.type->kind == Kind::kTrue) {
    return {right.type, ok, right.capabilities};
  }
  if (right.type->kind == Kind::kFalse) {
    return {left.type, ok, left.capabilities};
  }
  if (left.type->kind == Kind::kFalse) {
    return {right.type, ok, right.capabilities};
  }
  return {Bool(), ok, Intersection(left.capabilities, right.capabilities)};
}

Typechecker::Answer Typechecker::CheckNot(Answer inner) const {
  if (inner.type == nullptr) {
    return Failure(Bool());
  }
  const Kind kind = inner.type->kind;
  return {kind == Kind::kTrue    ? Type::Bool(false)
          : kind == Kind::kFalse ? Type::Bool(true)
                                 : Bool(),
          inner.ok,
          {}};
}

Typechecker::Answer Typechecker::Strict(const Expr& expr, TypePtr result, const TypePtr& left,
                                        const TypePtr& right) {
  const bool decided = result->kind == Kind::kTrue || result->kind == Kind::kFalse;
  if (mode_ == ValidationMode::kStrict && !decided && left != nullptr && right != nullptr &&
      LeastUpperBound(left, right, mode_) == nullptr) {
    Wrong(expr, "the types do not go together: " + ToText(*left) + " and " + ToText(*right));
    return Failure(std::move(result));
  }
  return Success(std::move(result));
}

Typechecker::Answer Typechecker::CheckEqual(const Expr& expr, const Capabilities& prior) {
  const Answer left = Check(*expr.args[0], prior);
  const Answer right = Check(*expr.args[1], prior);
  TypePtr result = Bool();
  if (left.type != nullptr && right.type != nullptr && AreDisjoint(*left.type, *right.type)) {
    result = Type::Bool(false);
  } else {
    const auto literal = [&](const Expr& side) -> std::optional<Value> {
      if (side.op == Op::kLiteral) {
        return side.value;
      }
      return side.op == Op::kVar && side.var == Var::kAction
                 ? std::optional<Value>(Value::Entity(env_.action->uid))
                 : std::nullopt;
    };
    const auto a = literal(*expr.args[0]);
    const auto b = literal(*expr.args[1]);
    if (a && b) {
      result = Type::Bool(*a == *b);
    }
  }
  Answer out = Strict(expr, std::move(result), left.type, right.type);
  out.ok = out.ok && left.ok && right.ok;
  return out;
}

Typechecker::Answer Typechecker::CheckCompare(const Expr& expr, const Capabilities& prior) {
  const Answer left = Check(*expr.args[0], prior);
  const Answer right = Check(*expr.args[1], prior);
  if (left.type == nullptr || right.type == nullptr) {
    return Failure(Bool());
  }
  const auto comparable = [](const Type& type) {
    return type.kind == Kind::kLong || type.kind == Kind::kNever ||
           (type.kind == Kind::kExtension &&
            (type.extension == Extension::kDatetime || type.extension == Extension::kDuration));
  };
  const bool fits = comparable(*left.type) && comparable(*right.type) &&
                    (left.type->kind == Kind::kNever || right.type->kind == Kind::kNever ||
                     SameType(*left.type, *right.type));
  if (!fits) {
    Wrong(expr, "only two Longs, two datetimes or two durations have an order, not " +
                    ToText(*left.type) + " and " + ToText(*right.type));
    return Failure(Bool());
  }
  return {Bool(), left.ok && right.ok, {}};
}

Typechecker::Answer Typechecker::CheckArithmetic(const Expr& expr, const Capabilities& prior) {
  bool ok = true;
  for (const Expr* arg : expr.args) {
    ok = Expect(*arg, prior, {Type::Simple(Kind::kLong)}).ok && ok;
  }
  return {Type::Simple(Kind::kLong), ok, {}};
}

}  // namespace ringfence::cedar
