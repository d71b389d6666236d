#pragma once

// The GPU libraries as a box has them, loaded by name.

#include <string>

#include "gpu/cuda_abi.h"
#include "gpu/nvml_abi.h"

namespace ringfence::probe {

namespace cuda = gpu::cuda;
namespace nvml = gpu::nvml;

// A context on the first card. One thread.
class Card {
 public:
  bool Open();  // false: error() says why
  const std::string& error() const { return error_; }
  const cuda::Api& api() const { return api_; }
  cuda::Device device() const { return device_; }
  // Whether a call went well; if not, error() is what it said.
  bool Try(const char* function, cuda::CuResult code);

 private:
  cuda::Api api_;
  cuda::Device device_ = 0;
  std::string error_;
};

// Loads the library and starts it; no context yet.
bool LoadCuda(cuda::Api& api, std::string& error);
bool LoadNvml(nvml::Api& api, std::string& error);
std::string UuidText(const cuda::Uuid& uuid);  // "GPU-..."

}  // namespace ringfence::probe
