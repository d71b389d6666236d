#include "gpu/device_files.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "gpu/library.h"
#include "gpu/limits.h"
#include "gpu/scenario.h"
#include "gpu/simulated_root.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

constexpr std::uint32_t kNvidiaMajor = 195;  // assigned to the vendor
constexpr std::uint32_t kControlMinor = 255;
constexpr std::size_t kDevicesFileBytesMax = 65536;
constexpr std::size_t kLibrariesMax = 256;

// The major that the kernel gave a driver, by a file like /proc/devices.
Result<std::uint32_t> MajorOf(const std::string& devices_path, std::string_view driver) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(devices_path, kDevicesFileBytesMax));
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    std::uint32_t major = 0;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), major);
    const auto used = static_cast<std::size_t>(parsed.ptr - line.data());
    if (parsed.ec == std::errc() && line.substr(used) == " " + std::string(driver)) {
      return major;
    }
    at = end + 1;
  }
  return Error{Code::kNotFound, devices_path + " lists no driver " + std::string(driver),
               "load the " + std::string(driver) + " module"};
}

Result<std::uint32_t> UvmMajor(const std::string& driver_root) {
  const std::string beneath = Beneath(driver_root, "proc/devices");
  // A driver in its own root still runs in this kernel.
  return MajorOf(os::Exists(beneath) ? beneath : "/proc/devices", "nvidia-uvm");
}

Status CheckWanted(const std::vector<WantedGpu>& gpus) {
  if (gpus.size() > kGpusMax) {
    return Error{Code::kInvalidArgument, "more GPUs than a node may have"};
  }
  std::set<std::uint32_t> seen;
  for (const WantedGpu& gpu : gpus) {
    if (gpu.minor >= kControlMinor || !seen.insert(gpu.minor).second) {
      return Error{Code::kInvalidArgument, gpu.uuid + ": device minor " +
                                               std::to_string(gpu.minor) +
                                               " is of no GPU, or of another one named too"};
    }
  }
  return {};
}

void AddNodes(DriverFiles& files, const std::vector<WantedGpu>& gpus, std::uint32_t uvm_major) {
  for (const WantedGpu& gpu : gpus) {
    files.nodes.push_back({"/dev/nvidia" + std::to_string(gpu.minor), kNvidiaMajor, gpu.minor});
  }
  files.nodes.push_back({"/dev/nvidiactl", kNvidiaMajor, kControlMinor});
  files.nodes.push_back({"/dev/nvidia-uvm", uvm_major, 0});
}

bool IsDriverLibrary(std::string_view name) {
  return name.find(".so") != std::string_view::npos &&
         (name.starts_with("libcuda.so") || name.starts_with("libcudadebugger.so") ||
          name.starts_with("libnvidia-"));
}

Status AddLibraries(DriverFiles& files, const std::string& driver_root) {
  for (const std::string& folder : LibraryFolders(driver_root)) {
    if (!os::Exists(folder + "/" + kCudaName) || !os::Exists(folder + "/" + kNvmlName)) {
      continue;
    }
    RINGFENCE_ASSIGN(const std::vector<std::string> names, os::ListDir(folder));
    for (const std::string& name : names) {
      if (!IsDriverLibrary(name)) {
        continue;
      }
      // Links are resolved here: in the box their targets would lie elsewhere. One that leads
      // nowhere is of no use there either.
      const Result<std::string> real = os::AbsolutePath(folder + "/" + name);
      if (!real.has_value()) {
        continue;
      }
      if (files.mounts.size() >= kLibrariesMax) {
        return Error{Code::kExhausted, folder + " holds more than " +
                                           std::to_string(kLibrariesMax) + " driver libraries"};
      }
      files.mounts.push_back({*real, std::string(kBoxDriverRoot) + "/lib/" + name, false, false});
    }
    files.library_folders.push_back(std::string(kBoxDriverRoot) + "/lib");
    return {};
  }
  return Error{Code::kNotFound,
               std::string("no folder beneath driver root ") + driver_root + " holds both " +
                   kCudaName + " and " + kNvmlName,
               "install the driver, or set driver_root to where it is"};
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
  for (const std::string name : {"lib", "simulated", "scenario.json", "proc/devices",
                                 "proc/driver/nvidia/version", "proc/driver/nvidia/params"}) {
    files.mounts.push_back({root + "/" + name, box + "/" + name, false, false});
  }
  files.library_folders.push_back(box + "/lib");
  for (const WantedGpu& wanted : gpus) {
    const auto gpu =
        std::find_if(scenario->gpus.begin(), scenario->gpus.end(), [&](const SimulatedGpu& one) {
          return one.uuid == wanted.uuid && one.minor == wanted.minor;
        });
    if (gpu == scenario->gpus.end()) {
      return Error{Code::kNotFound, "the simulated driver at " + root + " has no GPU " +
                                        wanted.uuid + " with device minor " +
                                        std::to_string(wanted.minor)};
    }
    files.mounts.push_back({InformationPath(root, *gpu), InformationPath(box, *gpu), false, false});
    files.mounts.push_back({MemoryPath(root, gpu->uuid), MemoryPath(box, gpu->uuid), true, true});
  }
  return {};
}

}  // namespace

Result<DriverFiles> FilesFor(const std::string& driver_root, const std::vector<WantedGpu>& gpus) {
  RINGFENCE_TRY(CheckWanted(gpus));
  DriverFiles files;
  if (gpus.empty()) {
    return files;
  }
  RINGFENCE_ASSIGN(const std::uint32_t uvm_major, UvmMajor(driver_root));
  AddNodes(files, gpus, uvm_major);
  if (IsSimulatedRoot(driver_root)) {
    RINGFENCE_ASSIGN(const std::string root, os::AbsolutePath(driver_root));
    RINGFENCE_TRY(AddSimulated(files, root, gpus));
  } else {
    RINGFENCE_TRY(AddLibraries(files, driver_root));
  }
  return files;
}

}  // namespace ringfence::gpu
