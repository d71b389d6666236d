#pragma once

// What of AMD's driver must be inside a box: the compute driver's node, which every use of it
// needs, and each card's own render node. Pure files, as gpu/device_files.h. Never run on hardware.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device_files.h"

namespace ringfence::gpu {

Result<std::vector<DeviceNode>> AmdNodes(const std::string& driver_root,
                                         const std::vector<std::uint32_t>& minors);
// All of `gpus` are AMD's.
Result<DriverFiles> AmdFilesFor(const std::string& driver_root, const std::vector<WantedGpu>& gpus);

}  // namespace ringfence::gpu
