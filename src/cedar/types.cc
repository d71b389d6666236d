#include "cedar/types.h"

#include <algorithm>
#include <array>

namespace ringfence::cedar {
namespace {

using Kind = Type::Kind;

bool RecordSubtype(const Type& a, const Type& b, ValidationMode mode) {
  const bool strict = mode == ValidationMode::kStrict;
  const bool wider = b.open && !strict;
  if ((a.open && !b.open) || (!wider && a.attributes.size() != b.attributes.size())) {
    return false;
  }
  return std::all_of(b.attributes.begin(), b.attributes.end(), [&](const auto& entry) {
    const auto own = a.attributes.find(entry.first);
    if (own == a.attributes.end() || !IsSubtype(*own->second.type, *entry.second.type, mode)) {
      return false;
    }
    return strict ? own->second.required == entry.second.required
                  : own->second.required || !entry.second.required;
  });
}

TypePtr RecordBound(const Type& a, const Type& b, ValidationMode mode) {
  const bool strict = mode == ValidationMode::kStrict;
  if (strict && a.attributes.size() != b.attributes.size()) {
    return nullptr;
  }
  Attributes out;
  for (const auto& [name, left] : a.attributes) {
    const auto right = b.attributes.find(name);
    TypePtr type = right == b.attributes.end()
                       ? nullptr
                       : LeastUpperBound(left.type, right->second.type, mode);
    if (type == nullptr || (strict && left.required != right->second.required)) {
      if (strict) {
        return nullptr;
      }
      continue;
    }
    out.emplace(name, AttributeType{std::move(type), left.required && right->second.required});
  }
  auto bound = std::make_shared<Type>(*Type::Record(std::move(out)));
  bound->open = a.open || b.open || bound->attributes.size() != a.attributes.size() ||
                bound->attributes.size() != b.attributes.size();
  return bound;
}

}  // namespace

TypePtr Type::Simple(Kind kind) {
  static const std::array<TypePtr, 11> kTypes = [] {
    std::array<TypePtr, 11> types;
    for (std::size_t i = 0; i < types.size(); ++i) {
      auto type = std::make_shared<Type>();
      type->kind = static_cast<Kind>(i);
      types[i] = type;
    }
    return types;
  }();
  return kTypes[static_cast<std::size_t>(kind)];
}

TypePtr Type::Set(TypePtr element) {
  auto type = std::make_shared<Type>();
  type->kind = Kind::kSet;
  type->element = std::move(element);
  return type;
}

TypePtr Type::Record(Attributes attributes) {
  auto type = std::make_shared<Type>();
  type->kind = Kind::kRecord;
  type->attributes = std::move(attributes);
  return type;
}

TypePtr Type::Entity(std::string name) {
  auto type = std::make_shared<Type>();
  type->kind = Kind::kEntity;
  type->entities.insert(std::move(name));
  return type;
}

TypePtr Type::Extended(Extension extension) {
  auto type = std::make_shared<Type>();
  type->kind = Kind::kExtension;
  type->extension = extension;
  return type;
}

bool SameType(const Type& a, const Type& b) {
  if (&a == &b) {
    return true;
  }
  if (a.kind != b.kind || a.open != b.open || a.entities != b.entities ||
      a.extension != b.extension || (a.element == nullptr) != (b.element == nullptr) ||
      (a.element != nullptr && !SameType(*a.element, *b.element))) {
    return false;
  }
  return std::equal(a.attributes.begin(), a.attributes.end(), b.attributes.begin(),
                    b.attributes.end(), [](const auto& x, const auto& y) {
                      return x.first == y.first && x.second.required == y.second.required &&
                             SameType(*x.second.type, *y.second.type);
                    });
}

bool IsSubtype(const Type& a, const Type& b, ValidationMode mode) {
  if (&a == &b || a.kind == Kind::kNever) {
    return true;
  }
  const bool strict = mode == ValidationMode::kStrict;
  switch (b.kind) {
    case Kind::kBool:
      return a.is_bool();
    case Kind::kNever:
    case Kind::kTrue:
    case Kind::kFalse:
    case Kind::kLong:
    case Kind::kString:
      return a.kind == b.kind;
    case Kind::kExtension:
      return a.kind == b.kind && a.extension == b.extension;
    case Kind::kSet:
      if (a.kind != Kind::kSet || b.element == nullptr) {
        return a.kind == Kind::kSet;
      }
      return a.element != nullptr && IsSubtype(*a.element, *b.element, mode);
    case Kind::kAnyEntity:
      return a.kind == Kind::kAnyEntity || (a.kind == Kind::kEntity && !strict);
    case Kind::kEntity:
      if (a.kind != Kind::kEntity) {
        return false;
      }
      return strict ? a.entities == b.entities
                    : std::includes(b.entities.begin(), b.entities.end(), a.entities.begin(),
                                    a.entities.end());
    case Kind::kRecord:
      return a.kind == Kind::kRecord && RecordSubtype(a, b, mode);
  }
  return false;
}

TypePtr LeastUpperBound(const TypePtr& a, const TypePtr& b, ValidationMode mode) {
  if (IsSubtype(*a, *b, mode)) {
    return b;
  }
  if (IsSubtype(*b, *a, mode)) {
    return a;
  }
  if (a->is_bool() && b->is_bool()) {
    return Type::Simple(Kind::kBool);
  }
  if (a->kind != b->kind) {
    return a->is_entity() && b->is_entity() && mode == ValidationMode::kPermissive
               ? Type::Simple(Kind::kAnyEntity)
               : nullptr;
  }
  if (a->kind == Kind::kSet) {
    if (a->element == nullptr || b->element == nullptr) {
      return Type::Set(nullptr);
    }
    TypePtr element = LeastUpperBound(a->element, b->element, mode);
    return element == nullptr ? nullptr : Type::Set(std::move(element));
  }
  if (a->kind == Kind::kEntity && mode == ValidationMode::kPermissive) {
    auto both = std::make_shared<Type>(*a);
    both->entities.insert(b->entities.begin(), b->entities.end());
    return both;
  }
  return a->kind == Kind::kRecord ? RecordBound(*a, *b, mode) : nullptr;
}

bool AreDisjoint(const Type& a, const Type& b) {
  if (a.kind != Kind::kEntity || b.kind != Kind::kEntity) {
    return false;
  }
  return std::none_of(a.entities.begin(), a.entities.end(),
                      [&](const std::string& name) { return b.entities.contains(name); });
}

std::string ToText(const Type& type) {
  switch (type.kind) {
    case Kind::kNever:
      return "nothing";
    case Kind::kTrue:
      return "Bool (always true)";
    case Kind::kFalse:
      return "Bool (always false)";
    case Kind::kBool:
      return "Bool";
    case Kind::kLong:
      return "Long";
    case Kind::kString:
      return "String";
    case Kind::kSet:
      return type.element == nullptr ? "Set" : "Set<" + ToText(*type.element) + ">";
    case Kind::kAnyEntity:
      return "an entity";
    case Kind::kExtension:
      return std::string(Name(type.extension));
    case Kind::kEntity: {
      std::string out;
      for (const std::string& name : type.entities) {
        out += (out.empty() ? "" : " or ") + name;
      }
      return out;
    }
    case Kind::kRecord: {
      std::string out = "{";
      for (const auto& [name, attribute] : type.attributes) {
        out += (out.size() > 1 ? ", " : "") + Quoted(name) + (attribute.required ? ": " : "?: ") +
               ToText(*attribute.type);
        if (out.size() > 200) {
          return out + ", ...}";
        }
      }
      return out + "}";
    }
  }
  return "";
}

bool HasType(const Value& value, const Type& type) {
  switch (type.kind) {
    case Kind::kNever:
      return false;
    case Kind::kTrue:
    case Kind::kFalse:
      return value.is(Value::Kind::kBool) && value.boolean() == (type.kind == Kind::kTrue);
    case Kind::kBool:
      return value.is(Value::Kind::kBool);
    case Kind::kLong:
      return value.is(Value::Kind::kLong);
    case Kind::kString:
      return value.is(Value::Kind::kString);
    case Kind::kAnyEntity:
      return value.is(Value::Kind::kEntity);
    case Kind::kEntity:
      return value.is(Value::Kind::kEntity) && type.entities.contains(value.entity().type);
    case Kind::kExtension:
      return value.is(Value::Kind::kExtension) && value.extension().type == type.extension;
    case Kind::kSet:
      return value.is(Value::Kind::kSet) &&
             (type.element == nullptr ||
              std::all_of(value.set().begin(), value.set().end(),
                          [&](const Value& element) { return HasType(element, *type.element); }));
    case Kind::kRecord: {
      if (!value.is(Value::Kind::kRecord)) {
        return false;
      }
      const ValueRecord& record = value.record();
      for (const auto& [name, member] : record) {
        const auto attribute = type.attributes.find(name);
        if (attribute == type.attributes.end() || !HasType(member, *attribute->second.type)) {
          return false;
        }
      }
      return std::all_of(type.attributes.begin(), type.attributes.end(), [&](const auto& entry) {
        return !entry.second.required || record.contains(entry.first);
      });
    }
  }
  return false;
}

}  // namespace ringfence::cedar
