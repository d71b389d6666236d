#pragma once

// A lease: slices of GPUs for one tenant's job, asked for by one principal, for a time.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/box_request.h"
#include "model/network.h"
#include "model/probe_request.h"
#include "model/share_request.h"
#include "model/tenant.h"

namespace ringfence::model {

enum class LeaseState {
  kRequested,
  kAdmitted,
  kQueued,  // waits for room
  kPlaced,
  kPreparing,
  kActive,
  kEnding,
  kScrubbing,
  kClosed,
  kQuarantined,  // a step failed in a way that leaves a slice unsafe
};
std::string_view Name(LeaseState state);
Result<LeaseState> ParseLeaseState(std::string_view text);
// The one table of which state may follow which.
bool MayFollow(LeaseState from, LeaseState to);
inline bool IsOver(LeaseState state) {
  return state == LeaseState::kClosed || state == LeaseState::kQuarantined;
}

// Who builds what the lease's job runs in.
enum class LeaseRuntime : std::uint8_t {
  kBox,  // we do: a box
  kCdi,  // another runtime on the node; the lease is held for its containers until it ends
};
std::string_view Name(LeaseRuntime runtime);
Result<LeaseRuntime> ParseLeaseRuntime(std::string_view text);

inline constexpr std::size_t kCommandWordsMax = 256;
inline constexpr std::size_t kCommandBytesMax = 16 * 1024;
inline constexpr std::size_t kEnvironmentMax = 64;
inline constexpr std::size_t kEnvironmentNameBytesMax = 128;
inline constexpr std::size_t kEnvironmentBytesMax = 32 * 1024;
inline constexpr std::uint32_t kGpusPerLeaseMax = 64;
inline constexpr std::size_t kProfileBytesMax = 32;
inline constexpr std::uint64_t kGpuMemoryBytesMax = std::uint64_t{1} << 50U;
inline constexpr std::uint64_t kMemoryBytesMin = std::uint64_t{16} << 20U;
inline constexpr std::uint64_t kMemoryBytesMax = std::uint64_t{4} << 40U;
inline constexpr std::uint32_t kCpuMillisMin = 10;
inline constexpr std::uint32_t kCpuMillisMax = 1024 * 1000;
inline constexpr std::uint32_t kPidsMin = 32;  // a shell pipeline and its runtime need that
inline constexpr std::uint32_t kPidsMax = 65536;
inline constexpr Milliseconds kTimeoutMin = std::chrono::seconds(1);
inline constexpr Milliseconds kTimeoutMax = std::chrono::hours(30 * 24);
inline constexpr Milliseconds kWaitMax = std::chrono::hours(7 * 24);

// What a principal asks for. Valid once created.
struct LeaseRequest {
  TenantPath tenant = TenantPath::Root();
  std::uint32_t gpus = 1;
  std::string profile;                 // of a MIG slice: "1g.18gb"; empty: none in particular
  std::uint64_t gpu_memory_bytes = 0;  // 0, or a slice or GPU with at least so much
  LeaseRuntime runtime = LeaseRuntime::kBox;
  std::vector<std::string> command;  // none with kCdi, and no environment
  std::vector<std::pair<std::string, std::string>> environment;
  std::uint64_t memory_bytes_max = std::uint64_t{4} << 30U;
  std::uint32_t cpu_millis_max = 1000;
  std::uint32_t pids_max = 512;
  Milliseconds timeout = std::chrono::hours(2);
  Milliseconds wait{0};   // how long it may wait for room; 0: now or never
  bool attended = false;  // whoever asked waits with it: once gone, so is the request
  BoxRequest box;
  std::optional<ShareRequest> share;  // instead of a whole GPU
  // Then the command and the tenant are the probe's.
  std::optional<ProbeRequest> probe;

  // Checks every limit; the error names the field and the fix.
  Status Validate() const;
};

struct LeaseStep {  // one line of a lease's history
  LeaseState state = LeaseState::kRequested;
  Timestamp time;
  std::string reason;  // may be empty
};

// What of a GPU a lease of a slice has: kept with the lease, as slices come and go.
struct HeldSlice {
  std::string parent;  // UUID of the GPU
  std::string profile;
  std::uint64_t memory_bytes = 0;
  std::uint32_t gpu_millis = 0;  // the part of a GPU that it counts as, in thousandths
  bool operator==(const HeldSlice&) const = default;
};

struct Lease {
  std::string id;
  LeaseRequest request;
  std::string principal;
  LeaseState state = LeaseState::kRequested;
  std::string node;                // once placed
  std::vector<std::string> gpus;   // UUIDs, once placed
  std::optional<HeldSlice> slice;  // what the only one of them is, if it is one
  std::string image;               // digest of the box's image, resolved once; may be empty
  Timestamp created;
  Timestamp updated;
  std::optional<Timestamp> started;
  std::optional<Timestamp> ended;
  std::string outcome;           // "exited", "signalled", "timeout", "oom", "failed", "refused"
  std::optional<int> exit_code;  // the job's own, 128+N for a signal
  std::string reason;            // why it ended, was refused or is quarantined
  bool end_requested = false;
  bool simulated = false;
  std::vector<std::string> receipts;  // receipt ids
  std::vector<LeaseStep> steps;
  std::string proof;             // of a probe: how it ended, signed by the jailer (isolate/proof.h)
  std::optional<Denied> denied;  // by the firewall, once the box has ended; none: nothing was
};

}  // namespace ringfence::model
