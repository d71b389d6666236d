#pragma once

// A schema, resolved: every name looked up, hierarchies closed.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cedar/types.h"

namespace ringfence::cedar {

struct EntityTypeInfo {
  std::string name;
  Attributes attributes = {};
  TypePtr tags = {};                       // null: entities of this type have no tags
  std::vector<std::string> enum_ids = {};  // not empty: these are all entities there are
  std::set<std::string> descendants = {};  // types whose entities may be in one of this type
  std::set<std::string> ancestors = {};
};

struct ActionInfo {
  EntityUid uid;
  std::set<std::string> principals = {};
  std::set<std::string> resources = {};
  TypePtr context = {};                  // a record
  std::set<EntityUid> ancestors = {};    // closed
  std::set<EntityUid> descendants = {};  // closed
};

struct Schema {
  std::map<std::string, EntityTypeInfo, std::less<>> entities;
  std::map<EntityUid, ActionInfo> actions;

  const EntityTypeInfo* Find(std::string_view type) const;
  const ActionInfo* FindAction(const EntityUid& uid) const;
};

enum class SchemaFormat : std::uint8_t { kCedar, kJson };
Result<Schema> ParseSchema(std::string_view text, SchemaFormat format);

// The type's own enumeration allows this entity; or it has none.
bool EnumAllows(const Schema& schema, const EntityUid& uid);
// The first entity within the value that its type's enumeration does not have.
const EntityUid* FindBadEnum(const Schema& schema, const Value& value);

// What a request must be for its action.
Status ValidateRequest(const Schema& schema, const EntityUid& principal, const EntityUid& action,
                       const EntityUid& resource, const Value& context);

}  // namespace ringfence::cedar
