// The JSON syntax of schemas.

#include <algorithm>
#include <initializer_list>

#include "cedar/json.h"
#include "cedar/limits.h"
#include "cedar/raw_schema.h"

namespace ringfence::cedar {
namespace {

Error Wrong(const std::string& where, const std::string& message) {
  return Error{Code::kInvalidArgument, where + ": " + message, "", where};
}

// An object with no members but these.
Result<const JsonObject*> Object(const Json& json, const std::string& where,
                                 std::initializer_list<std::string_view> members) {
  const JsonObject* object = json.if_object();
  if (object == nullptr) {
    return Wrong(where, "must be an object");
  }
  for (const auto& member : *object) {
    const std::string_view name = member.key();
    if (std::find(members.begin(), members.end(), name) == members.end()) {
      return Wrong(where, "unknown member " + Quoted(name));
    }
  }
  return object;
}

Result<std::string> Text(const Json& json, const std::string& where) {
  if (!json.is_string()) {
    return Wrong(where, "must be text");
  }
  return std::string(json.get_string());
}

Result<std::vector<std::string>> Texts(const Json& json, const std::string& where) {
  const JsonArray* array = json.if_array();
  if (array == nullptr) {
    return Wrong(where, "must be an array");
  }
  std::vector<std::string> out;
  for (const Json& one : *array) {
    RINGFENCE_ASSIGN(std::string text, Text(one, where));
    out.push_back(std::move(text));
  }
  return out;
}

Result<RawType> TypeFromJson(const Json& json, const std::string& where,
                             bool with_required = false);

Result<RawType> RecordFromJson(const JsonObject& object, const std::string& where) {
  RawType out;
  out.where = where;
  const Json* attributes = object.if_contains("attributes");
  if (attributes == nullptr || !attributes->is_object()) {
    return Wrong(where, "a record needs attributes");
  }
  if (const Json* open = object.if_contains("additionalAttributes")) {
    if (!open->is_bool() || open->get_bool()) {
      return Wrong(where, "additionalAttributes can only be false");
    }
  }
  for (const auto& member : attributes->get_object()) {
    const std::string name(member.key());
    const std::string inner = where + "." + name;
    RawAttribute attribute{name, {}, true};
    RINGFENCE_ASSIGN(attribute.type, TypeFromJson(member.value(), inner, true));
    if (const Json* required = member.value().get_object().if_contains("required")) {
      if (!required->is_bool()) {
        return Wrong(inner, "required must be true or false");
      }
      attribute.required = required->get_bool();
    }
    out.attributes.push_back(std::move(attribute));
  }
  return out;
}

Result<RawType> TypeFromJson(const Json& json, const std::string& where, bool with_required) {
  if (std::count(where.begin(), where.end(), '.') > kNestingMax) {
    return Wrong("schema", "types nested too deeply");
  }
  RINGFENCE_ASSIGN(const JsonObject* object,
                   Object(json, where,
                          {"type", "element", "attributes", "additionalAttributes", "name",
                           "annotations", "required"}));
  if (!with_required && object->if_contains("required") != nullptr) {
    return Wrong(where, "required belongs to attributes only");
  }
  const Json* kind = object->if_contains("type");
  if (kind == nullptr) {
    return Wrong(where, "a type needs the member type");
  }
  RINGFENCE_ASSIGN(const std::string name, Text(*kind, where + ".type"));
  RawType out;
  out.where = where;
  if (name == "Record") {
    return RecordFromJson(*object, where);
  }
  if (name == "Set") {
    const Json* element = object->if_contains("element");
    if (element == nullptr) {
      return Wrong(where, "a set needs an element");
    }
    out.kind = RawType::Kind::kSet;
    RINGFENCE_ASSIGN(RawType inner, TypeFromJson(*element, where + ".element"));
    out.element.push_back(std::move(inner));
    return out;
  }
  if (name == "Entity" || name == "Extension" || name == "EntityOrCommon") {
    const Json* target = object->if_contains("name");
    if (target == nullptr) {
      return Wrong(where, "needs a name");
    }
    out.kind = name == "Entity"      ? RawType::Kind::kEntity
               : name == "Extension" ? RawType::Kind::kExtension
                                     : RawType::Kind::kName;
    RINGFENCE_ASSIGN(out.name, Text(*target, where + ".name"));
    return out;
  }
  out.kind = name == "Long"      ? RawType::Kind::kLong
             : name == "String"  ? RawType::Kind::kString
             : name == "Boolean" ? RawType::Kind::kBool
                                 : RawType::Kind::kCommon;
  out.name = name;
  return out;
}

Result<RawEntityType> EntityFromJson(const Json& json, const std::string& where) {
  RINGFENCE_ASSIGN(const JsonObject* object,
                   Object(json, where, {"memberOfTypes", "shape", "tags", "enum", "annotations"}));
  RawEntityType out;
  out.where = where;
  if (const Json* ids = object->if_contains("enum")) {
    RINGFENCE_ASSIGN(out.enum_ids, Texts(*ids, where + ".enum"));
    if (out.enum_ids.empty()) {
      return Wrong(where, "an enumeration needs at least one id");
    }
    if (object->size() > 1U + (object->if_contains("annotations") != nullptr ? 1U : 0U)) {
      return Wrong(where, "an enumeration has no shape, tags or parents");
    }
    return out;
  }
  if (const Json* member_of = object->if_contains("memberOfTypes")) {
    RINGFENCE_ASSIGN(out.member_of, Texts(*member_of, where + ".memberOfTypes"));
  }
  if (const Json* shape = object->if_contains("shape")) {
    RINGFENCE_ASSIGN(out.shape, TypeFromJson(*shape, where + ".shape"));
  }
  if (const Json* tags = object->if_contains("tags")) {
    RINGFENCE_ASSIGN(out.tags, TypeFromJson(*tags, where + ".tags"));
  }
  return out;
}

Result<RawAction> ActionFromJson(const Json& json, const std::string& where) {
  RINGFENCE_ASSIGN(const JsonObject* object,
                   Object(json, where, {"memberOf", "appliesTo", "attributes", "annotations"}));
  RawAction out;
  out.where = where;
  if (const Json* attributes = object->if_contains("attributes")) {
    if (!attributes->is_null() && (!attributes->is_object() || !attributes->get_object().empty())) {
      return Wrong(where, "actions cannot have attributes");
    }
  }
  if (const Json* member_of = object->if_contains("memberOf");
      member_of != nullptr && !member_of->is_null()) {
    const JsonArray* array = member_of->if_array();
    if (array == nullptr) {
      return Wrong(where + ".memberOf", "must be an array");
    }
    for (const Json& one : *array) {
      RINGFENCE_ASSIGN(const JsonObject* parent, Object(one, where + ".memberOf", {"id", "type"}));
      RawActionParent& added = out.parents.emplace_back();
      const Json* id = parent->if_contains("id");
      if (id == nullptr) {
        return Wrong(where + ".memberOf", "needs an id");
      }
      RINGFENCE_ASSIGN(added.id, Text(*id, where + ".memberOf.id"));
      if (const Json* type = parent->if_contains("type"); type != nullptr && !type->is_null()) {
        RINGFENCE_ASSIGN(added.type, Text(*type, where + ".memberOf.type"));
      }
    }
  }
  const Json* applies = object->if_contains("appliesTo");
  if (applies == nullptr || applies->is_null()) {
    return out;
  }
  const std::string inner = where + ".appliesTo";
  RINGFENCE_ASSIGN(const JsonObject* spec,
                   Object(*applies, inner, {"principalTypes", "resourceTypes", "context"}));
  const Json* principals = spec->if_contains("principalTypes");
  const Json* resources = spec->if_contains("resourceTypes");
  if (principals == nullptr || resources == nullptr) {
    return Wrong(inner, "needs principalTypes and resourceTypes");
  }
  RINGFENCE_ASSIGN(out.principals, Texts(*principals, inner + ".principalTypes"));
  RINGFENCE_ASSIGN(out.resources, Texts(*resources, inner + ".resourceTypes"));
  if (const Json* context = spec->if_contains("context")) {
    RINGFENCE_ASSIGN(out.context, TypeFromJson(*context, inner + ".context"));
  }
  return out;
}

Result<RawNamespace> NamespaceFromJson(const Json& json, const std::string& where) {
  RINGFENCE_ASSIGN(const JsonObject* object,
                   Object(json, where, {"entityTypes", "actions", "commonTypes", "annotations"}));
  RawNamespace out;
  const auto members = [&](std::string_view name) -> Result<const JsonObject*> {
    static const JsonObject kNone;
    const Json* found = object->if_contains(name);
    if (found == nullptr) {
      return name == "commonTypes" ? Result<const JsonObject*>(&kNone)
                                   : Wrong(where, "needs " + std::string(name));
    }
    return found->is_object() ? Result<const JsonObject*>(&found->get_object())
                              : Wrong(where, std::string(name) + " must be an object");
  };
  RINGFENCE_ASSIGN(const JsonObject* common, members("commonTypes"));
  for (const auto& member : *common) {
    const std::string name(member.key());
    RINGFENCE_ASSIGN(out.common[name], TypeFromJson(member.value(), name));
  }
  RINGFENCE_ASSIGN(const JsonObject* entities, members("entityTypes"));
  for (const auto& member : *entities) {
    const std::string name(member.key());
    RINGFENCE_ASSIGN(out.entities[name], EntityFromJson(member.value(), name));
  }
  RINGFENCE_ASSIGN(const JsonObject* actions, members("actions"));
  for (const auto& member : *actions) {
    const std::string name(member.key());
    RINGFENCE_ASSIGN(out.actions[name], ActionFromJson(member.value(), "action " + Quoted(name)));
  }
  return out;
}

}  // namespace

Result<RawSchema> ParseJsonSchema(std::string_view text) {
  RINGFENCE_ASSIGN(const Json json, ReadJson(text));
  const JsonObject* object = json.if_object();
  if (object == nullptr) {
    return Wrong("schema", "must be an object of namespaces");
  }
  RawSchema out;
  for (const auto& member : *object) {
    const std::string name(member.key());
    RINGFENCE_ASSIGN(out[name], NamespaceFromJson(member.value(), "namespace " + Quoted(name)));
  }
  return out;
}

}  // namespace ringfence::cedar
