// NVML stand-in: a GPU's InfoROM and persistence. What a scenario can break is `nvml_fail`.

#include "nvml_state.h"

using ringfence::gpu::nvml::Return;
namespace nvml = ringfence::gpu::nvml;
namespace sim = ringfence::sim;
using Card = nvml::DeviceOpaque;

RINGFENCE_EXPORT Return nvmlDeviceGetInforomImageVersion(nvml::Device device, char* text,
                                                         unsigned int bytes) {
  return sim::OnDevice("nvmlDeviceGetInforomImageVersion", device,
                       [&](const Card&) { return sim::CopyText("G520.0200.00.05", text, bytes); });
}

RINGFENCE_EXPORT Return nvmlDeviceValidateInforom(nvml::Device device) {
  return sim::OnDevice("nvmlDeviceValidateInforom", device,
                       [](const Card&) { return nvml::kSuccess; });
}

RINGFENCE_EXPORT Return nvmlDeviceGetPersistenceMode(nvml::Device device, unsigned int* mode) {
  return sim::OnDevice("nvmlDeviceGetPersistenceMode", device,
                       [&](const Card&) { return sim::Put(mode, 1U); });
}
