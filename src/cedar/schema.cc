#include "cedar/schema.h"

#include <algorithm>
#include <array>
#include <functional>

#include "cedar/lexer.h"
#include "cedar/limits.h"
#include "cedar/raw_schema.h"

namespace ringfence::cedar {
namespace {

constexpr std::array<std::string_view, 8> kReservedCommon = {
    "Bool", "Boolean", "Entity", "Extension", "Long", "Record", "Set", "String"};

std::string Join(const std::string& space, const std::string& name) {
  return space.empty() ? name : space + "::" + name;
}

bool ValidPath(std::string_view path) {
  while (true) {
    const std::size_t colons = path.find("::");
    const std::string_view part = path.substr(0, colons);
    if (!IsIdentifier(part) || IsReservedWord(part) || part == "__cedar") {
      return false;
    }
    if (colons == std::string_view::npos) {
      return true;
    }
    path.remove_prefix(colons + 2);
  }
}

// The primitive and extension types, by the names that a schema gives them.
TypePtr Builtin(std::string_view name) {
  if (name == "Bool" || name == "Boolean") {
    return Type::Simple(Type::Kind::kBool);
  }
  if (name == "Long") {
    return Type::Simple(Type::Kind::kLong);
  }
  if (name == "String") {
    return Type::Simple(Type::Kind::kString);
  }
  for (const Extension extension :
       {Extension::kDecimal, Extension::kIp, Extension::kDatetime, Extension::kDuration}) {
    if (name == Name(extension)) {
      return Type::Extended(extension);
    }
  }
  return nullptr;
}

class Resolver {
 public:
  explicit Resolver(const RawSchema& raw) : raw_(raw) {}

  Result<Schema> Run() {
    RINGFENCE_TRY(Collect());
    RINGFENCE_TRY(CheckShadows());
    for (const auto& [name, space] : raw_) {
      for (const auto& [type, unused] : space.common) {
        RINGFENCE_ASSIGN(const TypePtr resolved, Common(Join(name, type)));
        (void)resolved;
      }
      for (const auto& [type, entity] : space.entities) {
        RINGFENCE_TRY(AddEntity(name, Join(name, type), entity));
      }
      for (const auto& [id, action] : space.actions) {
        RINGFENCE_TRY(AddAction(name, id, action));
      }
    }
    CloseEntities();
    RINGFENCE_TRY(CloseActions());
    return std::move(schema_);
  }

 private:
  struct CommonType {
    const RawType* raw = nullptr;
    std::string space;
    TypePtr resolved;
    bool busy = false;
  };

  static Error Wrong(const std::string& where, const std::string& message) {
    return Error{Code::kInvalidArgument, (where.empty() ? "schema" : where) + ": " + message};
  }

  Status Collect() {
    for (const auto& [name, space] : raw_) {
      if (!name.empty() && !ValidPath(name)) {
        return Wrong("", "\"" + name + "\" cannot name a namespace");
      }
      for (const auto& [type, raw] : space.common) {
        if (!ValidPath(type) || type.find(':') != std::string::npos ||
            std::find(kReservedCommon.begin(), kReservedCommon.end(), type) !=
                kReservedCommon.end()) {
          return Wrong(raw.where, "\"" + type + "\" is reserved and cannot name a type");
        }
        commons_[Join(name, type)] = {&raw, name, nullptr, false};
      }
      for (const auto& [type, raw] : space.entities) {
        if (!ValidPath(type) || type.find(':') != std::string::npos || type == "Action") {
          return Wrong(raw.where, "\"" + type + "\" is reserved and cannot name an entity type");
        }
        schema_.entities[Join(name, type)].name = Join(name, type);
      }
      for (const auto& [id, raw] : space.actions) {
        const EntityUid uid{Join(name, "Action"), id};
        schema_.actions[uid].uid = uid;
      }
    }
    return {};
  }

