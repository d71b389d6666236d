// The rules for entities, records and sets.

#include <algorithm>

#include "cedar/extension.h"
#include "cedar/typechecker.h"

namespace ringfence::cedar {
namespace {

using Kind = Type::Kind;

TypePtr AnyEntity() { return Type::Simple(Kind::kAnyEntity); }
TypePtr AnyRecord() { return Type::Simple(Kind::kRecord); }
TypePtr AnySet() { return Type::Simple(Kind::kSet); }
TypePtr Bool() { return Type::Simple(Kind::kBool); }

std::string AttributeKey(const Expr& expr, const std::string& name) {
  return "a" + ExprKey(expr) + "." + Quoted(name);
}

std::string TagKey(const Expr& expr, const Expr& tag) {
  return "t" + ExprKey(expr) + "." + ExprKey(tag);
}

TypePtr TypeOf(ArgumentType type) {
  switch (type) {
    case ArgumentType::kString:
      return Type::Simple(Kind::kString);
    case ArgumentType::kLong:
      return Type::Simple(Kind::kLong);
    case ArgumentType::kBool:
      return Bool();
    case ArgumentType::kDecimal:
      return Type::Extended(Extension::kDecimal);
    case ArgumentType::kIp:
      return Type::Extended(Extension::kIp);
    case ArgumentType::kDatetime:
      return Type::Extended(Extension::kDatetime);
    case ArgumentType::kDuration:
      return Type::Extended(Extension::kDuration);
  }
  return nullptr;
}

}  // namespace

std::optional<AttributeType> Typechecker::Attribute(const Type& type,
                                                    const std::string& name) const {
  if (type.kind == Kind::kRecord) {
    const auto found = type.attributes.find(name);
    return found == type.attributes.end() ? std::nullopt : std::optional(found->second);
  }
  if (type.kind != Kind::kEntity) {
    return std::nullopt;
  }
  std::optional<AttributeType> out;
  for (const std::string& entity : type.entities) {
    const EntityTypeInfo* info = schema_.Find(entity);
    if (info == nullptr) {
      return std::nullopt;
    }
    const auto found = info->attributes.find(name);
    if (found == info->attributes.end()) {
      return std::nullopt;
    }
    if (!out) {
      out = found->second;
      continue;
    }
    TypePtr both = LeastUpperBound(out->type, found->second.type, ValidationMode::kPermissive);
    if (both == nullptr) {
      return std::nullopt;
    }
    out = AttributeType{std::move(both), out->required && found->second.required};
  }
  return out;
}

bool Typechecker::MayHaveAttribute(const Type& type, const std::string& name) const {
  if (type.kind == Kind::kNever || type.kind == Kind::kAnyEntity) {
    return true;
  }
  if (type.kind == Kind::kRecord) {
    return type.open || type.attributes.contains(name);
  }
  return std::any_of(type.entities.begin(), type.entities.end(), [&](const std::string& entity) {
    const EntityTypeInfo* info = schema_.Find(entity);
    return info != nullptr && info->attributes.contains(name);
  });
}

Typechecker::Answer Typechecker::CheckGetAttribute(const Expr& expr, const Capabilities& prior) {
  const Answer base = Expect(*expr.args[0], prior, {AnyEntity(), AnyRecord()});
  if (base.type == nullptr) {
    return Failure(nullptr);
  }
  const auto attribute = Attribute(*base.type, expr.text);
  if (!attribute) {
    Wrong(expr, ToText(*base.type) + " has no attribute " + Quoted(expr.text));
    return Failure(nullptr);
  }
  if (!attribute->required && !prior.contains(AttributeKey(*expr.args[0], expr.text))) {
    Wrong(expr, "the attribute " + Quoted(expr.text) + " of " + ToText(*base.type) +
                    " may be missing: ask with `has` first");
    return Failure(attribute->type);
  }
  return {attribute->type, base.ok, {}};
}

Typechecker::Answer Typechecker::CheckHasAttribute(const Expr& expr, const Capabilities& prior) {
  const Answer base = Expect(*expr.args[0], prior, {AnyEntity(), AnyRecord()});
  if (base.type == nullptr) {
    return Failure(Bool());
  }
  const auto attribute = Attribute(*base.type, expr.text);
  if (!attribute) {
    return {MayHaveAttribute(*base.type, expr.text) ? Bool() : Type::Bool(false), base.ok, {}};
  }
  // A required attribute of an entity may still be missing: the entity need not exist.
  const std::string key = AttributeKey(*expr.args[0], expr.text);
  const bool certain =
      prior.contains(key) || (attribute->required && base.type->kind == Kind::kRecord);
  return {certain ? Type::Bool(true) : Bool(), base.ok, {key}};
}

// As `e has a && e.a has b && ...`: one step for each name, then what the steps are together.
Typechecker::Answer Typechecker::CheckHasPath(const Expr& expr, const Capabilities& prior) {
  const Answer base = Expect(*expr.args[0], prior, {AnyEntity(), AnyRecord()});
  if (base.type == nullptr) {
    return Failure(Bool());
  }
  const std::string get = std::to_string(static_cast<int>(Op::kGetAttribute));
  std::string key = ExprKey(*expr.args[0]);
  TypePtr type = base.type;
  std::vector<Answer> steps;
  for (std::size_t i = 0; i < expr.keys.size(); ++i) {
    const std::string& name = expr.keys[i];
    if (!type->is_entity() && type->kind != Kind::kRecord && type->kind != Kind::kNever) {
      Wrong(expr, "expected an entity or a record before ." + name + ", not " + ToText(*type));
      return Failure(Bool());
    }
    const auto attribute = Attribute(*type, name);
    if (!attribute) {
      steps.push_back({MayHaveAttribute(*type, name) ? Bool() : Type::Bool(false), true, {}});
      if (steps.back().type->kind == Kind::kFalse || i + 1 == expr.keys.size()) {
        break;
      }
      Wrong(expr, ToText(*type) + " has no attribute " + Quoted(name));
      return Failure(Bool());
    }
    const std::string capability = "a" + key + "." + Quoted(name);
    const bool certain =
        prior.contains(capability) || (attribute->required && type->kind == Kind::kRecord);
    steps.push_back({certain ? Type::Bool(true) : Bool(), true, {capability}});
    key = get + Quoted(name) + "(" + key + ",)";
    type = attribute->type;
  }
  Answer out = steps.back();
  for (std::size_t i = steps.size() - 1; i-- > 0;) {
    out = CheckAndTypes(steps[i], out);
  }
  out.ok = base.ok;
  return out;
}

std::vector<TypePtr> Typechecker::TagTypes(const Type& type) const {
  std::vector<TypePtr> out;
  for (const auto& [name, info] : schema_.entities) {
    if (info.tags != nullptr && (type.kind == Kind::kAnyEntity || type.entities.contains(name))) {
      out.push_back(info.tags);
    }
  }
  return out;
}

Typechecker::Answer Typechecker::CheckTag(const Expr& expr, const Capabilities& prior) {
  const Answer base = Expect(*expr.args[0], prior, {AnyEntity()});
  const Answer tag = Expect(*expr.args[1], prior, {Type::Simple(Kind::kString)});
  const bool ok = base.ok && tag.ok;
  if (base.type == nullptr) {
    return Failure(nullptr);
  }
  const std::string key = TagKey(*expr.args[0], *expr.args[1]);
  const std::vector<TypePtr> types = TagTypes(*base.type);
  if (expr.op == Op::kHasTag) {
    TypePtr result = types.empty()         ? Type::Bool(false)
                     : prior.contains(key) ? Type::Bool(true)
                                           : Bool();
    return {std::move(result), ok, {key}};
  }
  if (!prior.contains(key)) {
    Wrong(expr, "the tag may be missing: ask with `hasTag` first");
    return Failure(nullptr);
  }
  if (types.empty()) {
    Wrong(expr, ToText(*base.type) + " has no tags");
    return Failure(nullptr);
  }
  TypePtr all = types.front();
  for (const TypePtr& type : types) {
    TypePtr next = LeastUpperBound(all, type, mode_);
    if (next == nullptr) {
      Wrong(expr, "the tag may be of types that do not go together");
      return Failure(nullptr);
    }
    all = std::move(next);
  }
  return {std::move(all), ok, {}};
}

Typechecker::Answer Typechecker::CheckContains(const Expr& expr, const Capabilities& prior) {
  const Answer left = Expect(*expr.args[0], prior, {AnySet()});
  if (expr.op == Op::kContains) {
    const Answer right = Check(*expr.args[1], prior);
    const TypePtr element = left.type == nullptr ? nullptr : left.type->element;
    Answer out = Strict(expr, Bool(), element, right.type);
    out.ok = out.ok && left.ok && right.ok;
    return out;
  }
  const Answer right = Expect(*expr.args[1], prior, {AnySet()});
  Answer out = Strict(expr, Bool(), left.type, right.type);
  out.ok = out.ok && left.ok && right.ok;
  return out;
}

Typechecker::Answer Typechecker::CheckSet(const Expr& expr, const Capabilities& prior) {
  bool ok = true;
  bool typed = true;
  std::vector<TypePtr> types;
  for (const Expr* arg : expr.args) {
    const Answer element = Check(*arg, prior);
    ok = ok && element.ok;
    typed = typed && element.type != nullptr;
    types.push_back(element.type);
  }
  if (expr.args.empty() && mode_ == ValidationMode::kStrict) {
    Wrong(expr, "strict mode does not know of what an empty set literal is a set");
    return Failure(nullptr);
  }
  if (!typed) {
    return Failure(nullptr);
  }
  TypePtr all = Type::Simple(Kind::kNever);
  for (const TypePtr& type : types) {
    TypePtr next = LeastUpperBound(all, type, mode_);
    if (next == nullptr) {
      Wrong(expr, "the elements have types that do not go together: " + ToText(*all) + " and " +
                      ToText(*type));
      return Failure(nullptr);
    }
    all = std::move(next);
  }
  return {Type::Set(std::move(all)), ok, {}};
}

Typechecker::Answer Typechecker::CheckRecord(const Expr& expr, const Capabilities& prior) {
  bool ok = true;
  bool typed = true;
  Attributes attributes;
  for (std::size_t i = 0; i < expr.args.size(); ++i) {
    const Answer member = Check(*expr.args[i], prior);
    ok = ok && member.ok;
    typed = typed && member.type != nullptr;
    attributes[expr.keys[i]] = {member.type, true};
  }
  return typed ? Answer{Type::Record(std::move(attributes)), ok, {}} : Failure(nullptr);
}

Typechecker::Answer Typechecker::CheckCall(const Expr& expr, const Capabilities& prior) {
  const ExtensionFunction* function = FindExtensionFunction(expr.text);
  if (function == nullptr) {
    Wrong(expr, "no extension function " + expr.text);
    return Failure(nullptr);
  }
  bool failed = false;
  if (expr.args.size() != function->arity) {
    Wrong(expr, expr.text + " takes " + std::to_string(function->arity) + " argument(s), not " +
                    std::to_string(expr.args.size()));
    failed = true;
  }
  if (function->constructs) {
    const bool literals = std::all_of(expr.args.begin(), expr.args.end(),
                                      [](const Expr* arg) { return arg->op == Op::kLiteral; });
    if (mode_ == ValidationMode::kStrict && !literals) {
      Wrong(expr, "strict mode wants a literal as the argument of " + expr.text);
      failed = true;
    }
    if (!expr.args.empty() && expr.args[0]->op == Op::kLiteral &&
        expr.args[0]->value.is(Value::Kind::kString)) {
      const auto made = ParseExtension(*function->constructs, expr.args[0]->value.string());
      if (!made.has_value()) {
        Wrong(expr, made.error().message);
        failed = true;
      }
    }
  }
  bool ok = !failed;
  for (std::size_t i = 0; i < expr.args.size(); ++i) {
    const Answer argument = failed ? Check(*expr.args[i], prior)
                                   : Expect(*expr.args[i], prior, {TypeOf(function->arguments[i])});
    ok = ok && argument.ok;
  }
  return {TypeOf(function->result), ok, {}};
}

std::optional<EntityUid> Typechecker::Uid(const Expr& expr) const {
  if (expr.op == Op::kVar && expr.var == Var::kAction) {
    return env_.action->uid;
  }
  if (expr.op == Op::kLiteral && expr.value.is(Value::Kind::kEntity)) {
    return expr.value.entity();
  }
  return std::nullopt;
}

std::optional<std::vector<EntityUid>> Typechecker::Uids(const Expr& expr) const {
  if (const auto one = Uid(expr)) {
    return std::vector<EntityUid>{*one};
  }
  if (expr.op != Op::kSet) {
    return std::nullopt;
  }
  std::vector<EntityUid> out;
  for (const Expr* arg : expr.args) {
    const auto one = Uid(*arg);
    if (!one) {
      return std::nullopt;
    }
    out.push_back(*one);
  }
  return out;
}

bool Typechecker::MayDescend(const Type& left, const Type& right) const {
  for (const std::string& below : left.entities) {
    for (const std::string& above : right.entities) {
      const EntityTypeInfo* info = schema_.Find(above);
      if (below == above || (info != nullptr && info->descendants.contains(below))) {
        return true;
      }
      for (const auto& [uid, action] : schema_.actions) {
        if (uid.type == above &&
            std::any_of(action.descendants.begin(), action.descendants.end(),
                        [&](const EntityUid& descendant) { return descendant.type == below; })) {
          return true;
        }
      }
    }
  }
  return false;
}

Typechecker::Answer Typechecker::CheckIn(const Expr& expr, const Capabilities& prior) {
  const Answer left = Expect(*expr.args[0], prior, {AnyEntity()});
  const Answer right = Expect(*expr.args[1], prior, {AnyEntity(), Type::Set(AnyEntity())});
  return CheckInTypes(expr, left, right);
}

// `left in right`, of the first two arguments of `expr`.
Typechecker::Answer Typechecker::CheckInTypes(const Expr& expr, const Answer& left,
                                              const Answer& right) {
  if (!left.ok || !right.ok) {
    return Failure(Bool());
  }
  const auto action = Uid(*expr.args[0]);
  const auto groups = Uids(*expr.args[1]);
  if (action && groups && IsActionType(action->type)) {
    bool any = false;
    bool within = false;
    for (const EntityUid& group : *groups) {
      if (!IsActionType(group.type)) {
        continue;  // no action is in an entity that is none
      }
      const ActionInfo* info = schema_.FindAction(group);
      if (info == nullptr) {
        return Failure(Bool());  // reported by another pass
      }
      any = true;
      within = within || group == *action || info->descendants.contains(*action);
    }
    return Success(Type::Bool(any && within));
  }
  const Type* above = right.type.get();
  if (above->kind == Kind::kSet) {
    above = above->element.get();
  }
  if (left.type->kind == Kind::kEntity && above != nullptr && above->kind == Kind::kEntity &&
      !MayDescend(*left.type, *above)) {
    return Success(Type::Bool(false));
  }
  return Success(Bool());
}

// `e is T in f` is `e is T && e in f`.
Typechecker::Answer Typechecker::CheckIs(const Expr& expr, const Capabilities& prior) {
  const Answer left = Expect(*expr.args[0], prior, {AnyEntity()});
  Answer is = Failure(Bool());
  if (left.type != nullptr) {
    const bool contains =
        left.type->kind != Kind::kEntity || left.type->entities.contains(expr.text);
    const bool only = left.type->kind == Kind::kEntity && left.type->entities.size() == 1;
    is = {!contains ? Type::Bool(false) : only ? Type::Bool(true) : Bool(), left.ok, {}};
  }
  if (expr.args.size() == 1 || is.type->kind == Kind::kFalse) {
    return is;
  }
  const Answer right = Expect(*expr.args[1], prior, {AnyEntity(), Type::Set(AnyEntity())});
  return CheckAndTypes(is, CheckInTypes(expr, left, right));
}

}  // namespace ringfence::cedar
