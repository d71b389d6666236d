// AMD SMI stand-in: every GPU a socket with one processor. What else is asked of a real one is in
// the simulated root's sys/.

#include <algorithm>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>

#include "driver.h"
#include "export.h"
#include "gpu/amdsmi_abi.h"
#include "memory.h"

namespace amdsmi = ringfence::gpu::amdsmi;
namespace sim = ringfence::sim;
using amdsmi::Return;

namespace ringfence::sim {
namespace {

struct AmdState {
  std::mutex mutex;
  unsigned int inits = 0;
  std::optional<Driver> driver;
  FailurePlan failures;
};

AmdState& State() {
  static AmdState state;
  return state;
}

template <typename Answer>
Return OnSystem(const char* function, Answer answer) {
  AmdState& state = State();
  const std::lock_guard lock(state.mutex);
  if (state.inits == 0) {
    return amdsmi::kNotInitialized;
  }
  if (const int code = state.failures.Next(state.driver->scenario.nvml_failures, "", function)) {
    return static_cast<Return>(code);
  }
  return answer(state);
}

// A handle is a GPU's number from 1 on.
template <typename Answer>
Return OnGpu(const char* function, void* handle, Answer answer) {
  return OnSystem(function, [&](AmdState& state) {
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    if (number == 0 || number > state.driver->gpus.size()) {
      return amdsmi::kInvalid;
    }
    const gpu::SimulatedGpu& gpu = state.driver->gpus[number - 1];
    if (gpu.lost) {
      return amdsmi::kNotFound;
    }
    if (const int code = state.failures.Next(gpu.nvml_failures, gpu.uuid, function)) {
      return static_cast<Return>(code);
    }
    return answer(gpu);
  });
}

template <typename Value>
Return Put(Value* into, Value value) {
  if (into == nullptr) {
    return amdsmi::kInvalid;
  }
  *into = value;
  return amdsmi::kSuccess;
}

Return PutPartition(const std::string& text, char* into, std::uint32_t bytes) {
  if (text.empty()) {
    return amdsmi::kNotSupported;
  }
  if (into == nullptr || bytes <= text.size()) {
    return into == nullptr ? amdsmi::kInvalid : amdsmi::kInsufficientSize;
  }
  (void)std::snprintf(into, bytes, "%s", text.c_str());
  return amdsmi::kSuccess;
}

std::uint64_t UsedBytes(const gpu::SimulatedGpu& gpu) {
  std::uint64_t bytes = gpu.reserved_mib << 20U;
  const int fd = InformationFd(State().driver->root, gpu);
  if (fd >= 0) {
    for (const Held& held : ListHeld(fd, 0, gpu.usable_bytes(), Whose::kAll)) {
      bytes += held.end - held.start;
    }
  }
  return bytes;
}

}  // namespace
}  // namespace ringfence::sim

RINGFENCE_EXPORT const char ringfence_simulated_driver[] = "ringfence simulated AMD SMI";

RINGFENCE_EXPORT Return amdsmi_init(std::uint64_t /*flags*/) {
  sim::AmdState& state = sim::State();
  const std::lock_guard lock(state.mutex);
  if (state.inits == 0) {
    auto loaded = sim::Driver::Load(reinterpret_cast<const void*>(&ringfence_simulated_driver),
                                    sim::Vendor::kAmd);
    if (!loaded.has_value()) {
      return amdsmi::kDriverNotLoaded;
    }
    state.failures.Restart();
    if (const int code = state.failures.Next(loaded->scenario.nvml_failures, "", "amdsmi_init")) {
      return static_cast<Return>(code);
    }
    state.driver = std::move(*loaded);
  }
  ++state.inits;
  return amdsmi::kSuccess;
}

RINGFENCE_EXPORT Return amdsmi_shut_down() {
  sim::AmdState& state = sim::State();
  const std::lock_guard lock(state.mutex);
  if (state.inits > 0 && --state.inits == 0) {
    state.driver.reset();
  }
  return amdsmi::kSuccess;
}

RINGFENCE_EXPORT Return amdsmi_status_code_to_string(Return code, const char** text) {
  static const struct {
    Return code;
    const char* words;
  } kWords[] = {{amdsmi::kSuccess, "Call succeeded"},
                {amdsmi::kInvalid, "Invalid parameters"},
                {amdsmi::kNotSupported, "Command not supported"},
                {amdsmi::kNotYetImplemented, "Not implemented yet"},
                {amdsmi::kNoPermission, "Permission denied"},
                {amdsmi::kNotFound, "Device not found"},
                {amdsmi::kNotInitialized, "Device not initialized"},
                {amdsmi::kDriverNotLoaded, "Driver not loaded"},
                {amdsmi::kInsufficientSize, "Not enough room"}};
  for (const auto& known : kWords) {
    if (known.code == code) {
      return sim::Put(text, known.words);
    }
  }
  return sim::Put(text, "Unknown error");
}