  // What the empty namespace defines, no other may define again.
  Status CheckShadows() const {
    const auto empty = raw_.find("");
    if (empty == raw_.end()) {
      return {};
    }
    const auto shadowed = [&](const std::string& type) {
      return empty->second.common.contains(type) || empty->second.entities.contains(type);
    };
    for (const auto& [name, space] : raw_) {
      if (name.empty()) {
        continue;
      }
      for (const auto& [type, raw] : space.common) {
        if (shadowed(type)) {
          return Wrong(raw.where, Join(name, type) + " would shadow " + type);
        }
      }
      for (const auto& [type, raw] : space.entities) {
        if (shadowed(type)) {
          return Wrong(raw.where, Join(name, type) + " would shadow " + type);
        }
      }
      for (const auto& [id, raw] : space.actions) {
        if (empty->second.actions.contains(id)) {
          return Wrong(raw.where,
                       "action " + Quoted(id) + " would shadow that of the empty namespace");
        }
      }
    }
    return {};
  }

  // What a name may mean within a namespace, the nearest first.
  static std::vector<std::string> Candidates(const std::string& space, const std::string& name) {
    if (space.empty() || name.find("::") != std::string::npos) {
      return {name};
    }
    return {Join(space, name), name};
  }

  Result<std::string> EntityName(const std::string& space, const std::string& name,
                                 const std::string& where) const {
    for (const std::string& candidate : Candidates(space, name)) {
      if (schema_.entities.contains(candidate)) {
        return candidate;
      }
    }
    return Wrong(where, "no entity type " + name);
  }

  Result<TypePtr> Common(const std::string& name) {
    CommonType& common = commons_.at(name);
    if (common.resolved != nullptr) {
      return common.resolved;
    }
    if (common.busy || depth_ > kNestingMax) {
      return Wrong(
          common.raw->where,
          "type " + name + (common.busy ? " is defined by itself" : " is nested too deeply"));
    }
    common.busy = true;
    ++depth_;
    RINGFENCE_ASSIGN(TypePtr resolved, Resolve(common.space, *common.raw));
    --depth_;
    common.busy = false;
    common.resolved = resolved;
    return resolved;
  }

  Result<TypePtr> Named(const std::string& space, const RawType& raw) {
    constexpr std::string_view kInternal = "__cedar::";
    if (raw.name.starts_with(kInternal)) {
      TypePtr builtin = Builtin(std::string_view(raw.name).substr(kInternal.size()));
      return builtin != nullptr ? Result<TypePtr>(builtin)
                                : Wrong(raw.where, "no type " + raw.name);
    }
    for (const std::string& candidate : Candidates(space, raw.name)) {
      if (raw.kind != RawType::Kind::kEntity && commons_.contains(candidate)) {
        return Common(candidate);
      }
      if (raw.kind != RawType::Kind::kCommon && schema_.entities.contains(candidate)) {
        return Type::Entity(candidate);
      }
    }
    if (raw.kind != RawType::Kind::kCommon && IsActionType(raw.name)) {
      for (const std::string& candidate : Candidates(space, raw.name)) {
        if (std::any_of(schema_.actions.begin(), schema_.actions.end(),
                        [&](const auto& entry) { return entry.first.type == candidate; })) {
          return Type::Entity(candidate);
        }
      }
    }
    TypePtr builtin = raw.kind == RawType::Kind::kEntity ? nullptr : Builtin(raw.name);
    return builtin != nullptr ? Result<TypePtr>(builtin) : Wrong(raw.where, "no type " + raw.name);
  }

