#pragma once

// A simulated driver's root: the same shape as a real one's, with GPUs from a scenario and their
// memory in files.
//   simulated                        says that it is
//   scenario.json                    gpu/scenario.h, defaults written out
//   lib/                             libnvidia-ml.so.1, libcuda.so.1 of sim/
//   dev/nvidia<minor> nvidiactl nvidia-uvm      plain files: a GPU is there if its file opens
//   dev/nvidia-caps/nvidia-cap<minor>           likewise, capabilities of MIG
//   mig/<uuid>/{state,gi<N>/{information,memory}}   MIG mode and instances, once there were any
//   proc/driver/nvidia-caps/mig-minors
//   proc/devices  proc/driver/nvidia/{version,params,gpus/<address>/information}
//   memory/<uuid>                    sparse, the card's size; never cleared by anything but a write

#include <string>
#include <string_view>

#include "base/result.h"

namespace ringfence::gpu {

inline constexpr const char* kSimulatedMarker = "simulated";
inline constexpr const char* kScenarioFile = "scenario.json";

bool IsSimulatedRoot(const std::string& driver_root);

// Makes or mends the root; again with the same arguments changes nothing. What the GPUs' memory
// holds is kept. kInvalidArgument names the scenario's wrong field. Two callers at once for one
// root are the caller's to prevent.
Status MakeSimulatedRoot(const std::string& root, const std::string& sim_library_folder,
                         const std::string& scenario_json);

// Eight H200 with 64 MiB each; UUIDs and serials follow from the seed alone.
std::string DefaultScenario(std::string_view seed);
// One H200 that says what a real one said, full memory size too (tests/vectors/h200).
std::string H200Scenario();

}  // namespace ringfence::gpu
