#include "cedar/evaluator.h"

#include <algorithm>

#include "cedar/extension.h"

namespace ringfence::cedar {
namespace {

using Kind = Value::Kind;

Error TypeError(std::string_view wanted, const Value& seen) {
  return Error{Code::kInvalidArgument, "type error: expected " + std::string(wanted) + ", got " +
                                           std::string(Name(seen.kind()))};
}

class Evaluator {
 public:
  Evaluator(const Request& request, const Entities& entities, const SlotValues& slots)
      : request_(request), entities_(entities), slots_(slots) {}

  Result<Value> Of(const Expr& expr) const {
    switch (expr.op) {
      case Op::kLiteral:
        return expr.value;
      case Op::kVar:
        return Variable(expr.var);
      case Op::kSlot:
        return SlotValue(expr.slot);
      case Op::kAnd:
      case Op::kOr:
        return Logical(expr);
      case Op::kNot: {
        RINGFENCE_ASSIGN(const bool value, BoolOf(*expr.args[0]));
        return Value::Bool(!value);
      }
      case Op::kNegate: {
        RINGFENCE_ASSIGN(const std::int64_t value, LongOf(*expr.args[0]));
        std::int64_t out = 0;
        return __builtin_sub_overflow(std::int64_t{0}, value, &out) ? Result<Value>(Overflow())
                                                                    : Value::Long(out);
      }
      case Op::kIf: {
        RINGFENCE_ASSIGN(const bool test, BoolOf(*expr.args[0]));
        return Of(*expr.args[test ? 1 : 2]);
      }
      case Op::kSet: {
        RINGFENCE_ASSIGN(std::vector<Value> elements, All(expr));
        return Value::Set(std::move(elements));
      }
      case Op::kRecord: {
        RINGFENCE_ASSIGN(std::vector<Value> members, All(expr));
        ValueRecord record;
        for (std::size_t i = 0; i < members.size(); ++i) {
          record.emplace(expr.keys[i], std::move(members[i]));
        }
        return Value::Record(std::move(record));
      }
      case Op::kCall: {
        RINGFENCE_ASSIGN(const std::vector<Value> arguments, All(expr));
        const ExtensionFunction* function = FindExtensionFunction(expr.text);
        if (function == nullptr) {
          return Error{Code::kInvalidArgument, "no extension function " + expr.text};
        }
        return CallExtension(*function, arguments);
      }
      case Op::kGetAttribute:
        return Attribute(expr);
      case Op::kHasAttribute:
        return HasAttribute(expr);
      case Op::kHasPath:
        return HasPath(expr);
      case Op::kLike: {
        RINGFENCE_ASSIGN(const Value text, OfKind(*expr.args[0], Kind::kString, "string"));
        return Value::Bool(Matches(text.string(), expr.pattern));
      }
      case Op::kIs:
        return Is(expr);
      case Op::kIsEmpty: {
        RINGFENCE_ASSIGN(const Value set, OfKind(*expr.args[0], Kind::kSet, "set"));
        return Value::Bool(set.set().empty());
      }
      case Op::kEqual:
      case Op::kNotEqual:
      case Op::kLess:
      case Op::kLessEqual:
      case Op::kGreater:
      case Op::kGreaterEqual:
      case Op::kAdd:
      case Op::kSubtract:
      case Op::kMultiply:
      case Op::kIn:
      case Op::kContains:
      case Op::kContainsAll:
      case Op::kContainsAny:
      case Op::kGetTag:
      case Op::kHasTag:
        return Binary(expr);
    }
    return Error{Code::kInternal, "unknown operator"};
  }

 private:
  static Error Overflow() {
    return Error{Code::kInvalidArgument, "integer overflow: the result does not fit 64 bits"};
  }

  Result<Value> OfKind(const Expr& expr, Kind kind, std::string_view wanted) const {
    RINGFENCE_ASSIGN(Value value, Of(expr));
    return value.is(kind) ? Result<Value>(std::move(value)) : TypeError(wanted, value);
  }

  Result<bool> BoolOf(const Expr& expr) const {
    RINGFENCE_ASSIGN(const Value value, OfKind(expr, Kind::kBool, "bool"));
    return value.boolean();
  }

  Result<std::int64_t> LongOf(const Expr& expr) const {
    RINGFENCE_ASSIGN(const Value value, OfKind(expr, Kind::kLong, "long"));
    return value.number();
  }

  Result<std::vector<Value>> All(const Expr& expr) const {
    std::vector<Value> out;
    out.reserve(expr.args.size());
    for (const Expr* arg : expr.args) {
      RINGFENCE_ASSIGN(Value value, Of(*arg));
      out.push_back(std::move(value));
    }
    return out;
  }

