#pragma once

// From flat or nested events, such as OCSF, to STIX observables, by a table:
//   {"name": "ocsf", "time": ["time"], "fields": [
//     {"field": "dst_endpoint.ip", "object": "traffic", "as": "network-traffic:dst_ref.value"},
//     ...]}
// Rows with the same "object" fill one object of the event. "ip-addr" becomes ipv4-addr
// or ipv6-addr by its value.

#include <string>
#include <vector>

#include "detect/observation.h"

namespace ringfence::detect {

class Mapping {
 public:
  static Result<Mapping> Parse(std::string_view text);
  static Result<Mapping> Read(const std::string& path);

  // kInvalidArgument when it is no JSON object. An event with none of the fields has no objects.
  Result<Event> Apply(const Json& json) const;
  const std::string& name() const { return name_; }

 private:
  struct Row {
    std::vector<std::string> field;  // steps into the event
    std::string object;
    std::string type;
    std::vector<std::string> property;  // steps into the object
  };
  std::string name_;
  std::vector<std::vector<std::string>> time_;
  std::vector<Row> rows_;
};

}  // namespace ringfence::detect
