#pragma once

// What a simulated GPU measures of itself, and how that changes while time passes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"

namespace ringfence::gpu {

struct Scenario;

inline constexpr std::size_t kTimelineMax = 4096;

struct SimulatedSignals {
  std::uint32_t memory_busy_percent = 0;
  std::uint32_t sm_clock_mhz = 345;
  std::uint32_t memory_clock_mhz = 3201;
  std::uint32_t pcie_tx_kbps = 0;  // kB/s, as NVML counts
  std::uint32_t pcie_rx_kbps = 0;
  std::uint64_t nvlink_tx_kib = 0;  // since the driver was loaded
  std::uint64_t nvlink_rx_kib = 0;
  std::uint64_t energy_mj = 0;
  std::uint32_t remapped_corrected = 0;
  std::uint32_t remapped_uncorrected = 0;
  bool remap_pending = false;
  bool remap_failed = false;
  bool gpm = true;  // performance monitoring: the next three
  std::uint32_t sm_active_percent = 0;
  std::uint32_t tensor_active_percent = 0;
  std::uint32_t dram_active_percent = 0;
  bool hang = false;  // every call that names the GPU waits until it does not hang any more
};
Status ReadSignals(JsonReader& reader, SimulatedSignals& signals);
void WriteSignals(const SimulatedSignals& signals, JsonObject& object);

// From so long after the scenario was written on: members that change, and what the driver says
// once.
struct TimelineStep {
  Milliseconds after{0};
  JsonObject set;                    // members of the GPU: readings, `lost`, `hang`
  std::optional<std::uint32_t> xid;  // an event of that moment
};
Result<std::vector<TimelineStep>> ReadTimeline(JsonReader& reader);
JsonArray TimelineToJson(const std::vector<TimelineStep>& timeline);

// The scenario as it is `elapsed` after it was written, with its timelines kept. kInvalidArgument
// when a step sets what it may not, or to what it cannot be.
Result<Scenario> ScenarioAt(const Scenario& scenario, Milliseconds elapsed);

}  // namespace ringfence::gpu
