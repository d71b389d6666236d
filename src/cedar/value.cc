#include "cedar/value.h"

#include <algorithm>
#include <cstdio>

#include "cedar/extension.h"

namespace ringfence::cedar {

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\0':
        out += "\\0";
        break;
      default:
        if (byte < 0x20 || byte == 0x7f) {
          std::array<char, 16> code{};
          std::snprintf(code.data(), code.size(), "\\u{%x}", byte);
          out += code.data();
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string ToText(const EntityUid& uid) { return uid.type + "::" + Quoted(uid.id); }

bool IsActionType(std::string_view type) {
  constexpr std::string_view kAction = "Action";
  return type == kAction || (type.size() > kAction.size() + 2 && type.ends_with(kAction) &&
                             type.substr(type.size() - kAction.size() - 2, 2) == "::");
}

std::string_view Name(Extension extension) {
  switch (extension) {
    case Extension::kDecimal:
      return "decimal";
    case Extension::kIp:
      return "ipaddr";
    case Extension::kDatetime:
      return "datetime";
    case Extension::kDuration:
      return "duration";
  }
  return "";
}

std::string_view Name(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::kBool:
      return "bool";
    case Value::Kind::kLong:
      return "long";
    case Value::Kind::kString:
      return "string";
    case Value::Kind::kEntity:
      return "entity";
    case Value::Kind::kSet:
      return "set";
    case Value::Kind::kRecord:
      return "record";
    case Value::Kind::kExtension:
      return "extension value";
  }
  return "";
}

Value Value::String(std::string text) {
  return Value(State(std::make_shared<const std::string>(std::move(text))));
}

Value Value::Entity(EntityUid uid) {
  return Value(State(std::make_shared<const EntityUid>(std::move(uid))));
}

Value Value::Set(std::vector<Value> elements) {
  std::sort(elements.begin(), elements.end());
  elements.erase(std::unique(elements.begin(), elements.end()), elements.end());
  return Value(State(std::make_shared<const ValueSet>(std::move(elements))));
}

Value Value::Record(ValueRecord members) {
  return Value(State(std::make_shared<const ValueRecord>(std::move(members))));
}

Value Value::Extended(ExtensionValue value) {
  return Value(State(std::make_shared<const ExtensionValue>(value)));
}

std::strong_ordering Value::operator<=>(const Value& other) const {
  if (kind() != other.kind()) {
    return kind() <=> other.kind();
  }
  switch (kind()) {
    case Kind::kBool:
      return boolean() <=> other.boolean();
    case Kind::kLong:
      return number() <=> other.number();
    case Kind::kString:
      return string() <=> other.string();
    case Kind::kEntity:
      return entity() <=> other.entity();
    case Kind::kExtension:
      return extension() <=> other.extension();
    case Kind::kSet:
      return std::lexicographical_compare_three_way(set().begin(), set().end(), other.set().begin(),
                                                    other.set().end());
    case Kind::kRecord:
      return std::lexicographical_compare_three_way(
          record().begin(), record().end(), other.record().begin(), other.record().end(),
          [](const auto& a, const auto& b) {
            const std::strong_ordering by_key = a.first <=> b.first;
            return by_key != 0 ? by_key : a.second <=> b.second;
          });
  }
  return std::strong_ordering::equal;
}

std::string ToText(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kBool:
      return value.boolean() ? "true" : "false";
    case Value::Kind::kLong:
      return std::to_string(value.number());
    case Value::Kind::kString:
      return Quoted(value.string());
    case Value::Kind::kEntity:
      return ToText(value.entity());
    case Value::Kind::kExtension: {
      const ExtensionValue& extension = value.extension();
      return std::string(ConstructorName(extension.type)) + "(" + Quoted(ToText(extension)) + ")";
    }
    case Value::Kind::kSet: {
      std::string out = "[";
      for (const Value& element : value.set()) {
        out += (out.size() > 1 ? ", " : "") + ToText(element);
      }
      return out + "]";
    }
    case Value::Kind::kRecord: {
      std::string out = "{";
      for (const auto& [key, member] : value.record()) {
        out += (out.size() > 1 ? ", " : "") + Quoted(key) + ": " + ToText(member);
      }
      return out + "}";
    }
  }
  return "";
}

}  // namespace ringfence::cedar