  Value Variable(Var var) const {
    switch (var) {
      case Var::kPrincipal:
        return Value::Entity(request_.principal);
      case Var::kAction:
        return Value::Entity(request_.action);
      case Var::kResource:
        return Value::Entity(request_.resource);
      case Var::kContext:
        break;
    }
    return request_.context;
  }

  Result<Value> SlotValue(Slot slot) const {
    const auto found = slots_.find(slot);
    if (found == slots_.end()) {
      return Error{Code::kInvalidArgument, std::string(Name(slot)) + " has no value"};
    }
    return Value::Entity(found->second);
  }

  Result<Value> Logical(const Expr& expr) const {
    const bool decides = expr.op == Op::kOr;
    RINGFENCE_ASSIGN(const bool left, BoolOf(*expr.args[0]));
    if (left == decides) {
      return Value::Bool(decides);
    }
    RINGFENCE_ASSIGN(const bool right, BoolOf(*expr.args[1]));
    return Value::Bool(right);
  }

  Result<Value> Attribute(const Expr& expr) const {
    RINGFENCE_ASSIGN(const Value base, Of(*expr.args[0]));
    const ValueRecord* record = nullptr;
    if (base.is(Kind::kEntity)) {
      const Entity* entity = entities_.Find(base.entity());
      if (entity == nullptr) {
        return Error{Code::kInvalidArgument, "entity " + ToText(base.entity()) + " does not exist"};
      }
      record = &entity->attributes;
    } else if (base.is(Kind::kRecord)) {
      record = &base.record();
    } else {
      return TypeError("record or entity", base);
    }
    const auto found = record->find(expr.text);
    if (found == record->end()) {
      return Error{Code::kInvalidArgument,
                   (base.is(Kind::kEntity) ? ToText(base.entity()) : std::string("the record")) +
                       " has no attribute " + Quoted(expr.text)};
    }
    return found->second;
  }

  Result<Value> HasAttribute(const Expr& expr) const {
    RINGFENCE_ASSIGN(const Value base, Of(*expr.args[0]));
    if (base.is(Kind::kEntity)) {
      const Entity* entity = entities_.Find(base.entity());
      return Value::Bool(entity != nullptr && entity->attributes.contains(expr.text));
    }
    return base.is(Kind::kRecord) ? Result<Value>(Value::Bool(base.record().contains(expr.text)))
                                  : TypeError("record or entity", base);
  }

  Result<Value> HasPath(const Expr& expr) const {
    RINGFENCE_ASSIGN(Value base, Of(*expr.args[0]));
    for (const std::string& name : expr.keys) {
      const ValueRecord* record = nullptr;
      if (base.is(Kind::kEntity)) {
        const Entity* entity = entities_.Find(base.entity());
        record = entity == nullptr ? nullptr : &entity->attributes;
      } else if (base.is(Kind::kRecord)) {
        record = &base.record();
      } else {
        return TypeError("record or entity", base);
      }
      if (record == nullptr || !record->contains(name)) {
        return Value::Bool(false);
      }
      const Value next = record->find(name)->second;
      base = next;
    }
    return Value::Bool(true);
  }

  // `e is T in f` is `e is T && e in f`.
  Result<Value> Is(const Expr& expr) const {
    RINGFENCE_ASSIGN(const Value entity, OfKind(*expr.args[0], Kind::kEntity, "entity"));
    if (entity.entity().type != expr.text || expr.args.size() == 1) {
      return Value::Bool(entity.entity().type == expr.text);
    }
    RINGFENCE_ASSIGN(const Value right, Of(*expr.args[1]));
    return In(entity, right);
  }

  Result<Value> In(const Value& left, const Value& right) const {
    if (!left.is(Kind::kEntity)) {
      return TypeError("entity", left);
    }
    const auto within = [&](const EntityUid& above) {
      return left.entity() == above || entities_.IsAncestor(above, left.entity());
    };
    if (right.is(Kind::kEntity)) {
      return Value::Bool(within(right.entity()));
    }
    if (!right.is(Kind::kSet)) {
      return TypeError("entity or set of entities", right);
    }
    for (const Value& element : right.set()) {
      if (!element.is(Kind::kEntity)) {
        return TypeError("entity", element);
      }
    }
    return Value::Bool(std::any_of(right.set().begin(), right.set().end(),
                                   [&](const Value& above) { return within(above.entity()); }));
  }

  static Result<Value> Compare(Op op, const Value& left, const Value& right) {
    const auto ordered = [](const Value& value) {
      return value.is(Kind::kExtension) && (value.extension().type == Extension::kDatetime ||
                                            value.extension().type == Extension::kDuration);
    };
    std::int64_t a = 0;
    std::int64_t b = 0;
    if (left.is(Kind::kLong) && right.is(Kind::kLong)) {
      a = left.number();
      b = right.number();
    } else if (ordered(left) && ordered(right) && left.extension().type == right.extension().type) {
      a = left.extension().number;
      b = right.extension().number;
    } else {
      return TypeError("two longs, datetimes or durations",
                       left.is(Kind::kLong) || ordered(left) ? right : left);
    }
    return Value::Bool(op == Op::kLess        ? a < b
                       : op == Op::kLessEqual ? a <= b
                       : op == Op::kGreater   ? a > b
                                              : a >= b);
  }

