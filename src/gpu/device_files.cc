#include "gpu/device_files.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "gpu/amd_files.h"
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
constexpr std::size_t kMinorsFileBytesMax = std::size_t{1} << 20U;
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

// A driver in its own root still runs in this kernel.
std::string KernelFile(const std::string& driver_root, const std::string& path) {
  const std::string beneath = Beneath(driver_root, path);
  return os::Exists(beneath) ? beneath : "/" + path;
}

std::string CapabilityOf(const WantedGpu& gpu) {
  return "gpu" + std::to_string(gpu.minor) + "/gi" + std::to_string(gpu.slice->gpu_instance);
}

Status CheckWanted(const std::vector<WantedGpu>& gpus) {
  if (gpus.size() > kGpusMax) {
    return Error{Code::kInvalidArgument, "more GPUs than a node may have"};
  }
  std::set<std::uint32_t> seen;
  for (const WantedGpu& gpu : gpus) {
    if (gpu.slice.has_value() && gpus.size() != 1) {
      // CUDA gives a process one MIG device and nothing beside it.
      return Error{Code::kInvalidArgument, gpu.uuid + " is a slice: it is used by itself"};
    }
    if (gpu.minor >= kControlMinor || !seen.insert(gpu.minor).second) {
      return Error{Code::kInvalidArgument, gpu.uuid + ": device minor " +
                                               std::to_string(gpu.minor) +
                                               " is of no GPU, or of another one named too"};
    }
  }
  return {};
}

Status AddNodes(DriverFiles& files, const std::string& driver_root,
                const std::vector<WantedGpu>& gpus) {
  std::vector<std::uint32_t> minors;
  for (const WantedGpu& gpu : gpus) {
    if (std::find(minors.begin(), minors.end(), gpu.minor) == minors.end()) {
      minors.push_back(gpu.minor);
    }
  }
  RINGFENCE_ASSIGN(files.nodes, NodesOf(driver_root, minors));
  for (const WantedGpu& gpu : gpus) {
    if (!gpu.slice.has_value()) {
      continue;
    }
    const std::string instance = CapabilityOf(gpu);
    for (const std::string& capability :
         {instance + "/access",
          instance + "/ci" + std::to_string(gpu.slice->compute_instance) + "/access"}) {
      RINGFENCE_ASSIGN(DeviceNode node, CapNode(driver_root, capability));
      files.nodes.push_back(std::move(node));
    }
  }
  return {};
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
    return MountLibraries(files, folder, IsDriverLibrary);
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
          return one.uuid == (wanted.slice ? wanted.slice->parent : wanted.uuid) &&
                 one.minor == wanted.minor;
        });
    if (gpu == scenario->gpus.end()) {
      return Error{Code::kNotFound, "the simulated driver at " + root + " has no GPU " +
                                        wanted.uuid + " with device minor " +
                                        std::to_string(wanted.minor)};
    }
    files.mounts.push_back({InformationPath(root, *gpu), InformationPath(box, *gpu), false, false});
    const std::string state = MigFolder(root, gpu->uuid) + "/state";
    if (os::Exists(state)) {
      files.mounts.push_back({state, MigFolder(box, gpu->uuid) + "/state", false, false});
    }
    SimulatedGpu used = *gpu;
    if (wanted.slice.has_value()) {
      used.slice = {gpu->uuid, wanted.slice->gpu_instance, wanted.slice->compute_instance, 0};
      files.mounts.push_back(
          {InformationPath(root, used), InformationPath(box, used), false, false});
    }
    files.mounts.push_back({MemoryPath(root, used), MemoryPath(box, used), true, true});
  }
  return {};
}

}  // namespace

