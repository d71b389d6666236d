#pragma once

// NVML between its start and its end, and its errors as ours.

#include <string>
#include <utility>

#include "base/result.h"
#include "gpu/nvml_abi.h"

namespace ringfence::gpu {

// NVML counted up by nvmlInit must be counted down again on every way out. `api` must outlive it.
class NvmlSession {
 public:
  static Result<NvmlSession> Start(const nvml::Api& api);
  NvmlSession(NvmlSession&& other) noexcept : api_(std::exchange(other.api_, nullptr)) {}
  NvmlSession& operator=(NvmlSession&&) = delete;
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;
  ~NvmlSession();

 private:
  explicit NvmlSession(const nvml::Api& api) : api_(&api) {}
  const nvml::Api* api_;
};

// "Insufficient Resources (23)".
std::string NvmlWords(const nvml::Api& api, nvml::Return code);
Code NvmlCode(nvml::Return code);

}  // namespace ringfence::gpu
