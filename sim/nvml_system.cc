// NVML stand-in: the library as a whole, and finding GPUs.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "memory.h"
#include "nvml_state.h"

using ringfence::gpu::nvml::Return;
namespace nvml = ringfence::gpu::nvml;
namespace sim = ringfence::sim;

namespace ringfence::sim {

NvmlState& State() {
  static NvmlState state;
  return state;
}

void Follow(NvmlState& state) {
  if (!state.driver->Follow()) {
    return;
  }
  for (nvml::DeviceOpaque& device : state.devices) {
    for (const gpu::SimulatedGpu& gpu : state.driver->scenario.gpus) {
      if (gpu.uuid == device.gpu.uuid) {
        device.gpu = gpu;
      }
    }
  }
}

void WaitWhileHung(nvml::Device device) {
  constexpr std::chrono::milliseconds kLook{20};
  NvmlState& state = State();
  for (;;) {
    {
      const std::lock_guard lock(state.mutex);
      if (state.inits == 0) {
        return;
      }
      Follow(state);
      const bool hangs =
          std::any_of(state.devices.begin(), state.devices.end(), [&](const auto& known) {
            return &known == device && known.live && known.gpu.signals.hang;
          });
      if (!hangs) {
        return;
      }
    }
    std::this_thread::sleep_for(kLook);
  }
}

namespace {

Return Start(NvmlState& state) {
  Result<Driver> loaded = Driver::Load(reinterpret_cast<const void*>(&State));
  if (!loaded.has_value()) {
    return nvml::kDriverNotLoaded;
  }
  if (loaded->control_errno != 0) {
    return loaded->control_errno == EACCES || loaded->control_errno == EPERM
               ? nvml::kNoPermission
               : nvml::kDriverNotLoaded;
  }
  state.failures.Restart();
  if (const int code = state.failures.Next(loaded->scenario.nvml_failures, "", "nvmlInit_v2")) {
    return static_cast<Return>(code);
  }
  unsigned int index = 0;
  for (const gpu::SimulatedGpu& gpu : loaded->gpus) {
    const auto known =
        std::find_if(state.devices.begin(), state.devices.end(),
                     [&](const nvml::DeviceOpaque& one) { return one.gpu.uuid == gpu.uuid; });
    nvml::DeviceOpaque& device =
        known == state.devices.end() ? state.devices.emplace_back() : *known;
    device.gpu = gpu;
    device.index = index++;
    device.live = true;
  }
  state.driver = std::move(*loaded);
  return nvml::kSuccess;
}

Return FindDevice(const NvmlState& state, nvml::Device* into, auto matches) {
  for (const nvml::DeviceOpaque& device : state.devices) {
    if (device.live && matches(device)) {
      *into = const_cast<nvml::Device>(&device);
      return device.gpu.lost ? nvml::kGpuIsLost : nvml::kSuccess;
    }
  }
  return nvml::kNotFound;
}

}  // namespace
}  // namespace ringfence::sim

// Its presence is what says that this library is no vendor's.
RINGFENCE_EXPORT const char ringfence_simulated_driver[] = "ringfence simulated NVML";

RINGFENCE_EXPORT Return nvmlInit_v2() {
  sim::NvmlState& state = sim::State();
  const std::lock_guard lock(state.mutex);
  if (state.inits == 0) {
    if (const Return code = sim::Start(state); code != nvml::kSuccess) {
      return code;
    }
  }
  ++state.inits;
  return nvml::kSuccess;
}

RINGFENCE_EXPORT Return nvmlInit() { return nvmlInit_v2(); }

RINGFENCE_EXPORT Return nvmlInitWithFlags(unsigned int /*flags*/) { return nvmlInit_v2(); }

RINGFENCE_EXPORT Return nvmlShutdown() {
  sim::NvmlState& state = sim::State();
  const std::lock_guard lock(state.mutex);
  if (state.inits == 0) {
    return nvml::kUninitialized;
  }
  if (--state.inits == 0) {
    for (nvml::DeviceOpaque& device : state.devices) {
      device.live = false;
    }
    state.driver.reset();
  }
  return nvml::kSuccess;
}

