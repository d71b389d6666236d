#pragma once

// What the server remembers of its nodes: which driver each had from when to when, and whose leases
// were on it.

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "cli/api.h"

namespace ringfence::cli {

struct Span {
  Timestamp from{};
  std::optional<Timestamp> to;  // nothing: it goes on

  bool Meets(const Span& other) const {
    return (!to || other.from < *to) && (!other.to || from < *other.to);
  }
};

struct DriverSpan {
  std::string node;
  std::string version;
  bool simulated = false;
  Span span;
};
// By node and time, from the inventories in the audit log; of a node without one, what it says now.
Result<std::vector<DriverSpan>> DriverSpans(Api& api);

struct LeaseSpan {
  std::string id;
  std::string tenant;
  std::string node;
  Span span;
};
// Those that were placed on a node, as far as the caller may see them; not those of probes.
Result<std::vector<LeaseSpan>> LeaseSpans(Api& api);

}  // namespace ringfence::cli
