#include "gpu/nvml_session.h"

namespace ringfence::gpu {

NvmlSession::~NvmlSession() {
  if (api_ != nullptr) {
    (void)api_->nvmlShutdown();
  }
}

std::string NvmlWords(const nvml::Api& api, nvml::Return code) {
  const char* words = api.nvmlErrorString == nullptr ? nullptr : api.nvmlErrorString(code);
  return (words == nullptr ? std::string("no words") : std::string(words)) + " (" +
         std::to_string(static_cast<int>(code)) + ")";
}

Code NvmlCode(nvml::Return code) {
  if (code == nvml::kNoPermission) {
    return Code::kPermissionDenied;
  }
  if (code == nvml::kDriverNotLoaded || code == nvml::kNotFound) {
    return Code::kNotFound;
  }
  return Code::kUnavailable;
}

Result<NvmlSession> NvmlSession::Start(const nvml::Api& api) {
  const nvml::Return code = api.nvmlInit_v2();
  if (code != nvml::kSuccess) {
    return Error{NvmlCode(code), "nvmlInit_v2: " + NvmlWords(api, code),
                 "check that the driver's module is loaded and its device files can be opened"};
  }
  return NvmlSession(api);
}

}  // namespace ringfence::gpu