RINGFENCE_EXPORT const char* nvmlErrorString(Return code) {
  switch (static_cast<int>(code)) {
    case 0:
      return "Success";
    case 1:
      return "Uninitialized";
    case 2:
      return "Invalid Argument";
    case 3:
      return "Not Supported";
    case 4:
      return "Insufficient Permissions";
    case 5:
      return "Already Initialized";
    case 6:
      return "Not Found";
    case 7:
      return "Insufficient Size";
    case 8:
      return "Insufficient External Power";
    case 9:
      return "Driver Not Loaded";
    case 10:
      return "Timeout";
    case 13:
      return "Function Not Found";
    case 14:
      return "Corrupted infoROM";
    case 15:
      return "GPU is lost";
    case 16:
      return "GPU requires reset";
    case 18:
      return "Driver/library version mismatch";
    case 19:
      return "In use by another client";
    case 20:
      return "Insufficient Memory";
    case 23:
      return "Insufficient Resources";
    case 25:
      return "Argument version mismatch";
    default:
      return "Unknown Error";
  }
}

RINGFENCE_EXPORT Return nvmlSystemGetDriverVersion(char* text, unsigned int bytes) {
  return sim::OnSystem("nvmlSystemGetDriverVersion", [&](sim::NvmlState& state) {
    return sim::CopyText(state.driver->scenario.driver_version, text, bytes);
  });
}

RINGFENCE_EXPORT Return nvmlSystemGetNVMLVersion(char* text, unsigned int bytes) {
  return sim::OnSystem("nvmlSystemGetNVMLVersion", [&](sim::NvmlState& state) {
    return sim::CopyText(state.driver->scenario.nvml_version, text, bytes);
  });
}

RINGFENCE_EXPORT Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return sim::OnSystem("nvmlSystemGetCudaDriverVersion_v2", [&](sim::NvmlState& state) {
    return sim::Put(version, state.driver->scenario.cuda_version);
  });
}

RINGFENCE_EXPORT Return nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

RINGFENCE_EXPORT Return nvmlSystemGetConfComputeState(nvml::ConfComputeState* into) {
  return sim::OnSystem("nvmlSystemGetConfComputeState", [&](sim::NvmlState& state) {
    const auto& mode = state.driver->scenario.confidential_computing;
    if (!mode.has_value()) {
      return nvml::kNotSupported;
    }
    return sim::Put(into, {0, *mode == "off" ? 0U : 1U, *mode == "devtools" ? 1U : 0U});
  });
}

RINGFENCE_EXPORT Return nvmlSystemGetConfComputeCapabilities(nvml::ConfComputeCaps* into) {
  return sim::OnSystem("nvmlSystemGetConfComputeCapabilities", [&](sim::NvmlState& state) {
    return state.driver->scenario.confidential_computing.has_value() ? sim::Put(into, {0, 1})
                                                                     : nvml::kNotSupported;
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetCount_v2(unsigned int* count) {
  return sim::OnSystem("nvmlDeviceGetCount_v2", [&](sim::NvmlState& state) {
    return sim::Put(count, static_cast<unsigned int>(state.driver->gpus.size()));
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvml::Device* device) {
  return sim::OnSystem("nvmlDeviceGetHandleByIndex_v2", [&](sim::NvmlState& state) {
    if (device == nullptr || index >= state.driver->gpus.size()) {
      return nvml::kInvalidArgument;
    }
    return sim::FindDevice(state, device, [&](const auto& one) {
      return one.parent == nullptr && one.index == index;
    });
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetHandleByUUID(const char* uuid, nvml::Device* device) {
  return sim::OnSystem("nvmlDeviceGetHandleByUUID", [&](sim::NvmlState& state) {
    if (uuid == nullptr || device == nullptr) {
      return nvml::kInvalidArgument;
    }
    sim::ListSlices(state);
    return sim::FindDevice(state, device, [&](const auto& one) { return one.gpu.uuid == uuid; });
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetHandleByPciBusId_v2(const char* address,
                                                         nvml::Device* device) {
  return sim::OnSystem("nvmlDeviceGetHandleByPciBusId_v2", [&](sim::NvmlState& state) {
    if (address == nullptr || device == nullptr) {
      return nvml::kInvalidArgument;
    }
    // "0:0f:0.0" and "0000:0F:00.0" are the same card.
    unsigned int domain = 0;
    unsigned int bus = 0;
    unsigned int slot = 0;
    if (std::sscanf(address, "%x:%x:%x", &domain, &bus, &slot) != 3) {
      return nvml::kInvalidArgument;
    }
    char wanted[32];
    (void)std::snprintf(wanted, sizeof wanted, "%08X:%02X:%02X.0", domain, bus, slot);
    return sim::FindDevice(state, device, [&](const auto& one) {
      return one.parent == nullptr && one.gpu.pci_address == wanted;
    });
  });
}

// The declarations that our callers use are these functions'.
#define RINGFENCE_SAME(name, arguments) \
  extern "C" Return name arguments;     \
  static_assert(std::is_same_v<decltype(&::name), decltype(nvml::Api::name)>);
RINGFENCE_NVML_FUNCTIONS(RINGFENCE_SAME)
