#pragma once

// The types of Cedar's validator.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cedar/value.h"

namespace ringfence::cedar {

struct Type;
using TypePtr = std::shared_ptr<const Type>;  // shared: a common type is one type in many places

struct AttributeType {
  TypePtr type;
  bool required = true;
};
using Attributes = std::map<std::string, AttributeType, std::less<>>;

struct Type {
  enum class Kind : std::uint8_t {
    kNever,
    kTrue,
    kFalse,
    kBool,
    kLong,
    kString,
    kSet,        // element; none: a set of anything
    kRecord,     // attributes
    kEntity,     // one of these entity types
    kAnyEntity,  // of any type
    kExtension,
  };
  Kind kind = Kind::kNever;
  TypePtr element = {};
  Attributes attributes = {};
  std::set<std::string> entities = {};
  Extension extension = Extension::kDecimal;
  bool open = false;  // a record that may have more attributes: a bound of different ones

  static TypePtr Simple(Kind kind);
  static TypePtr Bool(bool value) { return Simple(value ? Kind::kTrue : Kind::kFalse); }
  static TypePtr Set(TypePtr element);
  static TypePtr Record(Attributes attributes);
  static TypePtr Entity(std::string type);
  static TypePtr Extended(Extension extension);

  bool is_bool() const {
    return kind == Kind::kTrue || kind == Kind::kFalse || kind == Kind::kBool;
  }
  bool is_entity() const { return kind == Kind::kEntity || kind == Kind::kAnyEntity; }
};

enum class ValidationMode : std::uint8_t { kStrict, kPermissive };

bool SameType(const Type& a, const Type& b);
bool IsSubtype(const Type& a, const Type& b, ValidationMode mode);
// Null when there is none.
TypePtr LeastUpperBound(const TypePtr& a, const TypePtr& b, ValidationMode mode);
// No value has both types. False when not known.
bool AreDisjoint(const Type& a, const Type& b);
std::string ToText(const Type& type);

// Is the value of this type? Entities by their type's name only.
bool HasType(const Value& value, const Type& type);

}  // namespace ringfence::cedar
