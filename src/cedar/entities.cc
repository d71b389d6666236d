#include "cedar/entities.h"

#include <algorithm>
#include <deque>
#include <functional>

#include "cedar/json.h"
#include "cedar/limits.h"

namespace ringfence::cedar {
namespace {

bool SameEntity(const Entity& a, const Entity& b) {
  return a.attributes == b.attributes && a.tags == b.tags && a.parents == b.parents;
}

Error Nonconformant(const EntityUid& uid, std::string what) {
  return Error{Code::kInvalidArgument, "entity " + ToText(uid) + ": " + std::move(what),
               "change the entity or the schema"};
}

Status CheckValues(const Schema& schema, const Entity& entity, const EntityTypeInfo& type) {
  for (const auto& [name, attribute] : type.attributes) {
    if (attribute.required && !entity.attributes.contains(name)) {
      return Nonconformant(entity.uid, "the attribute " + Quoted(name) + " is missing");
    }
  }
  for (const auto& [name, value] : entity.attributes) {
    const auto attribute = type.attributes.find(name);
    if (attribute == type.attributes.end()) {
      return Nonconformant(entity.uid, "the schema has no attribute " + Quoted(name));
    }
    if (!HasType(value, *attribute->second.type)) {
      return Nonconformant(entity.uid, "the attribute " + Quoted(name) + " is not " +
                                           ToText(*attribute->second.type));
    }
    if (const EntityUid* bad = FindBadEnum(schema, value)) {
      return Nonconformant(entity.uid, ToText(*bad) + " is not in its type's enumeration");
    }
  }
  for (const auto& [name, value] : entity.tags) {
    if (type.tags == nullptr) {
      return Nonconformant(entity.uid, "the schema gives this type no tags");
    }
    if (!HasType(value, *type.tags)) {
      return Nonconformant(entity.uid, "the tag " + Quoted(name) + " is not " + ToText(*type.tags));
    }
    if (const EntityUid* bad = FindBadEnum(schema, value)) {
      return Nonconformant(entity.uid, ToText(*bad) + " is not in its type's enumeration");
    }
  }
  return {};
}

Status Conforms(const Schema& schema, const Entity& entity) {
  if (IsActionType(entity.uid.type)) {
    const ActionInfo* action = schema.FindAction(entity.uid);
    if (action == nullptr) {
      return Nonconformant(entity.uid, "the schema has no such action");
    }
    const bool same = entity.attributes.empty() && entity.tags.empty() &&
                      std::equal(entity.ancestors.begin(), entity.ancestors.end(),
                                 action->ancestors.begin(), action->ancestors.end());
    return same ? Status() : Nonconformant(entity.uid, "differs from the action in the schema");
  }
  const EntityTypeInfo* type = schema.Find(entity.uid.type);
  if (type == nullptr) {
    return Nonconformant(entity.uid, "the schema has no type " + entity.uid.type);
  }
  if (!EnumAllows(schema, entity.uid)) {
    return Nonconformant(entity.uid, "is not in its type's enumeration");
  }
  RINGFENCE_TRY(CheckValues(schema, entity, *type));
  for (const EntityUid& ancestor : entity.ancestors) {
    if (!type->ancestors.contains(ancestor.type)) {
      return Nonconformant(entity.uid, "the schema does not allow it in " + ToText(ancestor));
    }
    if (!EnumAllows(schema, ancestor)) {
      return Nonconformant(entity.uid, ToText(ancestor) + " is not in its type's enumeration");
    }
  }
  return {};
}

const Type* AttributeOf(const EntityTypeInfo* type, const std::string& name) {
  if (type == nullptr) {
    return nullptr;
  }
  const auto found = type->attributes.find(name);
  return found == type->attributes.end() ? nullptr : found->second.type.get();
}

Result<ValueRecord> MembersFromJson(const Json& json, const std::string& where,
                                    const std::function<const Type*(const std::string&)>& type_of) {
  const JsonObject* object = json.if_object();
  if (object == nullptr) {
    return Error{Code::kInvalidArgument, where + ": must be an object"};
  }
  ValueRecord out;
  for (const auto& member : *object) {
    const std::string name(member.key());
    RINGFENCE_ASSIGN(Value value, ValueFromJson(member.value(), type_of(name), where + "." + name));
    out.emplace(name, std::move(value));
  }
  return out;
}

Result<Entity> EntityFromJson(const Json& json, const Schema* schema) {
  const JsonObject* object = json.if_object();
  const Json* uid = object == nullptr ? nullptr : object->if_contains("uid");
  if (uid == nullptr) {
    return Error{Code::kInvalidArgument,
                 "each entity must be {\"uid\": .., \"attrs\": {}, \"parents\": []}"};
  }
  Entity out;
  RINGFENCE_ASSIGN(out.uid, UidFromJson(*uid, "uid"));
  const std::string where = "entity " + ToText(out.uid);
  const EntityTypeInfo* type = schema == nullptr ? nullptr : schema->Find(out.uid.type);
  if (schema != nullptr && type == nullptr && !IsActionType(out.uid.type)) {
    return Nonconformant(out.uid, "the schema has no type " + out.uid.type);
  }
  for (const auto& member : *object) {
    const std::string_view name = member.key();
    if (name == "attrs") {
      RINGFENCE_ASSIGN(out.attributes,
                       MembersFromJson(member.value(), where, [&](const std::string& attribute) {
                         return AttributeOf(type, attribute);
                       }));
    } else if (name == "tags") {
      RINGFENCE_ASSIGN(out.tags,
                       MembersFromJson(member.value(), where + " tags", [&](const std::string&) {
                         return type == nullptr ? nullptr : type->tags.get();
                       }));
    } else if (name == "parents") {
      const JsonArray* parents = member.value().if_array();
      if (parents == nullptr) {
        return Error{Code::kInvalidArgument, where + ": parents must be an array"};
      }
      for (const Json& parent : *parents) {
        RINGFENCE_ASSIGN(EntityUid parent_uid, UidFromJson(parent, where + " parents"));
        out.parents.push_back(std::move(parent_uid));
      }
    } else if (name != "uid") {
      return Error{Code::kInvalidArgument, where + ": unknown member " + Quoted(name)};
    }
  }
  return out;
}

// Kahn's order from the roots down, so that a long chain needs no deep stack.
Status CloseHierarchy(std::vector<Entity>& list,
                      const std::unordered_map<EntityUid, std::size_t, EntityUidHash>& index) {
  std::vector<std::vector<std::size_t>> children(list.size());
  std::vector<std::size_t> waiting(list.size(), 0);
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (const EntityUid& parent : list[i].parents) {
      if (const auto found = index.find(parent); found != index.end()) {
        children[found->second].push_back(i);
        ++waiting[i];
      }
    }
  }
  std::deque<std::size_t> ready;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (waiting[i] == 0) {
      ready.push_back(i);
    }
  }
  std::size_t done = 0;
  std::size_t total = 0;
  while (!ready.empty()) {
    Entity& entity = list[ready.front()];
    for (const EntityUid& parent : entity.parents) {
      entity.ancestors.push_back(parent);
      if (const auto found = index.find(parent); found != index.end()) {
        const std::vector<EntityUid>& above = list[found->second].ancestors;
        entity.ancestors.insert(entity.ancestors.end(), above.begin(), above.end());
      }
    }
    std::sort(entity.ancestors.begin(), entity.ancestors.end());
    entity.ancestors.erase(std::unique(entity.ancestors.begin(), entity.ancestors.end()),
                           entity.ancestors.end());
    total += entity.ancestors.size();
    if (total > kAncestorsMax) {
      return Error{Code::kExhausted, "the entities have more than " +
                                         std::to_string(kAncestorsMax) + " ancestors in all"};
    }
    for (const std::size_t child : children[ready.front()]) {
      if (--waiting[child] == 0) {
        ready.push_back(child);
      }
    }
    ready.pop_front();
    ++done;
  }
  if (done == list.size()) {
    return {};
  }
  const auto stuck =
      std::find_if(waiting.begin(), waiting.end(), [](std::size_t count) { return count > 0; });
  return Error{Code::kInvalidArgument,
               "the hierarchy has a cycle, at or above " +
                   ToText(list[static_cast<std::size_t>(stuck - waiting.begin())].uid),
               "take one of the cycle's parents away"};
}

}  // namespace

