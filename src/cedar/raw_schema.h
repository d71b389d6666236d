#pragma once

// A schema as written, in either syntax, before names are looked up. For this folder only.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cedar/schema.h"

namespace ringfence::cedar {

struct RawAttribute;

struct RawType {
  enum class Kind : std::uint8_t {
    kName,       // a common type or an entity type
    kCommon,     // a common type only
    kEntity,     // an entity type only
    kExtension,  // an extension type only
    kBool,
    kLong,
    kString,
    kSet,     // element
    kRecord,  // attributes
  };
  Kind kind = Kind::kRecord;
  std::string name = {};
  std::vector<RawType> element = {};  // one, of a set
  std::vector<RawAttribute> attributes;
  std::string where = {};  // "3:14", or the path in JSON
};

struct RawAttribute {
  std::string name;
  RawType type;
  bool required = true;
};

struct RawEntityType {
  std::vector<std::string> member_of = {};
  RawType shape = {};
  std::optional<RawType> tags = {};
  std::vector<std::string> enum_ids = {};
  std::string where = {};
};

struct RawActionParent {
  std::string type;  // empty: of the same type as the action
  std::string id;
};

struct RawAction {
  std::vector<RawActionParent> parents = {};
  std::vector<std::string> principals = {};
  std::vector<std::string> resources = {};
  RawType context = {};
  std::string where = {};
};

struct RawNamespace {
  std::map<std::string, RawType> common = {};
  std::map<std::string, RawEntityType> entities = {};
  std::map<std::string, RawAction> actions = {};
};

using RawSchema = std::map<std::string, RawNamespace>;  // by name; "" is the empty one

Result<RawSchema> ParseCedarSchema(std::string_view text);
Result<RawSchema> ParseJsonSchema(std::string_view text);
Result<Schema> ResolveSchema(const RawSchema& raw);

}  // namespace ringfence::cedar
