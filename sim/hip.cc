// HIP stand-in: memory of simulated cards, and copies of it. No kernels.

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "driver.h"
#include "export.h"
#include "gpu/hip_abi.h"
#include "memory.h"

namespace hip = ringfence::gpu::hip;
namespace sim = ringfence::sim;

namespace ringfence::sim {
namespace {

struct HipGpu {
  gpu::SimulatedGpu gpu;
  std::unique_ptr<GpuMemory> memory;  // from its first use on
  std::set<std::uint64_t> allocations;
};

struct HipState {
  std::mutex mutex;
  bool ready = false;
  std::optional<Driver> driver;
  std::vector<HipGpu> gpus;
  std::set<void*> host_memory;
  FailurePlan failures;
  ~HipState() {
    for (void* memory : host_memory) {
      std::free(memory);
    }
  }
};

HipState& State() {
  static HipState state;
  return state;
}

int& Current() {
  thread_local int device = 0;
  return device;
}

// Device addresses are no addresses of any process.
constexpr std::uint64_t kPointerBase = 0x00d0'0000'0000'0000ULL;
constexpr unsigned int kPointerGpuShift = 42;

std::uint64_t BaseOf(const gpu::SimulatedGpu& gpu) {
  return kPointerBase + (std::uint64_t{gpu.minor} << kPointerGpuShift);
}

hip::Error Start(HipState& state) {
  if (state.ready) {
    return hip::kSuccess;
  }
  auto loaded = Driver::Load(reinterpret_cast<const void*>(&State), Vendor::kAmd);
  if (!loaded.has_value()) {
    return hip::kNoDevice;
  }
  if (const int code = state.failures.Next(loaded->scenario.cuda_failures, "", "hipInit")) {
    return static_cast<hip::Error>(code);
  }
  if (loaded->control_errno != 0 || loaded->gpus.empty()) {
    return hip::kNoDevice;
  }
  for (const gpu::SimulatedGpu& gpu : loaded->gpus) {
    state.gpus.push_back({gpu, nullptr, {}});
  }
  state.driver = std::move(*loaded);
  state.ready = true;
  return hip::kSuccess;
}

// HIP starts by itself at the first call.
template <typename Answer>
hip::Error OnDriver(const char* function, Answer answer) {
  HipState& state = State();
  const std::lock_guard lock(state.mutex);
  if (const hip::Error code = Start(state); code != hip::kSuccess) {
    return code;
  }
  if (const int code = state.failures.Next(state.driver->scenario.cuda_failures, "", function)) {
    return static_cast<hip::Error>(code);
  }
  return answer(state);
}

template <typename Answer>
hip::Error OnCurrent(const char* function, Answer answer) {
  return OnDriver(function, [&](HipState& state) {
    if (static_cast<std::size_t>(Current()) >= state.gpus.size()) {
      return hip::kInvalidDevice;
    }
    HipGpu& gpu = state.gpus[static_cast<std::size_t>(Current())];
    if (gpu.gpu.lost) {
      return hip::kUnknown;
    }
    if (const int code = state.failures.Next(gpu.gpu.cuda_failures, gpu.gpu.uuid, function)) {
      return static_cast<hip::Error>(code);
    }
    if (gpu.memory == nullptr) {
      gpu.memory = GpuMemory::Open(state.driver->root, gpu.gpu);
      if (gpu.memory == nullptr || !gpu.memory->AddContext()) {
        gpu.memory.reset();
        return hip::kOperatingSystem;
      }
    }
    return answer(gpu);
  });
}

template <typename Work>
hip::Error OnRange(const char* function, hip::Pointer pointer, std::size_t bytes, Work work) {
  return OnCurrent(function, [&](HipGpu& gpu) {
    const auto address = reinterpret_cast<std::uint64_t>(pointer);
    const std::uint64_t base = BaseOf(gpu.gpu);
    if (bytes == 0) {
      return hip::kSuccess;
    }
    if (address < base || !gpu.memory->Holds(address - base, bytes)) {
      return hip::kInvalidValue;
    }
    return work(*gpu.memory, address - base) ? hip::kSuccess : hip::kOperatingSystem;
  });
}

struct ErrorText {
  int code;
  const char* name;
  const char* words;
};
constexpr ErrorText kErrors[] = {
    {hip::kSuccess, "hipSuccess", "no error"},
    {hip::kInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hip::kOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hip::kNotInitialized, "hipErrorNotInitialized", "initialization error"},
    {hip::kNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hip::kInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hip::kOperatingSystem, "hipErrorOperatingSystem", "OS call failed"},
    {hip::kUnknown, "hipErrorUnknown", "unknown error"},
};
const ErrorText& TextOf(hip::Error code) {
  const auto* found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                   [&](const ErrorText& one) { return one.code == code; });
  return found == std::end(kErrors) ? *(std::end(kErrors) - 1) : *found;
}

}  // namespace
}  // namespace ringfence::sim

RINGFENCE_EXPORT const char ringfence_simulated_driver[] = "ringfence simulated HIP";

RINGFENCE_EXPORT const char* hipGetErrorName(hip::Error code) { return sim::TextOf(code).name; }

RINGFENCE_EXPORT const char* hipGetErrorString(hip::Error code) { return sim::TextOf(code).words; }

RINGFENCE_EXPORT hip::Error hipInit(unsigned int /*flags*/) {
  sim::HipState& state = sim::State();
  const std::lock_guard lock(state.mutex);
  return sim::Start(state);
}