Result<Entities> Entities::Make(std::vector<Entity> list, const Schema* schema) {
  Entities out;
  const auto add = [&](Entity entity) -> Status {
    std::sort(entity.parents.begin(), entity.parents.end());
    entity.parents.erase(std::unique(entity.parents.begin(), entity.parents.end()),
                         entity.parents.end());
    entity.ancestors.clear();
    const auto [found, fresh] = out.index_.emplace(entity.uid, out.list_.size());
    if (fresh) {
      out.list_.push_back(std::move(entity));
      return {};
    }
    return SameEntity(out.list_[found->second], entity)
               ? Status()
               : Error{Code::kConflict, "entity " + ToText(entity.uid) + " is there twice"};
  };
  if (list.size() > kEntitiesMax) {
    return Error{Code::kExhausted, "more than " + std::to_string(kEntitiesMax) + " entities"};
  }
  out.list_.reserve(list.size());
  out.index_.reserve(list.size());
  for (Entity& entity : list) {
    RINGFENCE_TRY(add(std::move(entity)));
  }
  if (schema != nullptr) {
    for (const auto& [uid, action] : schema->actions) {
      if (!out.index_.contains(uid)) {
        RINGFENCE_TRY(
            add({.uid = uid, .parents = {action.ancestors.begin(), action.ancestors.end()}}));
      }
    }
  }
  RINGFENCE_TRY(CloseHierarchy(out.list_, out.index_));
  if (schema != nullptr) {
    for (const Entity& entity : out.list_) {
      RINGFENCE_TRY(Conforms(*schema, entity));
    }
  }
  return out;
}

