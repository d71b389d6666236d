#pragma once

// Device nodes that move bytes past the kernel's network stack, and so past the firewall. A box has
// them only where its grant names them. Pure files of sysfs and /proc: the jailer may ask.

#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device_files.h"

namespace ringfence::isolate {

inline constexpr std::size_t kFabricNodesMax = 64;

// `kinds` of model::kFabricDevices. "rdma": the verbs of every adapter (uverbsN) and the connection
// manager; never umad and issm, by which a fabric is administered. "imex": channel 0. `root` is the
// driver's: "/", or where a simulated one lies. kFailedPrecondition when the node has none.
Result<std::vector<gpu::DeviceNode>> FabricNodes(const std::string& root,
                                                 const std::vector<std::string>& kinds);

}  // namespace ringfence::isolate
