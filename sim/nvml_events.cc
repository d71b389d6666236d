// NVML stand-in: events that a process waits for. XIDs come from the timelines of the scenario.

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "gpu/nvml_readings_abi.h"
#include "nvml_state.h"

using ringfence::gpu::nvml::Return;
namespace nvml = ringfence::gpu::nvml;
namespace sim = ringfence::sim;
using Card = nvml::DeviceOpaque;

namespace ringfence::gpu::nvml {

// One thread's.
struct EventSetOpaque {
  std::set<const DeviceOpaque*> xids_of;
  std::uint64_t seen_ms = 0;  // events up to this moment were handed out, or were before our time
  std::multimap<std::uint64_t, std::pair<const DeviceOpaque*, std::uint32_t>> waiting;
};

}  // namespace ringfence::gpu::nvml

namespace ringfence::sim {
namespace {

void Collect(NvmlState& state, nvml::EventSetOpaque& set) {
  const std::uint64_t now = NowMs();
  for (const nvml::DeviceOpaque& card : state.devices) {
    if (!card.live || !set.xids_of.contains(&card)) {
      continue;
    }
    for (const gpu::TimelineStep& step : card.gpu.timeline) {
      const std::uint64_t at =
          state.driver->written_ms + static_cast<std::uint64_t>(step.after.count());
      if (step.xid.has_value() && at > set.seen_ms && at <= now) {
        set.waiting.emplace(at, std::pair(&card, *step.xid));
      }
    }
  }
  set.seen_ms = now;
}

}  // namespace
}  // namespace ringfence::sim

RINGFENCE_EXPORT Return nvmlEventSetCreate(nvml::EventSet* set) {
  return sim::OnSystem("nvmlEventSetCreate", [&](sim::NvmlState&) {
    if (set == nullptr) {
      return nvml::kInvalidArgument;
    }
    *set = new nvml::EventSetOpaque();
    (*set)->seen_ms = sim::NowMs();
    return nvml::kSuccess;
  });
}

RINGFENCE_EXPORT Return nvmlDeviceRegisterEvents(nvml::Device device, unsigned long long types,
                                                 nvml::EventSet set) {
  return sim::OnDevice("nvmlDeviceRegisterEvents", device, [&](const Card& card) {
    if (set == nullptr || types != nvml::kEventXid) {
      return nvml::kInvalidArgument;
    }
    set->xids_of.insert(&card);
    return nvml::kSuccess;
  });
}

RINGFENCE_EXPORT Return nvmlEventSetWait_v2(nvml::EventSet set, nvml::EventData* data,
                                            unsigned int timeout_ms) {
  constexpr std::chrono::milliseconds kLook{20};
  const std::uint64_t until = sim::NowMs() + timeout_ms;
  for (;;) {
    const Return code = sim::OnSystem("nvmlEventSetWait_v2", [&](sim::NvmlState& state) {
      if (set == nullptr || data == nullptr) {
        return nvml::kInvalidArgument;
      }
      sim::Collect(state, *set);
      if (set->waiting.empty()) {
        return nvml::kTimedOut;
      }
      const auto [card, xid] = set->waiting.begin()->second;
      set->waiting.erase(set->waiting.begin());
      constexpr unsigned int kNoInstance = 0xffffffffU;
      *data = {const_cast<nvml::Device>(card), nvml::kEventXid, xid, kNoInstance, kNoInstance};
      return nvml::kSuccess;
    });
    if (code != nvml::kTimedOut || sim::NowMs() >= until) {
      return code;
    }
    std::this_thread::sleep_for(kLook);
  }
}

RINGFENCE_EXPORT Return nvmlEventSetFree(nvml::EventSet set) {
  delete set;
  return nvml::kSuccess;
}