  Result<TypePtr> Resolve(const std::string& space, const RawType& raw) {
    switch (raw.kind) {
      case RawType::Kind::kBool:
        return Type::Simple(Type::Kind::kBool);
      case RawType::Kind::kLong:
        return Type::Simple(Type::Kind::kLong);
      case RawType::Kind::kString:
        return Type::Simple(Type::Kind::kString);
      case RawType::Kind::kName:
      case RawType::Kind::kCommon:
      case RawType::Kind::kEntity:
        return Named(space, raw);
      case RawType::Kind::kExtension: {
        TypePtr builtin = Builtin(raw.name);
        return builtin != nullptr && builtin->kind == Type::Kind::kExtension
                   ? Result<TypePtr>(builtin)
                   : Wrong(raw.where, "no extension type " + raw.name);
      }
      case RawType::Kind::kSet: {
        RINGFENCE_ASSIGN(TypePtr element, Resolve(space, raw.element.front()));
        return Type::Set(std::move(element));
      }
      case RawType::Kind::kRecord: {
        Attributes attributes;
        for (const RawAttribute& attribute : raw.attributes) {
          RINGFENCE_ASSIGN(TypePtr type, Resolve(space, attribute.type));
          attributes[attribute.name] = {std::move(type), attribute.required};
        }
        return Type::Record(std::move(attributes));
      }
    }
    return Wrong(raw.where, "no type");
  }

  Result<TypePtr> ResolveRecord(const std::string& space, const RawType& raw) {
    RINGFENCE_ASSIGN(TypePtr type, Resolve(space, raw));
    return type->kind == Type::Kind::kRecord ? Result<TypePtr>(type)
                                             : Wrong(raw.where, "must be a record");
  }

  Status AddEntity(const std::string& space, const std::string& name, const RawEntityType& raw) {
    EntityTypeInfo& out = schema_.entities.at(name);
    out.enum_ids = raw.enum_ids;
    RINGFENCE_ASSIGN(const TypePtr shape, ResolveRecord(space, raw.shape));
    out.attributes = shape->attributes;
    if (raw.tags) {
      RINGFENCE_ASSIGN(out.tags, Resolve(space, *raw.tags));
    }
    for (const std::string& parent : raw.member_of) {
      RINGFENCE_ASSIGN(const std::string resolved, EntityName(space, parent, raw.where));
      out.ancestors.insert(resolved);
    }
    return {};
  }

  Status AddAction(const std::string& space, const std::string& id, const RawAction& raw) {
    ActionInfo& out = schema_.actions.at({Join(space, "Action"), id});
    for (const std::string& type : raw.principals) {
      RINGFENCE_ASSIGN(const std::string resolved, EntityName(space, type, raw.where));
      out.principals.insert(resolved);
    }
    for (const std::string& type : raw.resources) {
      RINGFENCE_ASSIGN(const std::string resolved, EntityName(space, type, raw.where));
      out.resources.insert(resolved);
    }
    RINGFENCE_ASSIGN(out.context, ResolveRecord(space, raw.context));
    for (const RawActionParent& parent : raw.parents) {
      const std::string type = parent.type.empty() ? Join(space, "Action") : parent.type;
      const std::vector<std::string> candidates =
          parent.type.empty() ? std::vector<std::string>{type} : Candidates(space, type);
      const auto found =
          std::find_if(candidates.begin(), candidates.end(), [&](const std::string& candidate) {
            return schema_.actions.contains({candidate, parent.id});
          });
      if (found == candidates.end()) {
        return Wrong(raw.where, "no action " + ToText(EntityUid{type, parent.id}));
      }
      out.ancestors.insert({*found, parent.id});
    }
    return {};
  }

  // Adds ancestors of ancestors until nothing is new; types may be in themselves.
  template <typename Map>
  static void Close(Map& map) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (auto& [name, info] : map) {
        auto all = info.ancestors;
        for (const auto& above : info.ancestors) {
          const auto& further = map.find(above)->second.ancestors;
          all.insert(further.begin(), further.end());
        }
        if (all.size() != info.ancestors.size()) {
          info.ancestors = std::move(all);
          changed = true;
        }
      }
    }
    for (auto& [name, info] : map) {
      for (const auto& above : info.ancestors) {
        map.find(above)->second.descendants.insert(name);
      }
    }
  }

