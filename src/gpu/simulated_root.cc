#include "gpu/simulated_root.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/encoding.h"
#include "base/json.h"
#include "crypto/sha256.h"
#include "gpu/library.h"
#include "gpu/mig_layout.h"
#include "gpu/scenario.h"
#include "gpu/simulated_amd.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

constexpr std::size_t kStandInBytesMax = std::size_t{64} << 20U;

// Leaves a file alone that holds these bytes already: others may have it open or mapped.
Status PutFile(const std::string& path, std::string_view text, unsigned mode) {
  const Result<Bytes> before = os::ReadFile(path, kStandInBytesMax);
  if (before.has_value() && AsText(*before) == text) {
    return os::ChangeMode(path, mode);
  }
  RINGFENCE_TRY(os::WriteFile(path, AsBytes(text), mode));
  return os::ChangeMode(path, mode);  // whatever the umask
}

Status PutLibrary(const std::string& from_folder, const std::string& to_folder,
                  const std::string& name) {
  RINGFENCE_ASSIGN(const Bytes wanted, os::ReadFile(from_folder + "/" + name, kStandInBytesMax));
  RINGFENCE_TRY(PutFile(to_folder + "/" + name, AsText(wanted), 0755));
  RINGFENCE_ASSIGN(const Bytes written, os::ReadFile(to_folder + "/" + name, kStandInBytesMax));
  if (crypto::Sha256(written) != crypto::Sha256(wanted)) {
    return Error{Code::kCorrupt, to_folder + "/" + name + " is not what was copied there"};
  }
  return {};
}

std::string Hex8(std::uint32_t number) {
  std::array<char, 16> text{};
  (void)std::snprintf(text.data(), text.size(), "%08X", number);
  return text.data();
}

Status PutMemory(const std::string& path, std::uint64_t bytes) {
  if (!os::Exists(path)) {
    RINGFENCE_TRY(os::WriteFile(path, {}, 0600));
  }
  RINGFENCE_ASSIGN(const std::uint64_t before, os::FileBytes(path));
  if (before == bytes) {
    return {};
  }
  std::error_code error;
  std::filesystem::resize_file(path, bytes, error);
  if (error) {
    return Error{Code::kUnavailable, "size " + path + ": " + error.message()};
  }
  return {};
}