RINGFENCE_EXPORT hip::Error hipRuntimeGetVersion(int* version) {
  return sim::OnDriver("hipRuntimeGetVersion", [&](sim::HipState&) {
    *version = 60'443'483;  // 6.4
    return hip::kSuccess;
  });
}

RINGFENCE_EXPORT hip::Error hipGetDeviceCount(int* count) {
  return sim::OnDriver("hipGetDeviceCount", [&](sim::HipState& state) {
    *count = static_cast<int>(state.gpus.size());
    return hip::kSuccess;
  });
}

RINGFENCE_EXPORT hip::Error hipDeviceGetByPCIBusId(int* device, const char* address) {
  return sim::OnDriver("hipDeviceGetByPCIBusId", [&](sim::HipState& state) {
    for (std::size_t i = 0; i < state.gpus.size(); ++i) {
      if (ringfence::gpu::ProcName(state.gpus[i].gpu.pci_address) == address) {
        *device = static_cast<int>(i);
        return hip::kSuccess;
      }
    }
    return hip::kInvalidDevice;
  });
}

RINGFENCE_EXPORT hip::Error hipSetDevice(int device) {
  return sim::OnDriver("hipSetDevice", [&](sim::HipState& state) {
    if (device < 0 || static_cast<std::size_t>(device) >= state.gpus.size()) {
      return hip::kInvalidDevice;
    }
    sim::Current() = device;
    return hip::kSuccess;
  });
}

RINGFENCE_EXPORT hip::Error hipDeviceReset() {
  return sim::OnCurrent("hipDeviceReset", [](sim::HipGpu& gpu) {
    for (const std::uint64_t offset : gpu.allocations) {
      (void)gpu.memory->Free(offset);
    }
    gpu.allocations.clear();
    gpu.memory.reset();
    return hip::kSuccess;
  });
}

RINGFENCE_EXPORT hip::Error hipDeviceSynchronize() {
  return sim::OnCurrent("hipDeviceSynchronize", [](sim::HipGpu&) { return hip::kSuccess; });
}

RINGFENCE_EXPORT hip::Error hipMemGetInfo(std::size_t* free, std::size_t* total) {
  return sim::OnCurrent("hipMemGetInfo", [&](sim::HipGpu& gpu) {
    *free = gpu.memory->FreeBytes();
    *total = gpu.gpu.usable_bytes();
    return hip::kSuccess;
  });
}

RINGFENCE_EXPORT hip::Error hipMalloc(hip::Pointer* pointer, std::size_t bytes) {
  return sim::OnCurrent("hipMalloc", [&](sim::HipGpu& gpu) {
    const auto offset = gpu.memory->Allocate(bytes);
    if (!offset.has_value()) {
      return hip::kOutOfMemory;
    }
    gpu.allocations.insert(*offset);
    *pointer = reinterpret_cast<hip::Pointer>(sim::BaseOf(gpu.gpu) + *offset);
    return hip::kSuccess;
  });
}

RINGFENCE_EXPORT hip::Error hipFree(hip::Pointer pointer) {
  return sim::OnCurrent("hipFree", [&](sim::HipGpu& gpu) {
    const std::uint64_t offset = reinterpret_cast<std::uint64_t>(pointer) - sim::BaseOf(gpu.gpu);
    if (gpu.allocations.erase(offset) == 0) {
      return hip::kInvalidValue;
    }
    return gpu.memory->Free(offset) ? hip::kSuccess : hip::kOperatingSystem;
  });
}

RINGFENCE_EXPORT hip::Error hipHostMalloc(void** memory, std::size_t bytes,
                                          unsigned int /*flags*/) {
  return sim::OnDriver("hipHostMalloc", [&](sim::HipState& state) {
    constexpr std::size_t kPage = 4096;
    *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    if (*memory == nullptr) {
      return hip::kOutOfMemory;
    }
    state.host_memory.insert(*memory);
    return hip::kSuccess;
  });
}

RINGFENCE_EXPORT hip::Error hipHostFree(void* memory) {
  return sim::OnDriver("hipHostFree", [&](sim::HipState& state) {
    if (state.host_memory.erase(memory) == 0) {
      return hip::kInvalidValue;
    }
    std::free(memory);
    return hip::kSuccess;
  });
}

RINGFENCE_EXPORT hip::Error hipMemcpyHtoD(hip::Pointer to, const void* from, std::size_t bytes) {
  return sim::OnRange("hipMemcpyHtoD", to, bytes, [&](sim::GpuMemory& memory, std::uint64_t at) {
    return memory.Write(at, {static_cast<const std::byte*>(from), bytes});
  });
}

RINGFENCE_EXPORT hip::Error hipMemcpyDtoH(void* to, hip::Pointer from, std::size_t bytes) {
  return sim::OnRange("hipMemcpyDtoH", from, bytes, [&](sim::GpuMemory& memory, std::uint64_t at) {
    return memory.Read(at, {static_cast<std::byte*>(to), bytes});
  });
}

RINGFENCE_EXPORT hip::Error hipMemsetD32(hip::Pointer to, int value, std::size_t count) {
  constexpr std::size_t kCountMax = std::size_t{1} << 48U;
  const std::size_t bytes = std::min(count, kCountMax) * sizeof value;
  return sim::OnRange("hipMemsetD32", to, bytes, [&](sim::GpuMemory& memory, std::uint64_t at) {
    return memory.Fill(at, bytes, static_cast<std::uint32_t>(value));
  });
}

// The declarations that our callers use are these functions'.
#define RINGFENCE_SAME(name, arguments) \
  static_assert(std::is_same_v<decltype(&::name), decltype(hip::Api::name)>);
RINGFENCE_HIP_FUNCTIONS(RINGFENCE_SAME)
