#pragma once

// The NVML stand-in between nvmlInit and nvmlShutdown.

#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "driver.h"
#include "export.h"
#include "gpu/nvml_abi.h"

namespace ringfence::gpu::nvml {

// What a device handle points at. Handles outlive nvmlShutdown, so a handle is only ever used
// again for the same GPU.
struct DeviceOpaque {
  SimulatedGpu gpu;
  unsigned int index = 0;
  bool live = false;  // of the present nvmlInit
  // Of a MIG device, which `gpu` then describes.
  DeviceOpaque* parent = nullptr;
};

struct GpuInstanceOpaque {
  DeviceOpaque* device = nullptr;
  unsigned int id = 0;
};

struct ComputeInstanceOpaque {
  GpuInstanceOpaque* instance = nullptr;
  unsigned int id = 0;
};

}  // namespace ringfence::gpu::nvml

namespace ringfence::sim {

namespace nvml = gpu::nvml;

struct NvmlState {
  std::mutex mutex;
  unsigned int inits = 0;
  std::optional<Driver> driver;
  std::deque<nvml::DeviceOpaque> devices;  // MIG devices too, each from when it was asked for
  std::deque<nvml::GpuInstanceOpaque> instances;
  std::deque<nvml::ComputeInstanceOpaque> computes;
  FailurePlan failures;
};

NvmlState& State();

// Brings the MIG devices up to what is there now; those that this process may see, of `card` or of
// all. Under the lock.
std::vector<nvml::DeviceOpaque*> ListSlices(NvmlState& state,
                                            const nvml::DeviceOpaque* card = nullptr);

// Copies `text` with its end, as NVML's functions that fill a caller's buffer do.
inline nvml::Return CopyText(const std::string& text, char* into, unsigned int bytes) {
  if (into == nullptr) {
    return nvml::kInvalidArgument;
  }
  if (bytes <= text.size()) {
    return nvml::kInsufficientSize;
  }
  (void)std::snprintf(into, bytes, "%s", text.c_str());
  return nvml::kSuccess;
}

template <typename Value>
nvml::Return Put(Value* into, Value value) {
  if (into == nullptr) {
    return nvml::kInvalidArgument;
  }
  *into = value;
  return nvml::kSuccess;
}

// What the scenario says of the GPUs now.
void Follow(NvmlState& state);

// Runs `answer` under the lock, after nvmlInit and unless the scenario fails `function`.
template <typename Answer>
nvml::Return OnSystem(const char* function, Answer answer) {
  NvmlState& state = State();
  const std::lock_guard lock(state.mutex);
  if (state.inits == 0) {
    return nvml::kUninitialized;
  }
  Follow(state);
  if (const int code = state.failures.Next(state.driver->scenario.nvml_failures, "", function)) {
    return static_cast<nvml::Return>(code);
  }
  return answer(state);
}

// Waits, without the lock, as long as the scenario says that the GPU hangs.
void WaitWhileHung(nvml::Device device);

// The same for a function of one GPU.
template <typename Answer>
nvml::Return OnDevice(const char* function, nvml::Device device, Answer answer) {
  WaitWhileHung(device);
  return OnSystem(function, [&](NvmlState& state) {
    for (const nvml::DeviceOpaque& known : state.devices) {
      if (&known != device || !known.live) {
        continue;
      }
      if (known.gpu.lost) {
        return nvml::kGpuIsLost;
      }
      if (const int code = state.failures.Next(known.gpu.nvml_failures, known.gpu.uuid, function)) {
        return static_cast<nvml::Return>(code);
      }
      return answer(known);
    }
    return nvml::kInvalidArgument;
  });
}

}  // namespace ringfence::sim