std::string Information(const SimulatedGpu& gpu) {
  std::string vbios = gpu.vbios;
  std::transform(vbios.begin(), vbios.end(), vbios.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return "Model: \t\t " + gpu.model + "\nIRQ:   \t\t 41\nGPU UUID: \t " + gpu.uuid +
         "\nVideo BIOS: \t " + vbios +
         "\nBus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n"
         "Bus Location: \t " +
         ProcName(gpu.pci_address) + "\nDevice Minor: \t " + std::to_string(gpu.minor) +
         "\nGPU Firmware: \t " + gpu.gsp_firmware + "\nGPU Excluded:\t No\n";
}

// The settings that later checks read, as a driver with its defaults writes them.
std::string Params(const Scenario& scenario) {
  const std::string dwords = scenario.scrub_on_free.value_or(true) ? "" : "RMDisableScrubOnFree=1";
  return "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n"
         "InitializeSystemMemoryAllocations: 1\nRmProfilingAdminOnly: 1\nEnableGpuFirmware: 18\n"
         "EnableDbgBreakpoint: 0\nCreateImexChannel0: 0\nRegistryDwords: \"" +
         dwords + "\"\nRegistryDwordsPerDevice: \"\"\nTemporaryFilePath: \"\"\n";
}

constexpr std::string_view kDevices =
    "Character devices:\n195 nvidia\n195 nvidiactl\n238 nvidia-uvm\n241 nvidia-caps\n";
constexpr std::string_view kAmdDevices = "226 drm\n234 kfd\n";

// Which capability has which minor, for every instance that a GPU could have: the driver lists
// them all from the start.
std::string MigMinors(const Scenario& scenario) {
  std::string text = "config " + std::to_string(kMigConfigMinor) + "\nmonitor " +
                     std::to_string(kMigMonitorMinor) + "\n";
  for (const SimulatedGpu& gpu : scenario.gpus) {
    if (gpu.is_amd()) {
      continue;
    }
    for (std::uint32_t gi = 0; gi < kMigGpuInstancesMax; ++gi) {
      const std::string name = "gpu" + std::to_string(gpu.minor) + "/gi" + std::to_string(gi);
      const auto line = [&](const std::string& what, std::optional<std::uint32_t> ci) {
        text +=
            name + what + "/access " + std::to_string(SimulatedCapMinor(gpu.minor, gi, ci)) + "\n";
      };
      line("", std::nullopt);
      for (std::uint32_t ci = 0; ci < kMigComputeInstancesMax; ++ci) {
        line("/ci" + std::to_string(ci), ci);
      }
    }
  }
  return text;
}

Status PutProc(const std::string& root, const Scenario& scenario) {
  const std::string nvidia = root + "/proc/driver/nvidia";
  RINGFENCE_TRY(os::MakeDirs(root + "/proc"));
  RINGFENCE_TRY(PutFile(
      root + "/proc/devices",
      std::string(kDevices) + std::string(scenario.has_amd() ? kAmdDevices : std::string_view()),
      0644));
  if (!scenario.has_nvidia()) {
    return os::RemoveTree(root + "/proc/driver");
  }
  RINGFENCE_TRY(os::MakeDirs(nvidia + "/gpus"));
  RINGFENCE_TRY(PutFile(nvidia + "/version",
                        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " +
                            scenario.driver_version + "  Release Build  (simulated)\n",
                        0644));
  RINGFENCE_TRY(PutFile(nvidia + "/params", Params(scenario), 0644));
  RINGFENCE_TRY(os::MakeDirs(root + "/proc/driver/nvidia-caps"));
  RINGFENCE_TRY(PutFile(root + "/proc/driver/nvidia-caps/mig-minors", MigMinors(scenario), 0644));
  for (const SimulatedGpu& gpu : scenario.gpus) {
    if (gpu.is_amd()) {
      continue;
    }
    RINGFENCE_TRY(os::MakeDirs(nvidia + "/gpus/" + ProcName(gpu.pci_address)));
    RINGFENCE_TRY(PutFile(InformationPath(root, gpu), Information(gpu), 0644));
  }
  return {};
}

Status PutDeviceFiles(const std::string& root, const Scenario& scenario) {
  RINGFENCE_TRY(os::MakeDirs(root + "/dev"));
  std::vector<std::string> wanted;
  if (scenario.has_nvidia()) {
    wanted = {"nvidiactl", "nvidia-uvm"};
  }
  for (const SimulatedGpu& gpu : scenario.gpus) {
    if (!gpu.is_amd()) {
      wanted.push_back("nvidia" + std::to_string(gpu.minor));
    }
  }
  RINGFENCE_ASSIGN(const auto names, os::ListDir(root + "/dev"));
  for (const std::string& name : names) {
    if (name != "nvidia-caps" && name != "dri" &&
        std::find(wanted.begin(), wanted.end(), name) == wanted.end()) {
      RINGFENCE_TRY(os::RemoveFile(root + "/dev/" + name));
    }
  }
  for (const std::string& name : wanted) {
    if (!os::Exists(root + "/dev/" + name)) {
      RINGFENCE_TRY(os::WriteFile(root + "/dev/" + name, {}, 0600));
    }
  }
  // Those of instances come and go with them.
  const std::string caps = root + "/dev/nvidia-caps/nvidia-cap";
  RINGFENCE_TRY(os::MakeDirs(root + "/dev/nvidia-caps"));
  RINGFENCE_TRY(PutFile(caps + std::to_string(kMigConfigMinor), "", 0400));
  return PutFile(caps + std::to_string(kMigMonitorMinor), "", 0444);
}

// The number by which a driver calls a compute instance of all of an instance's compute slices.
std::uint32_t WholeCompute(const MigProfile& profile) {
  constexpr std::uint32_t kBySlices[] = {99, 0, 1, 2, 3, 99, 6, 4, 5};
  return kBySlices[profile.compute_slices];
}

// As NVML's stand-in would have cut it (sim/mig_state.h); once there is a state, it stays.
Status PutSlices(const std::string& root, const SimulatedGpu& gpu) {
  const std::string folder = MigFolder(root, gpu.uuid);
  if (gpu.mig_slices.empty()) {
    return {};
  }
  const MigBoard* board = MigBoardOfPci("0x" + Hex8(gpu.pci_device_id));
  if (board == nullptr) {
    return Error{Code::kInvalidArgument, "mig_slices: " + gpu.uuid + " is no board with MIG"};
  }
  RINGFENCE_ASSIGN(const auto wishes, ParseMigLayout(gpu.mig_slices));
  RINGFENCE_ASSIGN(auto layout, PlanMigLayout(*board, wishes));
  if (os::Exists(folder + "/state")) {
    return {};
  }
  const auto id_of = [&](const MigInstance& one) {
    return SimulatedInstanceId(*board, board->profiles[one.profile], one.start);
  };
  std::sort(layout.begin(), layout.end(),
            [&](const MigInstance& a, const MigInstance& b) { return id_of(a) < id_of(b); });
  RINGFENCE_TRY(os::MakeDirs(folder));
  JsonArray instances;
  for (const MigInstance& one : layout) {
    const MigProfile& profile = board->profiles[one.profile];
    const std::uint32_t id = id_of(one);
    const std::string own = MigInstanceFolder(root, gpu.uuid, id);
    RINGFENCE_TRY(os::MakeDirs(own));
    RINGFENCE_TRY(PutFile(own + "/information", "", 0644));
    RINGFENCE_TRY(PutMemory(own + "/memory", SimulatedSliceMib(gpu, *board, profile) << 20U));
    for (const auto& compute : {std::optional<std::uint32_t>(), std::optional<std::uint32_t>(0)}) {
      RINGFENCE_TRY(PutFile(root + "/dev/nvidia-caps/nvidia-cap" +
                                std::to_string(SimulatedCapMinor(gpu.minor, id, compute)),
                            "", 0444));
    }
    instances.push_back(JsonObject{
        {"id", id},
        {"profile", profile.id},
        {"start", one.start},
        {"computes", JsonArray{JsonObject{{"id", 0}, {"profile", WholeCompute(profile)}}}}});
  }
  return PutFile(folder + "/state",
                 CanonicalJson(JsonObject{{"enabled", true}, {"instances", std::move(instances)}}),
                 0644);
}

std::string SeededUuid(ByteView seed) {
  const std::string hex = Hex(crypto::Sha256({AsBytes("ringfence simulated gpu"), seed}));
  return "GPU-" + hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-4" + hex.substr(13, 3) + "-8" +
         hex.substr(17, 3) + "-" + hex.substr(20, 12);
}

}  // namespace

