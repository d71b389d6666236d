#include <algorithm>

#include "cedar/engine_data.h"

namespace ringfence::cedar {
namespace {

using Kind = Compact::Kind;

Compact Failed() { return {}; }

Compact Contains(const Compact& set, const Compact& wanted) {
  const Compact* end = set.items + set.size;
  const Compact* found = std::lower_bound(
      set.items, end, wanted, [](const Compact& a, const Compact& b) { return Compare(a, b) < 0; });
  return Compact::Bool(found != end && Compare(*found, wanted) == 0);
}

Compact Sets(Op op, const Compact& left, const Compact& right) {
  if (!left.is(Kind::kSet)) {
    return Failed();
  }
  if (op == Op::kContains) {
    return Contains(left, right);
  }
  if (!right.is(Kind::kSet)) {
    return Failed();
  }
  for (std::uint32_t i = 0; i < right.size; ++i) {
    const bool has = Contains(left, right.items[i]).number != 0;
    if (has != (op == Op::kContainsAll)) {
      return Compact::Bool(has);
    }
  }
  return Compact::Bool(op == Op::kContainsAll);
}

Compact Arithmetic(Op op, const Compact& left, const Compact& right) {
  if (!left.is(Kind::kLong) || !right.is(Kind::kLong)) {
    return Failed();
  }
  std::int64_t out = 0;
  const bool overflow = op == Op::kAdd ? __builtin_add_overflow(left.number, right.number, &out)
                        : op == Op::kSubtract
                            ? __builtin_sub_overflow(left.number, right.number, &out)
                            : __builtin_mul_overflow(left.number, right.number, &out);
  return overflow ? Failed() : Compact::Number(Kind::kLong, out);
}

Compact Ordered(Op op, const Compact& left, const Compact& right) {
  const bool comparable =
      left.kind == right.kind &&
      (left.is(Kind::kLong) || left.is(Kind::kDatetime) || left.is(Kind::kDuration));
  if (!comparable) {
    return Failed();
  }
  const std::int64_t a = left.number;
  const std::int64_t b = right.number;
  return Compact::Bool(op == Op::kLess        ? a < b
                       : op == Op::kLessEqual ? a <= b
                       : op == Op::kGreater   ? a > b
                                              : a >= b);
}

Value ToValue(const Compact& value) {
  switch (value.kind) {
    case Kind::kDecimal:
      return Value::Extended({.type = Extension::kDecimal, .number = value.number});
    case Kind::kDatetime:
      return Value::Extended({.type = Extension::kDatetime, .number = value.number});
    case Kind::kDuration:
      return Value::Extended({.type = Extension::kDuration, .number = value.number});
    case Kind::kIp:
      return Value::Extended({.type = Extension::kIp, .ip = *value.ip});
    case Kind::kString:
      return Value::String(std::string(value.view()));
    case Kind::kError:
    case Kind::kBool:
    case Kind::kLong:
    case Kind::kEntity:
    case Kind::kSet:
    case Kind::kRecord:
      break;
  }
  return Value::Bool(false);
}

// The functions that policies call most, without a detour through Value. kError: not one of them.
Compact Quick(const ExtensionFunction& function, const Compact& left, const Compact& right) {
  if (left.is(Kind::kIp) && function.name == "isInRange" && right.is(Kind::kIp)) {
    return Compact::Bool(InRange(*left.ip, *right.ip));
  }
  if (left.is(Kind::kIp) && function.arity == 1) {
    return function.name == "isIpv4"       ? Compact::Bool(!left.ip->v6)
           : function.name == "isIpv6"     ? Compact::Bool(left.ip->v6)
           : function.name == "isLoopback" ? Compact::Bool(IsLoopback(*left.ip))
                                           : Compact::Bool(IsMulticast(*left.ip));
  }
  if (left.is(Kind::kDecimal) && right.is(Kind::kDecimal)) {
    const std::int64_t a = left.number;
    const std::int64_t b = right.number;
    return Compact::Bool(function.name == "lessThan"          ? a < b
                         : function.name == "lessThanOrEqual" ? a <= b
                         : function.name == "greaterThan"     ? a > b
                                                              : a >= b);
  }
  if (left.is(Kind::kDatetime) && function.name == "toTime") {
    return Compact::Number(Kind::kDuration, ToTime(left.number));
  }
  return Failed();
}

bool Takes(const ExtensionFunction& function, std::size_t index, Kind kind) {
  switch (function.arguments[index]) {
    case ArgumentType::kString:
      return kind == Kind::kString;
    case ArgumentType::kLong:
      return kind == Kind::kLong;
    case ArgumentType::kBool:
      return kind == Kind::kBool;
    case ArgumentType::kDecimal:
      return kind == Kind::kDecimal;
    case ArgumentType::kIp:
      return kind == Kind::kIp;
    case ArgumentType::kDatetime:
      return kind == Kind::kDatetime;
    case ArgumentType::kDuration:
      return kind == Kind::kDuration;
  }
  return false;
}

}  // namespace

bool Machine::IsIn(std::uint32_t below, std::uint32_t above) const {
  if (below == above) {
    return true;
  }
  const CompactEntity* entity = Find(below);
  return entity != nullptr &&
         std::binary_search(entity->ancestors, entity->ancestors + entity->ancestor_count, above);
}

Compact Machine::Context() {
  if (context_.is(Kind::kError)) {
    context_ = Borrowing().Of(request_.context);
  }
  return context_;
}

Compact Machine::Compute(const Node& node) {
  switch (node.op) {
    case Op::kLiteral:
      return node.value;
    case Op::kVar:
      return node.var == Var::kPrincipal  ? Compact::Entity(principal_)
             : node.var == Var::kAction   ? Compact::Entity(action_)
             : node.var == Var::kResource ? Compact::Entity(resource_)
                                          : Context();
    case Op::kSlot:
      return Failed();  // compiled into a literal
    case Op::kAnd:
    case Op::kOr:
      return Logical(node);
    case Op::kNot: {
      const Compact inner = Of(node.first);
      return inner.is(Kind::kBool) ? Compact::Bool(inner.number == 0) : Failed();
    }
    case Op::kNegate: {
      const Compact inner = Of(node.first);
      return inner.is(Kind::kLong)
                 ? Arithmetic(Op::kSubtract, Compact::Number(Kind::kLong, 0), inner)
                 : Failed();
    }
    case Op::kIf: {
      const Compact test = Listed(node, 0);
      return test.is(Kind::kBool) ? Listed(node, test.number != 0 ? 1 : 2) : Failed();
    }
    case Op::kGetAttribute:
    case Op::kHasAttribute:
      return Attribute(node);
    case Op::kHasPath:
      return HasPath(node);
    case Op::kLike: {
      const Compact text = Of(node.first);
      const Pattern& pattern = *engine_.patterns[node.value.entity()];
      return text.is(Kind::kString) ? Compact::Bool(Matches(text.view(), pattern)) : Failed();
    }
    case Op::kIs:
      return Is(node);
    case Op::kIsEmpty: {
      const Compact set = Of(node.first);
      return set.is(Kind::kSet) ? Compact::Bool(set.size == 0) : Failed();
    }
    case Op::kSet:
      return Set(node);
    case Op::kRecord:
      return Record(node);
    case Op::kCall:
      return Call(node);
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
      return Binary(node);
  }
  return Failed();
}

Compact Machine::Logical(const Node& node) {
  const bool decides = node.op == Op::kOr;
  const Compact left = Of(node.first);
  if (!left.is(Kind::kBool) || (left.number != 0) == decides) {
    return left.is(Kind::kBool) ? left : Failed();
  }
  const Compact right = Of(node.second);
  return right.is(Kind::kBool) ? right : Failed();
}

// Reads one member of the context without compiling the rest of it.
Compact Machine::ContextAttribute(const Node& node) {
  const ValueRecord& record = request_.context.record();
  const auto found = record.find(node.value.view());
  if (node.op == Op::kHasAttribute) {
    return Compact::Bool(found != record.end());
  }
  return found == record.end() ? Failed() : Borrowing().Of(found->second);
}

Compact Machine::Attribute(const Node& node) {
  const Node& inner = engine_.nodes[node.first];
  if (inner.op == Op::kVar && inner.var == Var::kContext && context_.is(Kind::kError) &&
      request_.context.is(Value::Kind::kRecord)) {
    return ContextAttribute(node);
  }
  const Compact base = Of(node.first);
  const Member* members = nullptr;
  std::uint32_t count = 0;
  if (base.is(Kind::kEntity)) {
    const CompactEntity* entity = Find(base.entity());
    if (entity == nullptr) {
      return node.op == Op::kHasAttribute ? Compact::Bool(false) : Failed();
    }
    members = entity->attributes;
    count = entity->attribute_count;
  } else if (base.is(Kind::kRecord)) {
    members = base.members;
    count = base.size;
  } else {
    return Failed();
  }
  const Compact* found = FindMember(members, count, node.value.view());
  if (node.op == Op::kHasAttribute) {
    return Compact::Bool(found != nullptr);
  }
  return found == nullptr ? Failed() : *found;
}

Compact Machine::HasPath(const Node& node) {
  Compact base = Of(node.first);
  const std::string_view* names = &engine_.names[node.value.entity()];
  for (std::uint32_t i = 0; i < node.value.size; ++i) {
    const Compact* found = nullptr;
    if (base.is(Kind::kEntity)) {
      const CompactEntity* entity = Find(base.entity());
      found = entity == nullptr ? nullptr
                                : FindMember(entity->attributes, entity->attribute_count, names[i]);
    } else if (base.is(Kind::kRecord)) {
      found = FindMember(base.members, base.size, names[i]);
    } else {
      return Failed();
    }
    if (found == nullptr) {
      return Compact::Bool(false);
    }
    base = *found;
  }
  return Compact::Bool(true);
}

Compact Machine::Is(const Node& node) {
  const Compact entity = Of(node.first);
  if (!entity.is(Kind::kEntity)) {
    return Failed();
  }
  const bool same = TypeOf(entity.entity()) == node.value.entity();
  return !same || node.second == kNone ? Compact::Bool(same) : In(entity, Of(node.second));
}

Compact Machine::In(const Compact& left, const Compact& right) const {
  if (!left.is(Kind::kEntity)) {
    return Failed();
  }
  if (right.is(Kind::kEntity)) {
    return Compact::Bool(IsIn(left.entity(), right.entity()));
  }
  if (!right.is(Kind::kSet)) {
    return Failed();
  }
  bool within = false;
  for (std::uint32_t i = 0; i < right.size; ++i) {
    if (!right.items[i].is(Kind::kEntity)) {
      return Failed();
    }
    within = within || IsIn(left.entity(), right.items[i].entity());
  }
  return Compact::Bool(within);
}

Compact Machine::Binary(const Node& node) {
  const Compact left = Of(node.first);
  if (left.is(Kind::kError)) {
    return Failed();
  }
  const Compact right = Of(node.second);
  if (right.is(Kind::kError)) {
    return Failed();
  }
  const Op op = node.op;
  if (op == Op::kEqual || op == Op::kNotEqual) {
    return Compact::Bool((Compare(left, right) == 0) == (op == Op::kEqual));
  }
  if (op == Op::kIn) {
    return In(left, right);
  }
  if (op == Op::kContains || op == Op::kContainsAll || op == Op::kContainsAny) {
    return Sets(op, left, right);
  }
  if (op == Op::kAdd || op == Op::kSubtract || op == Op::kMultiply) {
    return Arithmetic(op, left, right);
  }
  if (op != Op::kGetTag && op != Op::kHasTag) {
    return Ordered(op, left, right);
  }
  if (!left.is(Kind::kEntity) || !right.is(Kind::kString)) {
    return Failed();
  }
  const CompactEntity* entity = Find(left.entity());
  const Compact* tag =
      entity == nullptr ? nullptr : FindMember(entity->tags, entity->tag_count, right.view());
  return op == Op::kHasTag ? Compact::Bool(tag != nullptr) : (tag == nullptr ? Failed() : *tag);
}

Compact Machine::Set(const Node& node) {
  auto* items = scratch_.bump.Array<Compact>(node.second);
  for (std::uint32_t i = 0; i < node.second; ++i) {
    new (&items[i]) Compact(Listed(node, i));
    if (items[i].is(Kind::kError)) {
      return Failed();
    }
  }
  std::sort(items, items + node.second,
            [](const Compact& a, const Compact& b) { return Compare(a, b) < 0; });
  const Compact* end =
      std::unique(items, items + node.second,
                  [](const Compact& a, const Compact& b) { return Compare(a, b) == 0; });
  Compact out;
  out.kind = Kind::kSet;
  out.items = items;
  out.size = static_cast<std::uint32_t>(end - items);
  return out;
}

Compact Machine::Record(const Node& node) {
  auto* members = scratch_.bump.Array<Member>(node.second);
  const std::string_view* names = engine_.names.data() + node.value.entity();
  for (std::uint32_t i = 0; i < node.second; ++i) {
    new (&members[i]) Member{names[i], Listed(node, i)};
    if (members[i].value.is(Kind::kError)) {
      return Failed();
    }
  }
  Compact out;
  out.kind = Kind::kRecord;
  out.members = members;
  out.size = node.second;
  return out;
}

Compact Machine::Call(const Node& node) {
  const ExtensionFunction& function = ExtensionFunctions()[node.value.entity()];
  std::array<Compact, 2> arguments;
  bool wrong = node.second != function.arity;
  for (std::uint32_t i = 0; i < node.second; ++i) {
    const Compact argument = Listed(node, i);
    if (argument.is(Kind::kError)) {
      return Failed();
    }
    wrong = wrong || !Takes(function, i, argument.kind);
    if (i < arguments.size()) {
      arguments[i] = argument;
    }
  }
  if (wrong) {
    return Failed();
  }
  const Compact quick = Quick(function, arguments[0], arguments[1]);
  if (!quick.is(Kind::kError)) {
    return quick;
  }
  std::array<Value, 2> values = {ToValue(arguments[0]), ToValue(arguments[1])};
  const auto made = CallExtension(function, std::span(values).first(function.arity));
  return made.has_value()
             ? Compactor(scratch_.table, scratch_.bump, Compactor::Text::kCopied, nullptr).Of(*made)
             : Failed();
}

}  // namespace ringfence::cedar
