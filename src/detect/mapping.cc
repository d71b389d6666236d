#include "detect/mapping.h"

#include <map>

#include "detect/ip_range.h"
#include "os/file.h"

namespace ringfence::detect {
namespace {

constexpr std::size_t kMappingBytesMax = 1024 * 1024;
constexpr std::size_t kRowsMax = 10'000;
constexpr std::size_t kStepsMax = 16;

Result<std::vector<std::string>> Steps(std::string_view text, const std::string& where) {
  std::vector<std::string> steps;
  for (;;) {
    const std::size_t dot = text.find('.');
    steps.emplace_back(text.substr(0, dot));
    if (steps.back().empty() || steps.size() > kStepsMax) {
      return Error{
          Code::kInvalidArgument, where + " is not a path such as src_endpoint.ip", {}, where};
    }
    if (dot == std::string_view::npos) {
      return steps;
    }
    text.remove_prefix(dot + 1);
  }
}

// The member at the end of the steps. A flat event has it under its whole name.
const Json* Find(const Json& json, const std::vector<std::string>& steps) {
  const Json* at = &json;
  for (const std::string& step : steps) {
    at = at->is_object() ? at->get_object().if_contains(step) : nullptr;
    if (at == nullptr) {
      break;
    }
  }
  if (at == nullptr && steps.size() > 1) {
    std::string flat;
    for (const std::string& step : steps) {
      flat += (flat.empty() ? "" : ".") + step;
    }
    at = json.get_object().if_contains(flat);
  }
  return at == nullptr || at->is_null() ? nullptr : at;
}

// "ip-addr" to what the address is.
std::string TypeFor(const std::string& type, const Json& value) {
  if (type != "ip-addr") {
    return type;
  }
  const auto range =
      value.is_string() ? ParseIpRange(std::string_view(value.get_string())) : std::nullopt;
  return range && range->v6 ? "ipv6-addr" : range ? "ipv4-addr" : "domain-name";
}

void Put(JsonObject& object, const std::vector<std::string>& steps, const Json& value) {
  JsonObject* at = &object;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    Json& next = (*at)[steps[i]];
    if (!next.is_object()) {
      next = JsonObject{};
      if (steps[i].ends_with("_ref")) {  // the object itself, where STIX would have its id
        const bool host = steps[i] == "src_ref" || steps[i] == "dst_ref";
        next.get_object()["type"] = host                      ? TypeFor("ip-addr", value)
                                    : steps[i] == "image_ref" ? std::string("file")
                                                              : std::string("process");
      }
    }
    at = &next.get_object();
  }
  (*at)[steps.back()] = value;
}

std::optional<Moment> MomentOf(const Json& value) {
  if (value.is_string()) {
    return ParseMoment(std::string_view(value.get_string()));
  }
  constexpr std::int64_t kSecondsMost = 100'000'000'000;  // larger numbers are milliseconds
  constexpr std::int64_t kMost = 253'402'300'799'000;
  if (!value.is_int64() || value.get_int64() < 0 || value.get_int64() > kMost) {
    return std::nullopt;
  }
  const std::int64_t number = value.get_int64();
  return Moment{number < kSecondsMost ? number * 1'000'000 : number * 1000};
}

}  // namespace

Result<Mapping> Mapping::Parse(std::string_view text) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kMappingBytesMax));
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json));
  Mapping mapping;
  RINGFENCE_ASSIGN(mapping.name_, reader.String("name"));
  (void)reader.Has("about");
  RINGFENCE_ASSIGN(const auto times, reader.Strings("time"));
  for (const std::string& time : times) {
    RINGFENCE_ASSIGN(auto steps, Steps(time, "time"));
    mapping.time_.push_back(std::move(steps));
  }
  RINGFENCE_ASSIGN(const auto rows, reader.Array("fields", kRowsMax));
  RINGFENCE_TRY(reader.Finish());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string where = "fields[" + std::to_string(i) + "]";
    RINGFENCE_ASSIGN(JsonReader one, JsonReader::Open(*rows[i], where));
    Row row;
    RINGFENCE_ASSIGN(const std::string field, one.String("field"));
    RINGFENCE_ASSIGN(const std::string as, one.String("as"));
    RINGFENCE_ASSIGN(row.object, one.StringOr("object", where));
    RINGFENCE_TRY(one.Finish());
    const std::size_t colon = as.find(':');
    if (colon == 0 || colon == std::string::npos) {
      return Error{Code::kInvalidArgument, where + ".as is not TYPE:PROPERTY", "such as file:name",
                   where + ".as"};
    }
    row.type = as.substr(0, colon);
    RINGFENCE_ASSIGN(row.field, Steps(field, where + ".field"));
    RINGFENCE_ASSIGN(row.property, Steps(std::string_view(as).substr(colon + 1), where + ".as"));
    mapping.rows_.push_back(std::move(row));
  }
  return mapping;
}

Result<Mapping> Mapping::Read(const std::string& path) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kMappingBytesMax));
  auto mapping = Parse(text);
  if (!mapping.has_value()) {
    return Prefix(path, mapping.error());
  }
  return mapping;
}

Result<Event> Mapping::Apply(const Json& json) const {
  if (!json.is_object()) {
    return Error{Code::kInvalidArgument, "an event must be a JSON object"};
  }
  std::map<std::string, JsonObject> objects;
  for (const Row& row : rows_) {
    const Json* value = Find(json, row.field);
    if (value == nullptr) {
      continue;
    }
    JsonObject& object = objects[row.object];
    if (object.empty()) {
      object["type"] = TypeFor(row.type, *value);
    }
    Put(object, row.property, *value);
  }
  JsonArray list;
  for (auto& [name, object] : objects) {
    list.push_back(std::move(object));
  }
  Event event;
  event.json_ = std::make_unique<Json>(std::move(list));
  for (const Json& object : event.json_->get_array()) {
    event.observation_.objects.push_back(&object);
  }
  for (const std::vector<std::string>& field : time_) {
    if (const Json* value = Find(json, field); value != nullptr && !event.observation_.first) {
      event.observation_.first = MomentOf(*value);
      event.observation_.last = event.observation_.first;
    }
  }
  return event;
}

}  // namespace ringfence::detect
