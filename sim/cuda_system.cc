// CUDA stand-in: the library as a whole.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "cuda_state.h"
#include "mig_state.h"

using ringfence::gpu::cuda::CuResult;
namespace cuda = ringfence::gpu::cuda;
namespace sim = ringfence::sim;

namespace ringfence::sim {

CudaState& Cuda() {
  static CudaState state;
  return state;
}

ContextStack& Stack() {
  thread_local ContextStack stack;
  return stack;
}

CudaState::~CudaState() {
  for (const auto& [memory, bytes] : host_memory) {
    std::free(memory);
  }
}

bool CudaState::Load() {
  if (!driver.has_value()) {
    Result<Driver> loaded = Driver::Load(reinterpret_cast<const void*>(&Cuda));
    if (!loaded.has_value()) {
      return false;
    }
    driver = std::move(*loaded);
  }
  return true;
}

namespace {

struct ErrorText {
  int code;
  const char* name;
  const char* words;
};

constexpr std::array kErrors = {
    ErrorText{0, "CUDA_SUCCESS", "no error"},
    ErrorText{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    ErrorText{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    ErrorText{3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    ErrorText{4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    ErrorText{46, "CUDA_ERROR_DEVICE_UNAVAILABLE",
              "CUDA-capable device(s) is/are busy or unavailable"},
    ErrorText{100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    ErrorText{101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    ErrorText{200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    ErrorText{201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    ErrorText{209, "CUDA_ERROR_NO_BINARY_FOR_GPU",
              "no kernel image is available for execution on the device"},
    ErrorText{214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    ErrorText{218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    ErrorText{222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
              "the provided PTX was compiled with an unsupported toolchain."},
    ErrorText{304, "CUDA_ERROR_OPERATING_SYSTEM",
              "OS call failed or operation not supported on this OS"},
    ErrorText{400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    ErrorText{500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    ErrorText{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    ErrorText{719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    ErrorText{800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    ErrorText{801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    ErrorText{999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

CuResult PutText(CuResult code, const char** into, const char* ErrorText::* text) {
  if (into == nullptr) {
    return cuda::kInvalidValue;
  }
  const auto found = std::find_if(kErrors.begin(), kErrors.end(),
                                  [&](const ErrorText& one) { return one.code == code; });
  *into = found == kErrors.end() ? nullptr : (*found).*text;
  return found == kErrors.end() ? cuda::kInvalidValue : cuda::kSuccess;
}

// What CUDA cannot start without, beside its devices: a local socket, and names for its threads
// (seen on an H200 with driver 580). A wall that takes one of them away must show here too.
bool ProcessIsFree() {
  const int local = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const std::string comm = "/proc/self/task/" + std::to_string(syscall(SYS_gettid)) + "/comm";
  const int name = open(comm.c_str(), O_RDWR | O_CLOEXEC);
  const bool named = name >= 0 || errno == ENOENT;  // another pid namespace's /proc is no wall
  for (const int fd : {local, name}) {
    if (fd >= 0) {
      (void)close(fd);
    }
  }
  return local >= 0 && named;
}

// A GPU in MIG mode is no device; of all MIG devices a process gets the first whose capabilities
// it can open, and no whole GPU beside it.
std::vector<gpu::SimulatedGpu> Usable(const Driver& driver) {
  std::vector<gpu::SimulatedGpu> whole;
  for (const gpu::SimulatedGpu& gpu : driver.gpus) {
    const MigState mig = ReadMigState(driver.root, gpu);
    if (!mig.enabled) {
      whole.push_back(gpu);
      continue;
    }
    for (const MigInstance& instance : mig.instances) {
      for (const MigCompute& compute : instance.computes) {
        if (MayUse(driver.devices, gpu, instance, compute)) {
          return {SliceOf(gpu, instance, compute)};
        }
      }
    }
  }
  return whole;
}

CuResult Start(CudaState& state) {
  if (!state.Load()) {
    return cuda::kNoDevice;
  }
  if (const int code = state.failures.Next(state.driver->scenario.cuda_failures, "", "cuInit")) {
    return static_cast<CuResult>(code);
  }
  if (state.driver->control_errno != 0 || state.driver->gpus.empty()) {
    return cuda::kNoDevice;
  }
  if (state.driver->uvm_errno != 0) {
    return cuda::kUnknown;
  }
  if (!ProcessIsFree()) {
    return cuda::kOperatingSystem;
  }
  for (const gpu::SimulatedGpu& gpu : Usable(*state.driver)) {
    state.gpus.push_back({gpu, nullptr, nullptr, 0, gpu.shared_residue_bytes});
  }
  if (state.gpus.empty()) {
    return cuda::kNoDevice;
  }
  state.ready = true;
  return cuda::kSuccess;
}

}  // namespace
}  // namespace ringfence::sim

// Its presence is what says that this library is no vendor's.
RINGFENCE_EXPORT const char ringfence_simulated_driver[] = "ringfence simulated CUDA driver";

RINGFENCE_EXPORT CuResult cuInit(unsigned int flags) {
  if (flags != 0) {
    return cuda::kInvalidValue;
  }
  sim::CudaState& state = sim::Cuda();
  const std::lock_guard lock(state.mutex);
  return state.ready ? cuda::kSuccess : sim::Start(state);
}

RINGFENCE_EXPORT CuResult cuDriverGetVersion(int* version) {
  if (version == nullptr) {
    return cuda::kInvalidValue;
  }
  sim::CudaState& state = sim::Cuda();
  const std::lock_guard lock(state.mutex);
  if (!state.Load()) {
    return cuda::kNoDevice;
  }
  if (const int code =
          state.failures.Next(state.driver->scenario.cuda_failures, "", "cuDriverGetVersion")) {
    return static_cast<CuResult>(code);
  }
  *version = state.driver->scenario.cuda_version;
  return cuda::kSuccess;
}

RINGFENCE_EXPORT CuResult cuGetErrorName(CuResult code, const char** text) {
  return sim::PutText(code, text, &sim::ErrorText::name);
}

RINGFENCE_EXPORT CuResult cuGetErrorString(CuResult code, const char** text) {
  return sim::PutText(code, text, &sim::ErrorText::words);
}

#define RINGFENCE_SAME(name, arguments) \
  extern "C" CuResult name arguments;   \
  static_assert(std::is_same_v<decltype(&::name), decltype(cuda::Api::name)>);
RINGFENCE_CUDA_FUNCTIONS(RINGFENCE_SAME)
#undef RINGFENCE_SAME

namespace ringfence::sim {
namespace {

void* Lookup(const std::string& name) {
  struct Entry {
    const char* name;
    void* function;
  };
  static const Entry entries[] = {
#define RINGFENCE_ENTRY(name, arguments) {#name, reinterpret_cast<void*>(&::name)},
      RINGFENCE_CUDA_FUNCTIONS(RINGFENCE_ENTRY)
#undef RINGFENCE_ENTRY
  };
  // The plain name stands for the newest version.
  for (const std::string& wanted : {name + "_v2", name}) {
    for (const Entry& entry : entries) {
      if (wanted == entry.name) {
        return entry.function;
      }
    }
  }
  return nullptr;
}

}  // namespace
}  // namespace ringfence::sim

RINGFENCE_EXPORT CuResult cuGetProcAddress_v2(const char* name, void** function, int /*version*/,
                                              unsigned long long /*flags*/, int* status) {
  constexpr int kFound = 0;
  constexpr int kNoSuchSymbol = 1;
  if (name == nullptr || function == nullptr) {
    return cuda::kInvalidValue;
  }
  *function = sim::Lookup(name);
  if (status != nullptr) {
    *status = *function == nullptr ? kNoSuchSymbol : kFound;
  }
  // A caller who takes the status is told there, not by the result (driver 580).
  return *function == nullptr && status == nullptr ? cuda::kNotFound : cuda::kSuccess;
}

RINGFENCE_EXPORT CuResult cuGetProcAddress(const char* name, void** function, int version,
                                           unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
