#pragma once

// How far the server has taken what a node's spool holds, and what its GPUs said last.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "store/database.h"

namespace ringfence::store {

struct NodeTelemetry {
  std::string node;
  std::string epoch;            // of its spool; empty: nothing was ever delivered
  std::int64_t next = 1;        // the record that comes next
  std::int64_t missing = 0;     // numbers that never came
  std::int64_t dropped = 0;     // that the node said it had dropped
  std::int64_t gaps = 0;        // how often it said so
  std::int64_t waiting = 0;     // in its spool, when it last delivered
  Timestamp heard;              // when it last delivered
  Timestamp read;               // when its sensor last spoke, by the node's clock
  Timestamp stored;             // when a server last wrote this; not in the database
  std::string blind;            // why there are no readings, in the node's words; empty: there are
  std::string readings = "[]";  // JSON
};

// One that knows nothing when there is none.
Result<NodeTelemetry> GetTelemetry(Connection& db, const std::string& node);
Status PutTelemetry(Connection& db, const NodeTelemetry& telemetry);
Result<std::vector<NodeTelemetry>> ListTelemetry(Connection& db);

}  // namespace ringfence::store
