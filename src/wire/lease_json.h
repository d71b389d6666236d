#pragma once

// Leases as JSON: the body of the API's requests and answers, and the record that is stored.
//
//   request  {"tenant", "gpus", "runtime"?, "command": [..], "env": {K: V}, "memory_bytes",
//             "cpu_millis", "pids", "timeout_ms", "image"?, "mounts"?: [{"name", "path",
//             "writable"}], "shm_bytes"?, "tmp_bytes"?, "huge_bytes"?}
//   lease    {"id", "request": {..}, "principal", "state", "node", "gpus": [UUID..], "image"?:
//   digest, "created",
//             "updated", "started"?, "ended"?, "outcome", "exit_code"?, "reason",
//             "end_requested", "simulated", "receipts": [..],
//             "steps": [{"state", "time", "reason"}..],
//             "denied"?: {"packets", "bytes", "flows": [{"to", "protocol", "port", "packets"}..]}}
//
// Times are RFC 3339 in UTC. A member marked ? is left out while there is no value. Unknown members
// are refused, so that a typing error is never passed over in silence.

#include "base/json.h"
#include "base/result.h"
#include "model/lease.h"

namespace ringfence::wire {

inline constexpr std::size_t kLeaseStepsMax = 4096;
inline constexpr std::size_t kLeaseReceiptsMax = 4096;
// A lease as JSON is smaller than this: what to give ParseJson.
inline constexpr std::size_t kLeaseJsonBytesMax = std::size_t{4} << 20U;

// Only "tenant" and "command" must be there; the rest have LeaseRequest's defaults. What is
// returned is valid: it has passed LeaseRequest::Validate. The environment is sorted by name.
// `path` is where the object lies in a larger document, for errors.
Result<model::LeaseRequest> LeaseRequestFromJson(const Json& json, const std::string& path = {});
JsonObject LeaseRequestToJson(const model::LeaseRequest& request);

Result<model::Denied> DeniedFromJson(const Json& json, const std::string& path = {});

Result<model::Lease> LeaseFromJson(const Json& json);
JsonObject LeaseToJson(const model::Lease& lease);

}  // namespace ringfence::wire