Result<Entities> Entities::FromJson(std::string_view text, const Schema* schema) {
  RINGFENCE_ASSIGN(const Json json, ReadJson(text));
  const JsonArray* array = json.if_array();
  if (array == nullptr) {
    return Error{Code::kInvalidArgument, "the entities must be a JSON array"};
  }
  std::vector<Entity> list;
  list.reserve(array->size());
  for (const Json& one : *array) {
    RINGFENCE_ASSIGN(Entity entity, EntityFromJson(one, schema));
    list.push_back(std::move(entity));
  }
  return Make(std::move(list), schema);
}

const Entity* Entities::Find(const EntityUid& uid) const {
  const auto found = index_.find(uid);
  return found == index_.end() ? nullptr : &list_[found->second];
}

bool Entities::IsAncestor(const EntityUid& ancestor, const EntityUid& child) const {
  const Entity* entity = Find(child);
  return entity != nullptr &&
         std::binary_search(entity->ancestors.begin(), entity->ancestors.end(), ancestor);
}

std::string ToJsonText(const Entities& entities) {
  JsonArray array;
  for (const Entity& entity : entities.all()) {
    JsonArray parents;
    for (const EntityUid& parent : entity.parents) {
      parents.push_back(ToJson(parent));
    }
    JsonObject object{{"uid", ToJson(entity.uid)},
                      {"attrs", ToJson(Value::Record(entity.attributes))},
                      {"parents", std::move(parents)}};
    if (!entity.tags.empty()) {
      object.emplace("tags", ToJson(Value::Record(entity.tags)));
    }
    array.push_back(std::move(object));
  }
  return PrettyJson(array);
}

}  // namespace ringfence::cedar