  void CloseEntities() { Close(schema_.entities); }

  Status CloseActions() {
    Close(schema_.actions);
    for (const auto& [uid, action] : schema_.actions) {
      if (action.ancestors.contains(uid)) {
        return Wrong("", "action " + ToText(uid) + " is in itself: the groups have a cycle");
      }
    }
    return {};
  }

  const RawSchema& raw_;
  Schema schema_;
  std::map<std::string, CommonType> commons_;
  int depth_ = 0;
};

}  // namespace

Result<Schema> ResolveSchema(const RawSchema& raw) { return Resolver(raw).Run(); }

Result<Schema> ParseSchema(std::string_view text, SchemaFormat format) {
  RINGFENCE_ASSIGN(const RawSchema raw,
                   format == SchemaFormat::kCedar ? ParseCedarSchema(text) : ParseJsonSchema(text));
  return ResolveSchema(raw);
}

const EntityTypeInfo* Schema::Find(std::string_view type) const {
  const auto found = entities.find(type);
  return found == entities.end() ? nullptr : &found->second;
}

const ActionInfo* Schema::FindAction(const EntityUid& uid) const {
  const auto found = actions.find(uid);
  return found == actions.end() ? nullptr : &found->second;
}

bool EnumAllows(const Schema& schema, const EntityUid& uid) {
  const EntityTypeInfo* type = schema.Find(uid.type);
  return type == nullptr || type->enum_ids.empty() ||
         std::find(type->enum_ids.begin(), type->enum_ids.end(), uid.id) != type->enum_ids.end();
}

const EntityUid* FindBadEnum(const Schema& schema, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kEntity:
      return EnumAllows(schema, value.entity()) ? nullptr : &value.entity();
    case Value::Kind::kSet:
      for (const Value& element : value.set()) {
        if (const EntityUid* bad = FindBadEnum(schema, element)) {
          return bad;
        }
      }
      return nullptr;
    case Value::Kind::kRecord:
      for (const auto& [name, member] : value.record()) {
        if (const EntityUid* bad = FindBadEnum(schema, member)) {
          return bad;
        }
      }
      return nullptr;
    case Value::Kind::kBool:
    case Value::Kind::kLong:
    case Value::Kind::kString:
    case Value::Kind::kExtension:
      return nullptr;
  }
  return nullptr;
}

Status ValidateRequest(const Schema& schema, const EntityUid& principal, const EntityUid& action,
                       const EntityUid& resource, const Value& context) {
  const auto wrong = [](std::string field, std::string message) {
    return Error{Code::kInvalidArgument, "request: " + std::move(message), "", std::move(field)};
  };
  for (const auto& [field, uid] :
       {std::pair{"principal", &principal}, std::pair{"resource", &resource}}) {
    if (schema.Find(uid->type) == nullptr) {
      return wrong(field, "the schema has no entity type " + uid->type);
    }
    if (!EnumAllows(schema, *uid)) {
      return wrong(field, ToText(*uid) + " is not in its type's enumeration");
    }
  }
  const ActionInfo* info = schema.FindAction(action);
  if (info == nullptr) {
    return wrong("action", "the schema has no action " + ToText(action));
  }
  if (!info->principals.contains(principal.type)) {
    return wrong("principal",
                 ToText(action) + " does not apply to principals of type " + principal.type);
  }
  if (!info->resources.contains(resource.type)) {
    return wrong("resource",
                 ToText(action) + " does not apply to resources of type " + resource.type);
  }
  if (const EntityUid* bad = FindBadEnum(schema, context)) {
    return wrong("context", ToText(*bad) + " is not in its type's enumeration");
  }
  if (!HasType(context, *info->context)) {
    return wrong("context", "the context is not " + ToText(*info->context));
  }
  return {};
}

}  // namespace ringfence::cedar