RINGFENCE_EXPORT Return amdsmi_get_socket_handles(std::uint32_t* count, amdsmi::Socket* sockets) {
  return sim::OnSystem("amdsmi_get_socket_handles", [&](sim::AmdState& state) {
    if (count == nullptr) {
      return amdsmi::kInvalid;
    }
    const auto all = static_cast<std::uint32_t>(state.driver->gpus.size());
    *count = sockets == nullptr ? all : std::min(*count, all);
    for (std::uint32_t i = 0; sockets != nullptr && i < *count; ++i) {
      sockets[i] = reinterpret_cast<amdsmi::Socket>(std::uintptr_t{i} + 1);
    }
    return amdsmi::kSuccess;
  });
}

RINGFENCE_EXPORT Return amdsmi_get_processor_handles(amdsmi::Socket socket, std::uint32_t* count,
                                                     amdsmi::Processor* processors) {
  return sim::OnSystem("amdsmi_get_processor_handles", [&](sim::AmdState&) {
    if (count == nullptr || (processors != nullptr && *count == 0)) {
      return amdsmi::kInvalid;
    }
    *count = 1;
    if (processors != nullptr) {
      *processors = socket;
    }
    return amdsmi::kSuccess;
  });
}

RINGFENCE_EXPORT Return amdsmi_get_processor_type(amdsmi::Processor processor,
                                                  std::uint32_t* type) {
  return sim::OnGpu("amdsmi_get_processor_type", processor,
                    [&](const auto&) { return sim::Put(type, amdsmi::kTypeGpu); });
}

RINGFENCE_EXPORT Return amdsmi_get_gpu_device_bdf(amdsmi::Processor processor,
                                                  amdsmi::Bdf* address) {
  return sim::OnGpu("amdsmi_get_gpu_device_bdf", processor, [&](const auto& gpu) {
    unsigned int domain = 0;
    unsigned int bus = 0;
    unsigned int device = 0;
    if (std::sscanf(gpu.pci_address.c_str(), "%x:%x:%x", &domain, &bus, &device) != 3) {
      return amdsmi::kUnknown;
    }
    return sim::Put(address, (amdsmi::Bdf{domain} << 16U) | (bus << 8U) | (device << 3U));
  });
}

RINGFENCE_EXPORT Return amdsmi_get_gpu_device_uuid(amdsmi::Processor processor, unsigned int* bytes,
                                                   char* text) {
  return sim::OnGpu("amdsmi_get_gpu_device_uuid", processor, [&](const auto& gpu) {
    if (bytes == nullptr || text == nullptr || *bytes < amdsmi::kUuidBytes) {
      return amdsmi::kInvalid;
    }
    (void)std::snprintf(text, *bytes, "%s", gpu.uuid.substr(4).c_str());
    return amdsmi::kSuccess;
  });
}

RINGFENCE_EXPORT Return amdsmi_get_gpu_memory_total(amdsmi::Processor processor, std::uint32_t type,
                                                    std::uint64_t* bytes) {
  return sim::OnGpu("amdsmi_get_gpu_memory_total", processor, [&](const auto& gpu) {
    return type == amdsmi::kMemoryVram ? sim::Put(bytes, gpu.memory_bytes())
                                       : amdsmi::kNotSupported;
  });
}

RINGFENCE_EXPORT Return amdsmi_get_gpu_memory_usage(amdsmi::Processor processor, std::uint32_t type,
                                                    std::uint64_t* bytes) {
  return sim::OnGpu("amdsmi_get_gpu_memory_usage", processor, [&](const auto& gpu) {
    return type == amdsmi::kMemoryVram ? sim::Put(bytes, sim::UsedBytes(gpu))
                                       : amdsmi::kNotSupported;
  });
}

RINGFENCE_EXPORT Return amdsmi_get_gpu_ecc_enabled(amdsmi::Processor processor,
                                                   std::uint64_t* blocks) {
  return sim::OnGpu("amdsmi_get_gpu_ecc_enabled", processor, [&](const auto& gpu) {
    return gpu.ecc.has_value() ? sim::Put(blocks, *gpu.ecc ? amdsmi::kBlockMemory : 0)
                               : amdsmi::kNotSupported;
  });
}

RINGFENCE_EXPORT Return amdsmi_get_gpu_compute_partition(amdsmi::Processor processor, char* text,
                                                         std::uint32_t bytes) {
  return sim::OnGpu("amdsmi_get_gpu_compute_partition", processor, [&](const auto& gpu) {
    return sim::PutPartition(gpu.compute_partition, text, bytes);
  });
}

RINGFENCE_EXPORT Return amdsmi_get_gpu_memory_partition(amdsmi::Processor processor, char* text,
                                                        std::uint32_t bytes) {
  return sim::OnGpu("amdsmi_get_gpu_memory_partition", processor, [&](const auto& gpu) {
    return sim::PutPartition(gpu.memory_partition, text, bytes);
  });
}

// The declarations that our callers use are these functions'.
#define RINGFENCE_SAME(name, arguments) \
  static_assert(std::is_same_v<decltype(&::name), decltype(amdsmi::Api::name)>);
RINGFENCE_AMDSMI_FUNCTIONS(RINGFENCE_SAME)
