#pragma once

// One thread's dealings with the server: tries again where that helps.

#include <memory>
#include <stop_token>
#include <string>

#include "agent/surroundings.h"
#include "base/json.h"
#include "base/result.h"

namespace ringfence::agent {

// For one thread. `surroundings` must outlive it.
class Link {
 public:
  explicit Link(Surroundings& surroundings)
      : surroundings_(surroundings), line_(surroundings.OpenLine()) {}

  // One try. An HTTP error is the Error in its body.
  Result<Json> Send(const std::string& method, const std::string& target, const Json& body) {
    return line_->Send(method, target, body);
  }
  // Tries again, with growing pauses, as long as the server cannot be reached or is busy, until it
  // answers or `stop` is asked for. What is sent must be harmless twice.
  Result<Json> SendUntil(const std::stop_token& stop, const std::string& method,
                         const std::string& target, const Json& body);
  Line& line() { return *line_; }

 private:
  Surroundings& surroundings_;
  std::unique_ptr<Line> line_;
};

}  // namespace ringfence::agent
