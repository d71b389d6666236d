#include "detect/observation.h"

namespace ringfence::detect {
namespace {

constexpr std::size_t kObjectsMax = 100'000;  // of one event

const Json* Member(const Json& json, std::string_view name) {
  return json.is_object() ? json.get_object().if_contains(name) : nullptr;
}

std::optional<std::string_view> Text(const Json* json) {
  if (json == nullptr || !json->is_string()) {
    return std::nullopt;
  }
  return std::string_view(json->get_string());
}

Result<std::optional<Moment>> TimeOf(const Json& json, std::string_view name) {
  const Json* value = Member(json, name);
  if (value == nullptr || value->is_null()) {
    return std::optional<Moment>();
  }
  const auto text = Text(value);
  auto moment = text ? ParseMoment(*text) : std::nullopt;
  if (!moment) {
    return Error{Code::kInvalidArgument, std::string(name) + " is not a time",
                 "write it as 2026-11-15T08:46:30Z", std::string(name)};
  }
  return moment;
}

Status AddObject(const Json& object, std::optional<std::string_view> key, Observation& into) {
  if (!Text(Member(object, "type"))) {
    return Error{Code::kInvalidArgument, "an object without a \"type\"",
                 "STIX objects have one, such as \"ipv4-addr\"", "type"};
  }
  if (into.objects.size() >= kObjectsMax) {
    return Error{Code::kInvalidArgument,
                 "more than " + std::to_string(kObjectsMax) + " objects in one event"};
  }
  into.objects.push_back(&object);
  if (const auto id = Text(Member(object, "id"))) {
    into.by_id.emplace(*id, &object);
  }
  if (key) {
    into.by_id.emplace(*key, &object);
  }
  return {};
}

Status AddObjects(const Json& objects, Observation& into) {
  if (objects.is_array()) {
    for (const Json& object : objects.get_array()) {
      RINGFENCE_TRY(AddObject(object, std::nullopt, into));
    }
    return {};
  }
  if (objects.is_object()) {  // STIX 2.0: references are the keys
    for (const auto& [key, object] : objects.get_object()) {
      RINGFENCE_TRY(AddObject(object, std::string_view(key), into));
    }
    return {};
  }
  return Error{Code::kInvalidArgument, "\"objects\" is neither a list nor a map", {}, "objects"};
}

// Walks the steps from `at` on.
bool Walk(const Json& value, const ObjectPath& path, std::size_t at, const Observation& observation,
          const std::function<bool(const Json&)>& visit) {
  if (at == path.steps.size()) {
    return !value.is_null() && visit(value);
  }
  const PathStep& step = path.steps[at];
  // A step into a text is one into the object that the text names.
  if (value.is_string()) {
    const auto found = observation.by_id.find(std::string_view(value.get_string()));
    const bool reference = at > 0 && !step.is_index;
    return reference && found != observation.by_id.end() &&
           Walk(*found->second, path, at, observation, visit);
  }
  if (step.is_index) {
    if (!value.is_array()) {
      return false;
    }
    const JsonArray& items = value.get_array();
    if (step.any) {
      for (const Json& item : items) {
        if (Walk(item, path, at + 1, observation, visit)) {
          return true;
        }
      }
      return false;
    }
    const auto size = static_cast<std::int64_t>(items.size());
    const std::int64_t index = step.index < 0 ? size + step.index : step.index;
    return index >= 0 && index < size &&
           Walk(items[static_cast<std::size_t>(index)], path, at + 1, observation, visit);
  }
  const Json* member = Member(value, step.name);
  return member != nullptr && Walk(*member, path, at + 1, observation, visit);
}

}  // namespace

Result<Event> Event::FromStix(Json json) {
  Event event;
  event.json_ = std::make_unique<Json>(std::move(json));
  const Json& root = *event.json_;
  Observation& observation = event.observation_;
  if (!root.is_object()) {
    return Error{Code::kInvalidArgument, "an event must be a JSON object"};
  }
  const auto type = Text(Member(root, "type"));
  const Json* objects = Member(root, "objects");
  RINGFENCE_ASSIGN(observation.first, TimeOf(root, "at"));
  observation.last = observation.first;
  if (type == "observed-data") {
    RINGFENCE_ASSIGN(observation.first, TimeOf(root, "first_observed"));
    RINGFENCE_ASSIGN(observation.last, TimeOf(root, "last_observed"));
    if (objects == nullptr) {
      return Error{Code::kInvalidArgument, "an observed-data without \"objects\"",
                   "put the objects that object_refs names into \"objects\"", "objects"};
    }
  }
  if (const Json* others = Member(root, "others"); others != nullptr && others->is_array()) {
    for (const Json& other : others->get_array()) {  // referred to, not seen
      if (const auto id = Text(Member(other, "id"))) {
        observation.by_id.emplace(*id, &other);
      }
    }
  }
  if (const Json* object = Member(root, "object"); object != nullptr && !type) {
    RINGFENCE_TRY(AddObject(*object, std::nullopt, observation));
    return event;
  }
  if (objects != nullptr) {
    RINGFENCE_TRY(AddObjects(*objects, observation));
    if (type == "bundle") {  // its observed-data says when
      for (const Json* object : observation.objects) {
        if (Text(Member(*object, "type")) == "observed-data") {
          RINGFENCE_ASSIGN(observation.first, TimeOf(*object, "first_observed"));
          RINGFENCE_ASSIGN(observation.last, TimeOf(*object, "last_observed"));
        }
      }
    }
    return event;
  }
  RINGFENCE_TRY(AddObject(root, std::nullopt, observation));
  return event;
}

bool AnyValue(const Json& object, const ObjectPath& path, const Observation& observation,
              const std::function<bool(const Json&)>& visit) {
  if (Text(Member(object, "type")) != std::string_view(path.type)) {
    return false;
  }
  return Walk(object, path, 0, observation, visit);
}

}  // namespace ringfence::detect
