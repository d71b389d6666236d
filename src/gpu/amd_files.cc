#include "gpu/amd_files.h"

#include <algorithm>
#include <array>

#include "gpu/library.h"
#include "gpu/scenario.h"
#include "gpu/simulated_root.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

// ROCm's libraries that a HIP program cannot bring along, as they belong to the kernel's driver.
bool IsRocmLibrary(std::string_view name) {
  constexpr std::array<std::string_view, 8> kStarts = {
      "libamdhip64.so", "libamd_smi.so",           "libhsa-runtime64.so", "libamd_comgr",
      "libhiprtc",      "librocprofiler-register", "libdrm_amdgpu.so",    "libdrm.so"};
  return name.find(".so") != std::string_view::npos &&
         std::any_of(kStarts.begin(), kStarts.end(),
                     [&](std::string_view start) { return name.starts_with(start); });
}

Status AddLibraries(DriverFiles& files, const std::string& driver_root) {
  for (const std::string& folder : LibraryFolders(driver_root)) {
    if (LibraryFile(folder, kHipName).empty()) {
      continue;
    }
    return MountLibraries(files, folder, IsRocmLibrary);
  }
  return Error{Code::kNotFound,
               std::string("no folder beneath driver root ") + driver_root + " holds " + kHipName,
               "install ROCm's HIP runtime, or set driver_root to where it is"};
}

Status AddSimulated(DriverFiles& files, const std::string& root,
                    const std::vector<WantedGpu>& gpus) {
  RINGFENCE_ASSIGN(const std::string text,
                   os::ReadText(root + "/" + kScenarioFile, kScenarioBytesMax));
  const Result<Scenario> scenario = ParseScenario(text);
  if (!scenario.has_value()) {
    return Prefix(root + "/" + kScenarioFile, scenario.error());
  }
  const std::string box = kBoxDriverRoot;
  for (const std::string name :
       {"lib", "simulated", "scenario.json", "proc/devices", "sys/module/amdgpu/version"}) {
    files.mounts.push_back({root + "/" + name, box + "/" + name, false, false});
  }
  files.library_folders.push_back(box + "/lib");
  for (const WantedGpu& wanted : gpus) {
    const auto gpu =
        std::find_if(scenario->gpus.begin(), scenario->gpus.end(), [&](const SimulatedGpu& one) {
          return one.is_amd() && one.uuid == wanted.uuid && one.minor == wanted.minor;
        });
    if (gpu == scenario->gpus.end()) {
      return Error{Code::kNotFound, "the simulated driver at " + root + " has no GPU " +
                                        wanted.uuid + " with render node " +
                                        std::to_string(wanted.minor)};
    }
    for (const auto& [from, to] :
         {std::pair{AmdFolder(root, *gpu), AmdFolder(box, *gpu)},
          std::pair{AmdNodeFolder(root, *gpu), AmdNodeFolder(box, *gpu)}}) {
      files.mounts.push_back({from, to, false, false});
    }
    files.mounts.push_back({MemoryPath(root, *gpu), MemoryPath(box, *gpu), true, true});
  }
  return {};
}

}  // namespace

Result<std::vector<DeviceNode>> AmdNodes(const std::string& driver_root,
                                         const std::vector<std::uint32_t>& minors) {
  RINGFENCE_ASSIGN(const std::uint32_t kfd, DriverMajor(driver_root, "kfd"));
  RINGFENCE_ASSIGN(const std::uint32_t drm, DriverMajor(driver_root, "drm"));
  std::vector<DeviceNode> nodes;
  for (const std::uint32_t minor : minors) {
    nodes.push_back({"/dev/dri/renderD" + std::to_string(minor), drm, minor});
  }
  nodes.push_back({"/dev/kfd", kfd, 0});
  return nodes;
}

Result<DriverFiles> AmdFilesFor(const std::string& driver_root,
                                const std::vector<WantedGpu>& gpus) {
  DriverFiles files;
  std::vector<std::uint32_t> minors;
  for (const WantedGpu& gpu : gpus) {
    if (!IsRenderMinor(gpu.minor) || gpu.slice.has_value()) {
      return Error{Code::kInvalidArgument,
                   gpu.uuid + " and an AMD GPU cannot be in one box: their drivers differ"};
    }
    minors.push_back(gpu.minor);
  }
  RINGFENCE_ASSIGN(files.nodes, AmdNodes(driver_root, minors));
  if (IsSimulatedRoot(driver_root)) {
    RINGFENCE_ASSIGN(const std::string root, os::AbsolutePath(driver_root));
    RINGFENCE_TRY(AddSimulated(files, root, gpus));
  } else {
    RINGFENCE_TRY(AddLibraries(files, driver_root));
  }
  return files;
}

}  // namespace ringfence::gpu