bool IsSimulatedRoot(const std::string& driver_root) {
  return os::Exists(Beneath(driver_root, kSimulatedMarker));
}

Status MakeSimulatedRoot(const std::string& root, const std::string& sim_library_folder,
                         const std::string& scenario_json) {
  const Result<Scenario> scenario = ParseScenario(scenario_json);
  if (!scenario.has_value()) {
    return Prefix("scenario", scenario.error());
  }
  for (const SimulatedGpu& gpu : scenario->gpus) {
    for (const TimelineStep& step : gpu.timeline) {
      if (const auto at = ScenarioAt(*scenario, step.after); !at.has_value()) {
        return Prefix("scenario " + FormatDuration(step.after) + " on", at.error());
      }
    }
  }
  RINGFENCE_TRY(os::MakeDirs(root + "/lib"));
  RINGFENCE_TRY(os::MakeDirs(root + "/memory"));
  RINGFENCE_TRY(PutFile(root + "/" + kSimulatedMarker,
                        "This driver and its GPUs are simulated. Nothing here says anything about "
                        "real hardware.\n",
                        0644));
  for (const auto& [name, wanted] : {std::pair{kNvmlName, scenario->has_nvidia()},
                                     {kCudaName, scenario->has_nvidia()},
                                     {kAmdSmiName, scenario->has_amd()},
                                     {kHipName, scenario->has_amd()}}) {
    RINGFENCE_TRY(wanted ? PutLibrary(sim_library_folder, root + "/lib", name)
                         : os::RemoveTree(root + "/lib/" + name));
  }
  for (const SimulatedGpu& gpu : scenario->gpus) {
    RINGFENCE_TRY(PutMemory(MemoryPath(root, gpu.uuid), gpu.memory_bytes()));
  }
  RINGFENCE_TRY(PutProc(root, *scenario));
  RINGFENCE_TRY(PutDeviceFiles(root, *scenario));
  RINGFENCE_TRY(PutSimulatedAmd(root, *scenario));
  for (const SimulatedGpu& gpu : scenario->gpus) {
    RINGFENCE_TRY(PutSlices(root, gpu));
  }
  return PutFile(root + "/" + kScenarioFile, ScenarioToJson(*scenario) + "\n", 0644);
}

std::string DefaultScenario(std::string_view seed) {
  constexpr unsigned kGpus = 8;
  JsonArray gpus;
  for (unsigned i = 0; i < kGpus; ++i) {
    const Digest digest =
        crypto::Sha256({AsBytes("ringfence simulated serial"), AsBytes(seed), PutBigEndian(i)});
    char serial[16];
    (void)std::snprintf(serial, sizeof serial, "165%010llu",
                        GetBigEndian<unsigned long long>(digest) % 10'000'000'000ULL);
    Bytes own_seed = ToBytes(seed);
    Append(own_seed, PutBigEndian(i));
    gpus.push_back(JsonObject{{"uuid", SeededUuid(own_seed)}, {"serial", serial}});
  }
  const Result<Scenario> scenario = ParseScenario(CanonicalJson(JsonObject{{"gpus", gpus}}));
  return ScenarioToJson(*scenario);
}

std::string H200Scenario() {
  return R"({"driver_version":"580.159.04","cuda_version":"13.0","confidential_computing":"off",
  "gpus":[{"model":"NVIDIA H200","uuid":"GPU-00000000-0000-4000-8000-000000000200",
    "serial":"0000000000000","pci_address":"00000000:00:06.0","pci_device_id":"233510DE",
    "pci_subsystem_id":"18BF10DE","vbios":"96.00.A5.00.1A","gsp_firmware":"580.159.04","minor":0,
    "memory_mib":143771,"reserved_mib":616,"ecc":true,"mig":false,"temperature_c":33,
    "power_mw":122530,"power_limit_mw":700000}]})";
}

}  // namespace ringfence::gpu
