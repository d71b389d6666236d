#pragma once

// What a pattern looks at: one event as STIX cyber observables, with its time.

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "detect/pattern.h"

namespace ringfence::detect {

struct Observation {
  std::optional<Moment> first;  // none: the event does not say
  std::optional<Moment> last;
  std::vector<const Json*> objects;  // what was seen; each an object with a "type"
  std::unordered_map<std::string_view, const Json*> by_id;  // what they may refer to
};

// One line of events and the observation in it. Movable, not copyable: the one points into
// the other.
class Event {
 public:
  // Understood: a STIX observed-data with its objects (as in STIX 2.0, a map; or a list); a bundle
  // of objects; {"at": TIME, "objects": [...]} or "object", with "others" that they refer to; a
  // single STIX object. kInvalidArgument for anything else.
  static Result<Event> FromStix(Json json);
  Event(Event&&) = default;
  Event& operator=(Event&&) = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() = default;

  const Observation& observation() const { return observation_; }

 private:
  friend class Mapping;
  Event() = default;
  std::unique_ptr<Json> json_;  // stays where it is when the event moves
  Observation observation_;
};

// Calls `visit` with each value at the end of the path from `object`, until it returns true. A
// property that ends in _ref or _refs leads on to the object it names.
bool AnyValue(const Json& object, const ObjectPath& path, const Observation& observation,
              const std::function<bool(const Json&)>& visit);

}  // namespace ringfence::detect
