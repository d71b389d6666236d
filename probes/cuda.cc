#include "cuda.h"

#include <dlfcn.h>

#include "hex.h"

namespace ringfence::probe {

bool LoadCuda(cuda::Api& api, std::string& error) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    error = dlerror();
    return false;
  }
#define RINGFENCE_LOAD(name, arguments) \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #name));
  RINGFENCE_CUDA_FUNCTIONS(RINGFENCE_LOAD)
#undef RINGFENCE_LOAD
  if (api.cuInit == nullptr || api.cuLaunchKernel == nullptr || api.cuCtxCreate_v2 == nullptr ||
      api.cuDeviceGetUuid_v2 == nullptr) {
    error = "libcuda.so.1 lacks functions that a driver of branch 525 has";
    return false;
  }
  const cuda::CuResult code = api.cuInit(0);
  if (code != cuda::kSuccess) {
    error = "cuInit: " + std::to_string(static_cast<int>(code));
    return false;
  }
  return true;
}

bool LoadNvml(nvml::Api& api, std::string& error) {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    error = dlerror();
    return false;
  }
#define RINGFENCE_LOAD(name, arguments) \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #name));
  RINGFENCE_NVML_FUNCTIONS(RINGFENCE_LOAD)
#undef RINGFENCE_LOAD
  if (api.nvmlInit_v2 == nullptr || api.nvmlDeviceGetCount_v2 == nullptr ||
      api.nvmlDeviceGetHandleByIndex_v2 == nullptr || api.nvmlDeviceGetUUID == nullptr) {
    error = "libnvidia-ml.so.1 lacks functions";
    return false;
  }
  const nvml::Return code = api.nvmlInit_v2();
  if (code != nvml::kSuccess) {
    error = "nvmlInit_v2: " + std::to_string(static_cast<int>(code));
    return false;
  }
  return true;
}

bool Card::Try(const char* function, cuda::CuResult code) {
  if (code == cuda::kSuccess) {
    return true;
  }
  const char* name = nullptr;
  (void)api_.cuGetErrorName(code, &name);
  error_ = std::string(function) + ": " + (name == nullptr ? "error" : name) + " (" +
           std::to_string(static_cast<int>(code)) + ")";
  return false;
}

bool Card::Open() {
  constexpr unsigned kBlockingSync = 4;
  cuda::Context context = nullptr;
  return LoadCuda(api_, error_) && Try("cuDeviceGet", api_.cuDeviceGet(&device_, 0)) &&
         Try("cuCtxCreate_v2", api_.cuCtxCreate_v2(&context, kBlockingSync, device_));
}

std::string UuidText(const cuda::Uuid& uuid) {
  const std::string hex = ToHex({uuid.bytes, sizeof uuid.bytes});
  return "GPU-" + hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

}  // namespace ringfence::probe
