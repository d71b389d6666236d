#pragma once

// The kinds of requests, and the bytes of each for one server.

#include <string>
#include <vector>

#include "base/result.h"
#include "load/options.h"
#include "net/tls.h"

namespace ringfence::bench {

struct OpSpec {
  std::string name;
  int expected_status = 200;
  std::string what;  // for people
};

const OpSpec* FindOp(const std::string& name);
std::string OpNames();

// One kind of request, ready to be sent.
struct Op {
  OpSpec spec;
  double weight = 1;
  std::string bytes;
};

struct Target {
  std::string host;
  std::uint16_t port = 0;
  net::TlsContext tls;
  std::vector<Op> ops;
};

// Finds the server, signs in, and makes the requests that the mix names. A mix with "read", "poll"
// or "logs" makes a lease when there is none.
Result<Target> OpenTarget(const Options& options);

}  // namespace ringfence::bench
