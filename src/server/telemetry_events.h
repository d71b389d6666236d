#pragma once

// A node's telemetry records as events, with whose lease it was.

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "detect/live_event.h"
#include "gpu/readings.h"

namespace ringfence::server {

// Where a record's GPU stands in the records.
struct RecordContext {
  std::string node;
  std::string lease;
  std::string tenant;
  std::string principal;
  Timestamp now;
};

// One of the records of an agent, as it may say anything.
struct TelemetryRecord {
  std::int64_t sequence = 0;
  Timestamp time;
  std::string kind;  // "reading", "fault", "process", "change", "gap"
  std::string gpu;
  gpu::GpuFault fault;          // of a fault
  std::int64_t dropped = 0;     // of a gap
  std::string why;              // of a gap
  gpu::ProcessReading process;  // of a process
  std::string field;            // of a change
  std::int64_t from = 0;
  std::int64_t to = 0;
  JsonObject mean;  // of a reading: checked to hold numbers
  JsonObject grown;
  JsonObject peak;
};
Result<TelemetryRecord> ReadTelemetryRecord(const Json& json, const std::string& path);

detect::LiveEvent EventOf(const TelemetryRecord& record, const RecordContext& context,
                          const std::string& epoch, const detect::EventMapping& mapping);

}  // namespace ringfence::server