Status MountLibraries(DriverFiles& files, const std::string& folder,
                      bool (*wanted)(std::string_view name)) {
  RINGFENCE_ASSIGN(const std::vector<std::string> names, os::ListDir(folder));
  for (const std::string& name : names) {
    if (!wanted(name)) {
      continue;
    }
    // Links are resolved here: in the box their targets would lie elsewhere. One that leads
    // nowhere is of no use there either.
    const Result<std::string> real = os::AbsolutePath(folder + "/" + name);
    if (!real.has_value()) {
      continue;
    }
    if (files.mounts.size() >= kLibrariesMax) {
      return Error{Code::kExhausted, folder + " holds more than " + std::to_string(kLibrariesMax) +
                                         " driver libraries"};
    }
    files.mounts.push_back({*real, std::string(kBoxDriverRoot) + "/lib/" + name, false, false});
  }
  files.library_folders.push_back(std::string(kBoxDriverRoot) + "/lib");
  return {};
}

Result<std::uint32_t> DriverMajor(const std::string& driver_root, std::string_view driver) {
  return MajorOf(KernelFile(driver_root, "proc/devices"), driver);
}

Result<std::vector<DeviceNode>> NodesOf(const std::string& driver_root,
                                        const std::vector<std::uint32_t>& all) {
  std::vector<DeviceNode> nodes;
  std::vector<std::uint32_t> minors = all;
  const auto render = std::stable_partition(
      minors.begin(), minors.end(), [](std::uint32_t minor) { return !IsRenderMinor(minor); });
  if (render != minors.end()) {
    RINGFENCE_ASSIGN(nodes, AmdNodes(driver_root, {render, minors.end()}));
    minors.erase(render, minors.end());
    if (minors.empty()) {
      return nodes;
    }
  }
  RINGFENCE_ASSIGN(const std::uint32_t uvm_major, DriverMajor(driver_root, "nvidia-uvm"));
  for (const std::uint32_t minor : minors) {
    nodes.push_back({"/dev/nvidia" + std::to_string(minor), kNvidiaMajor, minor});
  }
  nodes.push_back({"/dev/nvidiactl", kNvidiaMajor, kControlMinor});
  nodes.push_back({"/dev/nvidia-uvm", uvm_major, 0});
  return nodes;
}

Result<std::uint32_t> CapMinor(const std::string& driver_root, const std::string& capability) {
  const std::string path = KernelFile(driver_root, "proc/driver/nvidia-caps/mig-minors");
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kMinorsFileBytesMax));
  const std::string wanted = "\n" + capability + " ";
  const std::size_t at = ("\n" + text).find(wanted);
  std::uint32_t minor = 0;
  const char* from = at == std::string::npos ? nullptr : text.data() + at + wanted.size() - 1;
  if (from == nullptr ||
      std::from_chars(from, text.data() + text.size(), minor).ec != std::errc()) {
    return Error{Code::kNotFound, path + " has no capability " + capability,
                 "the driver knows no such MIG instance"};
  }
  return minor;
}

Result<DeviceNode> CapNode(const std::string& driver_root, const std::string& capability) {
  RINGFENCE_ASSIGN(const std::uint32_t major, DriverMajor(driver_root, "nvidia-caps"));
  RINGFENCE_ASSIGN(const std::uint32_t minor, CapMinor(driver_root, capability));
  return DeviceNode{"/dev/nvidia-caps/nvidia-cap" + std::to_string(minor), major, minor};
}

Result<DriverFiles> FilesFor(const std::string& driver_root, const std::vector<WantedGpu>& gpus) {
  RINGFENCE_TRY(CheckWanted(gpus));
  DriverFiles files;
  if (gpus.empty()) {
    return files;
  }
  if (std::any_of(gpus.begin(), gpus.end(),
                  [](const WantedGpu& gpu) { return IsRenderMinor(gpu.minor); })) {
    return AmdFilesFor(driver_root, gpus);
  }
  RINGFENCE_TRY(AddNodes(files, driver_root, gpus));
  if (IsSimulatedRoot(driver_root)) {
    RINGFENCE_ASSIGN(const std::string root, os::AbsolutePath(driver_root));
    RINGFENCE_TRY(AddSimulated(files, root, gpus));
  } else {
    RINGFENCE_TRY(AddLibraries(files, driver_root));
  }
  return files;
}

}  // namespace ringfence::gpu