  static Result<Value> Arithmetic(Op op, const Value& left, const Value& right) {
    if (!left.is(Kind::kLong) || !right.is(Kind::kLong)) {
      return TypeError("long", left.is(Kind::kLong) ? right : left);
    }
    std::int64_t out = 0;
    const bool overflow =
        op == Op::kAdd        ? __builtin_add_overflow(left.number(), right.number(), &out)
        : op == Op::kSubtract ? __builtin_sub_overflow(left.number(), right.number(), &out)
                              : __builtin_mul_overflow(left.number(), right.number(), &out);
    return overflow ? Result<Value>(Overflow()) : Value::Long(out);
  }

  static Result<Value> Sets(Op op, const Value& left, const Value& right) {
    if (!left.is(Kind::kSet)) {
      return TypeError("set", left);
    }
    const auto has = [&](const Value& element) {
      return std::binary_search(left.set().begin(), left.set().end(), element);
    };
    if (op == Op::kContains) {
      return Value::Bool(has(right));
    }
    if (!right.is(Kind::kSet)) {
      return TypeError("set", right);
    }
    const ValueSet& wanted = right.set();
    return Value::Bool(op == Op::kContainsAll ? std::all_of(wanted.begin(), wanted.end(), has)
                                              : std::any_of(wanted.begin(), wanted.end(), has));
  }

  Result<Value> Tags(Op op, const Value& left, const Value& right) const {
    if (!left.is(Kind::kEntity)) {
      return TypeError("entity", left);
    }
    if (!right.is(Kind::kString)) {
      return TypeError("string", right);
    }
    const Entity* entity = entities_.Find(left.entity());
    if (op == Op::kHasTag) {
      return Value::Bool(entity != nullptr && entity->tags.contains(right.string()));
    }
    if (entity == nullptr) {
      return Error{Code::kInvalidArgument, "entity " + ToText(left.entity()) + " does not exist"};
    }
    const auto found = entity->tags.find(right.string());
    if (found == entity->tags.end()) {
      return Error{Code::kInvalidArgument,
                   ToText(left.entity()) + " has no tag " + Quoted(right.string())};
    }
    return found->second;
  }

  Result<Value> Binary(const Expr& expr) const {
    RINGFENCE_ASSIGN(const Value left, Of(*expr.args[0]));
    RINGFENCE_ASSIGN(const Value right, Of(*expr.args[1]));
    const Op op = expr.op;
    if (op == Op::kEqual || op == Op::kNotEqual) {
      return Value::Bool((left == right) == (op == Op::kEqual));
    }
    if (op == Op::kIn) {
      return In(left, right);
    }
    if (op == Op::kContains || op == Op::kContainsAll || op == Op::kContainsAny) {
      return Sets(op, left, right);
    }
    if (op == Op::kGetTag || op == Op::kHasTag) {
      return Tags(op, left, right);
    }
    if (op == Op::kAdd || op == Op::kSubtract || op == Op::kMultiply) {
      return Arithmetic(op, left, right);
    }
    return Compare(op, left, right);
  }

  const Request& request_;
  const Entities& entities_;
  const SlotValues& slots_;
};

}  // namespace

std::string_view Name(Decision decision) { return decision == Decision::kAllow ? "allow" : "deny"; }

Result<Value> Evaluate(const Expr& expr, const Request& request, const Entities& entities,
                       const SlotValues& slots) {
  return Evaluator(request, entities, slots).Of(expr);
}

Response IsAuthorized(const PolicySet& policies, const Request& request, const Entities& entities) {
  Response out;
  std::vector<std::string> permits;
  std::vector<std::string> forbids;
  for (const Policy& policy : policies.policies()) {
    const auto value = Evaluate(*policy.body->condition, request, entities, policy.slots);
    if (!value.has_value()) {
      out.errors.push_back({policy.id, value.error().message});
    } else if (!value->is(Value::Kind::kBool)) {
      out.errors.push_back({policy.id, TypeError("bool", *value).message});
    } else if (value->boolean()) {
      (policy.body->effect == Effect::kPermit ? permits : forbids).push_back(policy.id);
    }
  }
  if (!forbids.empty()) {
    out.reasons = std::move(forbids);
  } else if (!permits.empty()) {
    out.decision = Decision::kAllow;
    out.reasons = std::move(permits);
  }
  return out;
}

}  // namespace ringfence::cedar
