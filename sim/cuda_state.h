#pragma once

// The CUDA stand-in's process-wide state, its contexts, and each thread's stack of them.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cuda_kernels.h"
#include "driver.h"
#include "export.h"
#include "gpu/cuda_abi.h"
#include "memory.h"

namespace ringfence::gpu::cuda {

struct ContextOpaque {
  Device device = 0;
  std::set<DevicePointer> allocations;  // freed with it
  CuResult broken = kSuccess;           // by a kernel: answered from then on
};

struct ModuleOpaque {
  Context context = nullptr;  // unloaded with it
  std::set<std::string, std::less<>> entries;
};

struct FunctionOpaque {
  Module module = nullptr;
  const sim::SimKernel* kernel = nullptr;
  int dynamic_shared_bytes_max = 0;
};

}  // namespace ringfence::gpu::cuda

namespace ringfence::sim {

namespace cuda = gpu::cuda;
using cuda::CuResult;

struct CudaGpu {
  gpu::SimulatedGpu gpu;
  std::unique_ptr<GpuMemory> memory;  // from the first context on
  cuda::Context primary = nullptr;
  unsigned int primary_users = 0;
  std::uint64_t shared_residue_bytes = 0;  // until a kernel clears them
  std::vector<std::byte> chip{};           // shared memory, as this process's kernels left it
};

// An H200's, for attributes and kernels alike.
inline constexpr std::uint32_t kMultiprocessors = 132;
inline std::uint32_t MultiprocessorsOf(const gpu::SimulatedGpu& gpu) {
  return gpu.slice.has_value() ? gpu.slice->multiprocessors : kMultiprocessors;
}
inline constexpr int kBlockSharedBytesMax = 232448;
inline constexpr int kBlockSharedBytesDefault = 49152;

struct CudaState {
  std::mutex mutex;
  bool ready = false;  // cuInit has succeeded
  std::optional<Driver> driver;
  std::vector<CudaGpu> gpus;
  std::map<cuda::Context, std::unique_ptr<cuda::ContextOpaque>> contexts;
  std::map<cuda::Module, std::unique_ptr<cuda::ModuleOpaque>> modules;
  std::map<cuda::Function, std::unique_ptr<cuda::FunctionOpaque>> functions;
  std::map<void*, std::size_t> host_memory;
  FailurePlan failures;

  CudaState() = default;
  CudaState(const CudaState&) = delete;
  CudaState& operator=(const CudaState&) = delete;
  ~CudaState();

  // Before cuInit too. False: there is no driver root around this library.
  bool Load();
};

CudaState& Cuda();

// The calling thread's contexts, the current one on top. Without a destructor, so that the
// library can be unloaded.
struct ContextStack {
  static constexpr unsigned int kDepthMax = 16;
  cuda::Context held[kDepthMax];
  unsigned int depth;

  cuda::Context top() const { return depth == 0 ? nullptr : held[depth - 1]; }
};
ContextStack& Stack();

// Device addresses are no addresses of any process: above all of user space.
inline constexpr cuda::DevicePointer kPointerBase = 0x00d0'0000'0000'0000ULL;
inline constexpr unsigned int kPointerGpuShift = 42;

inline cuda::DevicePointer PointerTo(const gpu::SimulatedGpu& gpu, std::uint64_t offset) {
  return kPointerBase + (std::uint64_t{gpu.minor} << kPointerGpuShift) + offset;
}

// A range of one card's memory that this process has allocated.
struct Range {
  GpuMemory* memory = nullptr;
  std::uint64_t offset = 0;
};
// Finds the card that a device address is of. Contexts share a card's memory within a process.
// Under the lock.
std::optional<Range> FindRange(CudaState& state, cuda::DevicePointer pointer, std::size_t bytes);
// Whether these bytes are memory of the host that kernels may write to. Under the lock.
bool IsHostMemory(CudaState& state, const void* memory, std::size_t bytes);
void UnloadModulesOf(CudaState& state, cuda::Context context);

// After cuInit and unless the scenario fails `function`; under the lock.
template <typename Answer>
CuResult OnDriver(const char* function, Answer answer) {
  CudaState& state = Cuda();
  const std::lock_guard lock(state.mutex);
  if (!state.ready) {
    return cuda::kNotInitialized;
  }
  if (const int code = state.failures.Next(state.driver->scenario.cuda_failures, "", function)) {
    return static_cast<CuResult>(code);
  }
  return answer(state);
}

inline CuResult PlannedFailure(CudaState& state, const CudaGpu& gpu, const char* function) {
  return static_cast<CuResult>(state.failures.Next(gpu.gpu.cuda_failures, gpu.gpu.uuid, function));
}

template <typename Answer>
CuResult OnDevice(const char* function, cuda::Device device, Answer answer) {
  return OnDriver(function, [&](CudaState& state) {
    if (device < 0 || static_cast<std::size_t>(device) >= state.gpus.size()) {
      return cuda::kInvalidDevice;
    }
    CudaGpu& gpu = state.gpus[static_cast<std::size_t>(device)];
    if (const CuResult code = PlannedFailure(state, gpu, function); code != cuda::kSuccess) {
      return code;
    }
    return answer(state, gpu);
  });
}

// With the calling thread's current context.
template <typename Answer>
CuResult OnContext(const char* function, Answer answer) {
  return OnDriver(function, [&](CudaState& state) {
    const auto found = state.contexts.find(Stack().top());
    if (found == state.contexts.end()) {
      return cuda::kInvalidContext;
    }
    CudaGpu& gpu = state.gpus[static_cast<std::size_t>(found->second->device)];
    if (const CuResult code = PlannedFailure(state, gpu, function); code != cuda::kSuccess) {
      return code;
    }
    if (found->second->broken != cuda::kSuccess) {
      return found->second->broken;
    }
    return answer(*found->second, gpu);
  });
}

}  // namespace ringfence::sim
