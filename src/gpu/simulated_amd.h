#pragma once

// AMD's part of a simulated driver's root (gpu/simulated_root.h):
//   lib/                             libamd_smi.so, libamdhip64.so of sim/
//   dev/kfd  dev/dri/renderD<minor>  plain files: a GPU is there if its file opens
//   sys/module/amdgpu/version
//   sys/bus/pci/devices/<address>/{uevent,device,vendor,product_name,...,drm/renderD<minor>}
//   sys/class/kfd/kfd/topology/nodes/<minor>/{gpu_id,properties}

#include <string>

#include "base/result.h"
#include "gpu/scenario.h"

namespace ringfence::gpu {

// What is there of a scenario without AMD's GPUs is removed.
Status PutSimulatedAmd(const std::string& root, const Scenario& scenario);

}  // namespace ringfence::gpu
