#pragma once

// One thread's line to the server.

#include <memory>
#include <stop_token>
#include <string>

#include "agent/credentials.h"
#include "base/json.h"
#include "base/result.h"

namespace ringfence::agent {

// For one thread. `holder` must outlive it.
class Link {
 public:
  explicit Link(const CredentialHolder& holder) : holder_(holder) {}

  // One try. An HTTP error is the Error in its body.
  Result<Json> Send(const std::string& method, const std::string& target, const Json& body);
  // Tries again, with growing pauses, as long as the server cannot be reached or is busy, until it
  // answers or `stop` is asked for. What is sent must be harmless twice.
  Result<Json> SendUntil(const std::stop_token& stop, const std::string& method,
                         const std::string& target, const Json& body);

 private:
  const CredentialHolder& holder_;
  std::string certificate_;  // the client was made with
  std::unique_ptr<net::Client> client_;
};

// Sleeps, or returns early when a stop is asked for.
void Pause(const std::stop_token& stop, std::chrono::milliseconds time);

}  // namespace ringfence::agent
