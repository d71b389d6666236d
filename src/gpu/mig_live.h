#pragma once

// MIG of one GPU as its driver has it, and making it what it should be. For a worker process only:
// it loads the vendor's library.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "gpu/mig_layout.h"

namespace ringfence::gpu {

// One GPU instance with the one compute instance that spans it.
struct MigSlice {
  std::string uuid;  // "MIG-..."; empty: no compute instance, so nobody can use it
  std::string profile;
  std::uint32_t start = 0;
  std::uint32_t slices = 0;  // of memory
  std::uint32_t gpu_instance = 0;
  std::uint32_t compute_instance = 0;
  std::uint64_t memory_bytes = 0;
  bool operator==(const MigSlice&) const = default;
};

// What a GPU should be: its mode, and where each instance lies.
struct MigTarget {
  bool enabled = false;
  std::vector<MigWish> instances;  // each with its start, one of it
  bool operator==(const MigTarget&) const = default;
};
// "off", "on", "on 1g.18gb@0, 4g.71gb@4".
std::string FormatMigTarget(const MigTarget& target);
Result<MigTarget> ParseMigTarget(std::string_view text);

struct LiveMig {
  std::string gpu;    // UUID
  std::string board;  // "H200-141"
  bool enabled = false;
  std::vector<MigSlice> slices;  // in order of their place
};
MigTarget TargetOf(const LiveMig& live);

// kFailedPrecondition: not a GPU that Ringfence can cut. kCorrupt: it says other profiles or
// places than its board has, or has instances that Ringfence would not have made.
Result<LiveMig> ReadMig(const std::string& driver_root, const std::string& uuid);

// Removes what is not in the target, makes what is missing, leaves alone what is there already.
// Where a step fails, what was there before is put back, and the error says whether that worked;
// a caller who dies half-way calls it again with either target, and with `before` as what is to be
// put back. Changing the mode needs a GPU without instances, so those go first.
Result<LiveMig> ApplyMig(const std::string& driver_root, const std::string& uuid,
                         const MigTarget& target, const std::optional<MigTarget>& before = {});

Json LiveMigToJson(const LiveMig& live);
Result<LiveMig> LiveMigFromJson(const Json& json);

inline constexpr std::size_t kMigReasonBytesMax = 2048;
// How a reshape came out, as a worker says it.
struct MigOutcome {
  std::string reason;           // why it is not what it should be; empty: it is
  std::optional<LiveMig> live;  // what is there now; none: it could not be read
};
MigOutcome TryMig(const std::string& driver_root, const std::string& uuid, const MigTarget& target,
                  const MigTarget& before);
Json MigOutcomeToJson(const MigOutcome& outcome);
Result<MigOutcome> MigOutcomeFromJson(const Json& json);

}  // namespace ringfence::gpu
