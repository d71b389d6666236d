#include "cedar/json.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <set>

#include "base/encoding.h"
#include "cedar/extension.h"
#include "cedar/limits.h"
#include "cedar/parser.h"

namespace ringfence::cedar {
namespace {

// Builds a value and refuses repeated names; base/json.h has the reasons, and a smaller depth.
struct Builder {
  static constexpr std::size_t max_object_size = boost::json::object::max_size();
  static constexpr std::size_t max_array_size = boost::json::array::max_size();
  static constexpr std::size_t max_key_size = boost::json::string::max_size();
  static constexpr std::size_t max_string_size = boost::json::string::max_size();
  using Ec = boost::json::error_code;
  using Text = boost::json::string_view;

  boost::json::value_stack stack;
  std::vector<std::set<std::string>> open;
  std::string key;
  std::string repeated;

  bool on_document_begin(Ec&) {
    stack.reset();
    return true;
  }
  bool on_document_end(Ec&) { return true; }
  bool on_object_begin(Ec&) {
    open.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t count, Ec&) {
    open.pop_back();
    stack.push_object(count);
    return true;
  }
  bool on_array_begin(Ec&) { return true; }
  bool on_array_end(std::size_t count, Ec&) {
    stack.push_array(count);
    return true;
  }
  bool on_key_part(Text part, std::size_t, Ec&) {
    key.append(part.data(), part.size());
    stack.push_chars(part);
    return true;
  }
  bool on_key(Text part, std::size_t, Ec& ec) {
    key.append(part.data(), part.size());
    stack.push_key(part);
    if (!open.back().insert(key).second) {
      repeated = key;
      ec = boost::json::error::syntax;
      return false;
    }
    key.clear();
    return true;
  }
  bool on_string_part(Text part, std::size_t, Ec&) {
    stack.push_chars(part);
    return true;
  }
  bool on_string(Text part, std::size_t, Ec&) {
    stack.push_string(part);
    return true;
  }
  bool on_number_part(Text, Ec&) { return true; }
  bool on_int64(std::int64_t number, Text, Ec&) {
    stack.push_int64(number);
    return true;
  }
  bool on_uint64(std::uint64_t number, Text, Ec&) {
    stack.push_uint64(number);
    return true;
  }
  bool on_double(double number, Text, Ec&) {
    stack.push_double(number);
    return true;
  }
  bool on_bool(bool value, Ec&) {
    stack.push_bool(value);
    return true;
  }
  bool on_null(Ec&) {
    stack.push_null();
    return true;
  }
  bool on_comment_part(Text, Ec&) { return true; }
  bool on_comment(Text, Ec&) { return true; }
};

Error Wrong(const std::string& where, std::string message) {
  return Error{Code::kInvalidArgument, (where.empty() ? "" : where + ": ") + std::move(message), "",
               where};
}

std::string Text(boost::json::string_view text) { return {text.data(), text.size()}; }

// {"fn": .., "arg": ..}
Result<Value> CallFromJson(const Json& json, const std::string& where) {
  const JsonObject* object = json.if_object();
  const Json* fn = object == nullptr ? nullptr : object->if_contains("fn");
  const Json* arg = object == nullptr ? nullptr : object->if_contains("arg");
  const Json* args = object == nullptr ? nullptr : object->if_contains("args");
  if (fn == nullptr || !fn->is_string() || (arg == nullptr) == (args == nullptr) ||
      object->size() != 2 || (args != nullptr && !args->is_array())) {
    return Wrong(where, "an extension value is {\"fn\": \"ip\", \"arg\": \"...\"}");
  }
  const ExtensionFunction* function = FindExtensionFunction(Text(fn->get_string()));
  if (function == nullptr) {
    return Wrong(where, Quoted(Text(fn->get_string())) + " is no extension function");
  }
  std::vector<Value> values;
  if (arg != nullptr) {
    RINGFENCE_ASSIGN(Value value, ValueFromJson(*arg, nullptr, where));
    values.push_back(std::move(value));
  } else {
    for (const Json& one : args->get_array()) {
      RINGFENCE_ASSIGN(Value value, ValueFromJson(one, nullptr, where));
      values.push_back(std::move(value));
    }
  }
  auto made = CallExtension(*function, values);
  if (!made.has_value()) {
    return Wrong(where, made.error().message);
  }
  return made;
}

Result<Value> ExtensionFromJson(const Json& json, Extension type, const std::string& where) {
  if (json.is_string()) {
    const auto made = ParseExtension(type, Text(json.get_string()));
    if (!made.has_value()) {
      return Wrong(where, made.error().message);
    }
    return Value::Extended(*made);
  }
  if (const JsonObject* object = json.if_object()) {
    if (const Json* inner = object->if_contains("__extn");
        inner != nullptr && object->size() == 1) {
      return CallFromJson(*inner, where);
    }
    return CallFromJson(json, where);
  }
  return Wrong(where, "expected " + std::string(Name(type)));
}

Result<Value> RecordFromJson(const Json& json, const Type& type, const std::string& where) {
  const JsonObject* object = json.if_object();
  if (object == nullptr) {
    return Wrong(where, "expected a record");
  }
  ValueRecord record;
  for (const auto& member : *object) {
    const std::string name = Text(member.key());
    const auto attribute = type.attributes.find(name);
    if (attribute == type.attributes.end()) {
      return Wrong(where, "the schema has no attribute " + Quoted(name) + " here");
    }
    RINGFENCE_ASSIGN(Value value, ValueFromJson(member.value(), attribute->second.type.get(),
                                                where + "." + name));
    record.emplace(name, std::move(value));
  }
  for (const auto& [name, attribute] : type.attributes) {
    if (attribute.required && !record.contains(name)) {
      return Wrong(where, "the attribute " + Quoted(name) + " is missing");
    }
  }
  return Value::Record(std::move(record));
}

Result<Value> SetFromJson(const JsonArray& array, const Type* element, const std::string& where) {
  std::vector<Value> elements;
  elements.reserve(array.size());
  for (const Json& one : array) {
    RINGFENCE_ASSIGN(Value value, ValueFromJson(one, element, where + "[]"));
    elements.push_back(std::move(value));
  }
  return Value::Set(std::move(elements));
}

Result<Value> PlainObject(const JsonObject& object, const std::string& where) {
  if (object.size() == 1) {
    if (const Json* entity = object.if_contains("__entity")) {
      RINGFENCE_ASSIGN(EntityUid uid, UidFromJson(*entity, where));
      return Value::Entity(std::move(uid));
    }
    if (const Json* call = object.if_contains("__extn")) {
      return CallFromJson(*call, where);
    }
    if (object.if_contains("__expr") != nullptr) {
      return Wrong(where, "the __expr escape is not supported any more");
    }
  }
  ValueRecord record;
  for (const auto& member : object) {
    const std::string name = Text(member.key());
    RINGFENCE_ASSIGN(Value value, ValueFromJson(member.value(), nullptr, where + "." + name));
    record.emplace(name, std::move(value));
  }
  return Value::Record(std::move(record));
}

}  // namespace

Result<Json> ReadJson(std::string_view text) {
  if (text.size() > kTextBytesMax) {
    return Error{Code::kExhausted,
                 "JSON is longer than " + std::to_string(kTextBytesMax) + " bytes"};
  }
  if (!IsUtf8(text)) {
    return Error{Code::kInvalidArgument, "JSON is not UTF-8"};
  }
  boost::json::parse_options options;
  options.max_depth = kJsonTextDepthMax;
  boost::json::basic_parser<Builder> parser(options);
  boost::json::error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (error || used < text.size()) {
    const std::string& repeated = parser.handler().repeated;
    const std::string at = " (at byte " + std::to_string(used) + ")";
    return Error{
        Code::kInvalidArgument,
        (!repeated.empty() ? "JSON: the member " + Quoted(repeated) + " is there twice"
                           : "not JSON: " + (error ? error.message() : "more text after it")) +
            at};
  }
  return parser.handler().stack.release();
}

Result<EntityUid> UidFromJson(const Json& json, const std::string& where) {
  const JsonObject* object = json.if_object();
  if (object != nullptr && object->size() == 1) {
    if (const Json* inner = object->if_contains("__entity")) {
      object = inner->if_object();
    }
  }
  const Json* type = object == nullptr ? nullptr : object->if_contains("type");
  const Json* id = object == nullptr ? nullptr : object->if_contains("id");
  if (type == nullptr || id == nullptr || !type->is_string() || !id->is_string() ||
      object->size() != 2) {
    return Wrong(where, "an entity is {\"type\": \"User\", \"id\": \"alice\"}");
  }
  const auto name = ParseTypeName(Text(type->get_string()));
  if (!name.has_value() || *name != std::string_view(type->get_string())) {
    return Wrong(where, Quoted(Text(type->get_string())) + " is no name of an entity type");
  }
  return EntityUid{*name, Text(id->get_string())};
}

Json ToJson(const EntityUid& uid) { return JsonObject{{"type", uid.type}, {"id", uid.id}}; }

Result<Value> ValueFromJson(const Json& json, const Type* expected, const std::string& where) {
  if (expected != nullptr) {
    switch (expected->kind) {
      case Type::Kind::kEntity: {
        RINGFENCE_ASSIGN(EntityUid uid, UidFromJson(json, where));
        return Value::Entity(std::move(uid));
      }
      case Type::Kind::kExtension:
        return ExtensionFromJson(json, expected->extension, where);
      case Type::Kind::kSet:
        if (!json.is_array()) {
          return Wrong(where, "expected a set");
        }
        return SetFromJson(json.get_array(), expected->element.get(), where);
      case Type::Kind::kRecord:
        return RecordFromJson(json, *expected, where);
      case Type::Kind::kNever:
      case Type::Kind::kTrue:
      case Type::Kind::kFalse:
      case Type::Kind::kBool:
      case Type::Kind::kLong:
      case Type::Kind::kString:
      case Type::Kind::kAnyEntity:
        break;
    }
  }
  switch (json.kind()) {
    case boost::json::kind::bool_:
      return Value::Bool(json.get_bool());
    case boost::json::kind::int64:
      return Value::Long(json.get_int64());
    case boost::json::kind::string:
      return Value::String(Text(json.get_string()));
    case boost::json::kind::array:
      return SetFromJson(json.get_array(), nullptr, where);
    case boost::json::kind::object:
      return PlainObject(json.get_object(), where);
    case boost::json::kind::uint64:
    case boost::json::kind::double_:
      return Wrong(where, "a number must be a whole one of 64 bits with sign");
    case boost::json::kind::null:
      return Wrong(where, "null is no Cedar value");
  }
  return Wrong(where, "no Cedar value");
}

Json ToJson(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kBool:
      return value.boolean();
    case Value::Kind::kLong:
      return value.number();
    case Value::Kind::kString:
      return Json(value.string());
    case Value::Kind::kEntity:
      return JsonObject{{"__entity", ToJson(value.entity())}};
    case Value::Kind::kExtension:
      return JsonObject{
          {"__extn", JsonObject{{"fn", std::string(ConstructorName(value.extension().type))},
                                {"arg", ToText(value.extension())}}}};
    case Value::Kind::kSet: {
      JsonArray array;
      for (const Value& element : value.set()) {
        array.push_back(ToJson(element));
      }
      return array;
    }
    case Value::Kind::kRecord: {
      JsonObject object;
      for (const auto& [name, member] : value.record()) {
        object.emplace(name, ToJson(member));
      }
      return object;
    }
  }
  return nullptr;
}

Result<Value> ContextFromJson(const Json& json, const Type* expected) {
  if (!json.is_object()) {
    return Wrong("context", "the context must be a record");
  }
  RINGFENCE_ASSIGN(Value value, ValueFromJson(json, expected, "context"));
  if (!value.is(Value::Kind::kRecord)) {
    return Wrong("context", "the context must be a record");
  }
  return value;
}

}  // namespace ringfence::cedar
