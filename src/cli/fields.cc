#include "cli/fields.h"

namespace ringfence::cli {

const Json* Field(const Json& value, std::string_view name) {
  const auto* object = value.if_object();
  return object == nullptr
             ? nullptr
             : object->if_contains(boost::json::string_view(name.data(), name.size()));
}

std::string TextOf(const Json& value, std::string_view name) {
  const Json* field = Field(value, name);
  if (field == nullptr) {
    return "";
  }
  if (const auto* text = field->if_string()) {
    return {text->data(), text->size()};
  }
  if (const bool* flag = field->if_bool()) {
    return *flag ? "yes" : "no";
  }
  const auto number = IntOf(value, name);
  return number ? std::to_string(*number) : "";
}

std::optional<std::int64_t> IntOf(const Json& value, std::string_view name) {
  const Json* field = Field(value, name);
  const std::int64_t* number = field == nullptr ? nullptr : field->if_int64();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

bool BoolOf(const Json& value, std::string_view name) {
  const Json* field = Field(value, name);
  const bool* flag = field == nullptr ? nullptr : field->if_bool();
  return flag != nullptr && *flag;
}

const JsonArray& ArrayOf(const Json& value, std::string_view name) {
  static const JsonArray kNone;
  const Json* field = Field(value, name);
  const JsonArray* array = field == nullptr ? nullptr : field->if_array();
  return array == nullptr ? kNone : *array;
}

std::string JoinOf(const Json& value, std::string_view name, std::string_view between) {
  std::string all;
  for (const Json& element : ArrayOf(value, name)) {
    if (const auto* text = element.if_string()) {
      all += all.empty() ? "" : between;
      all += std::string_view(text->data(), text->size());
    }
  }
  return all;
}

}  // namespace ringfence::cli
