#include "gpu/inventory.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

#include "base/encoding.h"
#include "gpu/amd_inventory.h"
#include "gpu/amd_sysfs.h"
#include "gpu/device_files.h"
#include "gpu/library.h"
#include "gpu/limits.h"
#include "gpu/nvml_session.h"
#include "gpu/sharing.h"

namespace ringfence::gpu {
namespace {

using nvml::Return;

Status RequireFunctions(const nvml::Api& api, const std::string& path) {
  std::string missing;
  const auto require = [&](const void* function, const char* name) {
    if (function == nullptr && missing.empty()) {
      missing = name;
    }
  };
#define RINGFENCE_REQUIRE(name) require(reinterpret_cast<const void*>(api.name), #name)
  RINGFENCE_REQUIRE(nvmlInit_v2);
  RINGFENCE_REQUIRE(nvmlShutdown);
  RINGFENCE_REQUIRE(nvmlErrorString);
  RINGFENCE_REQUIRE(nvmlSystemGetDriverVersion);
  RINGFENCE_REQUIRE(nvmlSystemGetNVMLVersion);
  RINGFENCE_REQUIRE(nvmlSystemGetCudaDriverVersion_v2);
  RINGFENCE_REQUIRE(nvmlDeviceGetCount_v2);
  RINGFENCE_REQUIRE(nvmlDeviceGetHandleByIndex_v2);
  RINGFENCE_REQUIRE(nvmlDeviceGetUUID);
  RINGFENCE_REQUIRE(nvmlDeviceGetName);
  RINGFENCE_REQUIRE(nvmlDeviceGetSerial);
  RINGFENCE_REQUIRE(nvmlDeviceGetVbiosVersion);
  RINGFENCE_REQUIRE(nvmlDeviceGetMinorNumber);
  RINGFENCE_REQUIRE(nvmlDeviceGetPciInfo_v3);
  RINGFENCE_REQUIRE(nvmlDeviceGetMemoryInfo);
  RINGFENCE_REQUIRE(nvmlDeviceGetEccMode);
  RINGFENCE_REQUIRE(nvmlDeviceGetMigMode);
  RINGFENCE_REQUIRE(nvmlDeviceGetComputeRunningProcesses_v3);
#undef RINGFENCE_REQUIRE
  if (!missing.empty()) {
    return Error{Code::kFailedPrecondition, path + " has no function " + missing,
                 "use a driver of branch 525 or later"};
  }
  return {};
}

// Reads one card. Each step is one NVML call; the first that fails names the card and the call.
class CardReader {
 public:
  CardReader(const nvml::Api& api, nvml::Device device, std::uint32_t index)
      : api_(api), device_(device), who_("GPU " + std::to_string(index)) {
    gpu_.index = index;
  }

  Result<Gpu> Read() {
    RINGFENCE_ASSIGN(gpu_.uuid,
                     Text<nvml::kUuidBytes>("nvmlDeviceGetUUID", api_.nvmlDeviceGetUUID));
    who_ += " (" + gpu_.uuid + ")";
    RINGFENCE_ASSIGN(gpu_.model,
                     Text<nvml::kNameBytes>("nvmlDeviceGetName", api_.nvmlDeviceGetName));
    RINGFENCE_ASSIGN(gpu_.serial,
                     Text<nvml::kSerialBytes>("nvmlDeviceGetSerial", api_.nvmlDeviceGetSerial));
    RINGFENCE_ASSIGN(gpu_.vbios, Text<nvml::kVbiosBytes>("nvmlDeviceGetVbiosVersion",
                                                         api_.nvmlDeviceGetVbiosVersion));
    RINGFENCE_TRY(ReadGsp());
    unsigned int minor = 0;
    RINGFENCE_TRY(Must("nvmlDeviceGetMinorNumber", api_.nvmlDeviceGetMinorNumber(device_, &minor)));
    gpu_.minor = minor;
    RINGFENCE_TRY(ReadPci());
    nvml::Memory memory{};
    RINGFENCE_TRY(Must("nvmlDeviceGetMemoryInfo", api_.nvmlDeviceGetMemoryInfo(device_, &memory)));
    gpu_.memory_bytes = memory.total;
    gpu_.memory_used_bytes = memory.used;
    RINGFENCE_ASSIGN(gpu_.ecc_enabled, Mode("nvmlDeviceGetEccMode", api_.nvmlDeviceGetEccMode));
    RINGFENCE_ASSIGN(gpu_.mig_enabled, Mode("nvmlDeviceGetMigMode", api_.nvmlDeviceGetMigMode));
    RINGFENCE_TRY(ReadProcesses());
    return std::move(gpu_);
  }

  Result<Gpu> ReadSlice(const Gpu& parent) {
    gpu_ = parent;
    gpu_.processes.clear();
    gpu_.mig_enabled.reset();
    RINGFENCE_ASSIGN(gpu_.uuid,
                     Text<nvml::kUuidBytes>("nvmlDeviceGetUUID", api_.nvmlDeviceGetUUID));
    RINGFENCE_ASSIGN(gpu_.model,
                     Text<nvml::kNameBytes>("nvmlDeviceGetName", api_.nvmlDeviceGetName));
    nvml::Memory memory{};
    RINGFENCE_TRY(Must("nvmlDeviceGetMemoryInfo", api_.nvmlDeviceGetMemoryInfo(device_, &memory)));
    gpu_.memory_bytes = memory.total;
    gpu_.memory_used_bytes = memory.used;
    RINGFENCE_TRY(ReadProcesses());
    return std::move(gpu_);
  }

 private:
  Status Must(const char* function, Return code) const {
    if (code == nvml::kSuccess) {
      return {};
    }
    return Error{NvmlCode(code), who_ + ": " + function + ": " + NvmlWords(api_, code)};
  }

  // Empty where the card does not support the question.
  template <unsigned kBytes>
  Result<std::string> Text(const char* function,
                           Return (*call)(nvml::Device, char*, unsigned int)) const {
    std::array<char, kBytes + 1> text{};
    const Return code = call(device_, text.data(), kBytes);
    if (code == nvml::kNotSupported) {
      return std::string();
    }
    RINGFENCE_TRY(Must(function, code));
    return Checked(function, text.data());
  }

  // What a driver says goes into JSON and to terminals.
  Result<std::string> Checked(const char* function, const char* text) const {
    const std::string_view view(text);
    const bool plain =
        std::all_of(view.begin(), view.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
    if (!plain) {
      return Error{Code::kCorrupt, who_ + ": " + function + " answered with unprintable text"};
    }
    return std::string(view);
  }

  Status ReadGsp() {
    if (api_.nvmlDeviceGetGspFirmwareVersion == nullptr) {
      return {};
    }
    std::array<char, nvml::kGspVersionBytes + 1> text{};
    const Return code = api_.nvmlDeviceGetGspFirmwareVersion(device_, text.data());
    if (code == nvml::kNotSupported) {
      return {};
    }
    RINGFENCE_TRY(Must("nvmlDeviceGetGspFirmwareVersion", code));
    RINGFENCE_ASSIGN(gpu_.gsp_firmware, Checked("nvmlDeviceGetGspFirmwareVersion", text.data()));
    return {};
  }

  Status ReadPci() {
    nvml::PciInfo pci{};
    RINGFENCE_TRY(Must("nvmlDeviceGetPciInfo_v3", api_.nvmlDeviceGetPciInfo_v3(device_, &pci)));
    pci.bus_id[sizeof pci.bus_id - 1] = '\0';
    RINGFENCE_ASSIGN(gpu_.pci_address, Checked("nvmlDeviceGetPciInfo_v3", pci.bus_id));
    std::array<char, 16> id{};
    (void)std::snprintf(id.data(), id.size(), "%08x", pci.pci_device_id);
    gpu_.pci_device_id = id.data();
    return {};
  }

  Result<std::optional<bool>> Mode(const char* function, Return (*call)(nvml::Device, unsigned int*,
                                                                        unsigned int*)) const {
    unsigned int current = 0;
    unsigned int pending = 0;
    const Return code = call(device_, &current, &pending);
    if (code == nvml::kNotSupported) {
      return std::optional<bool>();
    }
    RINGFENCE_TRY(Must(function, code));
    return std::optional<bool>(current != 0);
  }

  Status ReadProcesses() {
    std::array<nvml::ProcessInfo, kProcessesMax> processes{};
    unsigned int count = kProcessesMax;
    RINGFENCE_TRY(
        Must("nvmlDeviceGetComputeRunningProcesses_v3",
             api_.nvmlDeviceGetComputeRunningProcesses_v3(device_, &count, processes.data())));
    constexpr unsigned long long kNotAvailable = ~0ULL;  // the driver does not say how much
    for (const nvml::ProcessInfo& process :
         std::span(processes).first(std::min<std::size_t>(count, kProcessesMax))) {
      gpu_.processes.push_back(
          {process.pid, process.used_memory == kNotAvailable ? 0 : process.used_memory});
    }
    return {};
  }

  const nvml::Api& api_;
  nvml::Device device_;
  std::string who_;
  Gpu gpu_;
};

// A slice is described by its GPU where the driver knows no other answer.
class SliceReader {
 public:
  SliceReader(const nvml::Api& api, nvml::Device parent, const Gpu& of)
      : api_(api), parent_(parent), of_(of) {}

  Result<std::vector<Gpu>> Read() const {
    std::vector<Gpu> slices;
    if (!of_.mig_enabled.value_or(false) || api_.nvmlDeviceGetMaxMigDeviceCount == nullptr ||
        api_.nvmlDeviceGetMigDeviceHandleByIndex == nullptr ||
        api_.nvmlDeviceGetGpuInstanceId == nullptr ||
        api_.nvmlDeviceGetComputeInstanceId == nullptr) {
      return slices;
    }
    unsigned int count = 0;
    RINGFENCE_TRY(Must("nvmlDeviceGetMaxMigDeviceCount",
                       api_.nvmlDeviceGetMaxMigDeviceCount(parent_, &count)));
    for (unsigned int i = 0; i < std::min(count, kSlicesMax); ++i) {
      nvml::Device device = nullptr;
      const Return code = api_.nvmlDeviceGetMigDeviceHandleByIndex(parent_, i, &device);
      if (code == nvml::kNotFound) {
        continue;
      }
      RINGFENCE_TRY(Must("nvmlDeviceGetMigDeviceHandleByIndex", code));
      RINGFENCE_ASSIGN(Gpu slice, CardReader(api_, device, of_.index).ReadSlice(of_));
      RINGFENCE_ASSIGN(slice.slice, Describe(device, slice));
      slices.push_back(std::move(slice));
    }
    return slices;
  }

 private:
  static constexpr unsigned int kSlicesMax = 16;

  Status Must(const char* function, Return code) const {
    if (code == nvml::kSuccess) {
      return {};
    }
    return Error{NvmlCode(code), of_.uuid + ": " + function + ": " + NvmlWords(api_, code)};
  }

  Result<GpuSlice> Describe(nvml::Device device, const Gpu& named) const {
    GpuSlice slice;
    slice.parent = of_.uuid;
    unsigned int id = 0;
    RINGFENCE_TRY(Must("nvmlDeviceGetGpuInstanceId", api_.nvmlDeviceGetGpuInstanceId(device, &id)));
    slice.gpu_instance = id;
    RINGFENCE_TRY(
        Must("nvmlDeviceGetComputeInstanceId", api_.nvmlDeviceGetComputeInstanceId(device, &id)));
    slice.compute_instance = id;
    // "NVIDIA H200 MIG 1g.18gb"; one that shares its instance is called "1c.2g.35gb".
    const std::size_t at = named.model.rfind(" MIG ");
    if (at == std::string::npos) {
      return Error{Code::kCorrupt,
                   named.uuid + ": the driver's name for it has no profile: " + named.model};
    }
    slice.profile = named.model.substr(at + 5);
    nvml::GpuInstance instance = nullptr;
    nvml::GpuInstanceInfo info{};
    if (api_.nvmlDeviceGetGpuInstanceById != nullptr && api_.nvmlGpuInstanceGetInfo != nullptr &&
        api_.nvmlDeviceGetGpuInstanceById(parent_, slice.gpu_instance, &instance) ==
            nvml::kSuccess &&
        api_.nvmlGpuInstanceGetInfo(instance, &info) == nvml::kSuccess) {
      slice.start = info.placement.start;
    }
    return slice;
  }

  const nvml::Api& api_;
  nvml::Device parent_;
  const Gpu& of_;
};

Result<std::string> SystemText(const nvml::Api& api, const char* function,
                               Return (*call)(char*, unsigned int)) {
  std::array<char, nvml::kVersionBytes + 1> text{};
  const Return code = call(text.data(), nvml::kVersionBytes);
  if (code != nvml::kSuccess) {
    return Error{NvmlCode(code), std::string(function) + ": " + NvmlWords(api, code)};
  }
  if (!IsUtf8(text.data())) {
    return Error{Code::kCorrupt, std::string(function) + " answered with unprintable text"};
  }
  return std::string(text.data());
}

Result<std::string> ConfidentialComputing(const nvml::Api& api) {
  nvml::ConfComputeState state{};
  const Return code = api.nvmlSystemGetConfComputeState == nullptr
                          ? nvml::kNotSupported
                          : api.nvmlSystemGetConfComputeState(&state);
  if (code == nvml::kNotSupported) {
    return std::string("unknown");
  }
  if (code != nvml::kSuccess) {
    return Error{NvmlCode(code), "nvmlSystemGetConfComputeState: " + NvmlWords(api, code)};
  }
  // DevTools mode lets a debugger look inside: never to be taken for "on".
  return std::string(state.devtools != 0 ? "devtools" : state.feature != 0 ? "on" : "off");
}

Result<Inventory> ReadNvidia(const std::string& driver_root, const Library& library) {
  const nvml::Api api = LoadNvml(library);
  RINGFENCE_TRY(RequireFunctions(api, library.path()));
  Inventory inventory;
  inventory.simulated = library.simulated();
  inventory.library_path = library.path();
  RINGFENCE_ASSIGN(inventory.library_digest, library.FileDigest());
  RINGFENCE_ASSIGN(inventory.kernel_driver, KernelDriver(driver_root));
  inventory.scrub_on_free = ReadScrubOnFree(driver_root);
  RINGFENCE_ASSIGN(const NvmlSession session, NvmlSession::Start(api));
  RINGFENCE_ASSIGN(inventory.driver_version,
                   SystemText(api, "nvmlSystemGetDriverVersion", api.nvmlSystemGetDriverVersion));
  RINGFENCE_ASSIGN(inventory.nvml_version,
                   SystemText(api, "nvmlSystemGetNVMLVersion", api.nvmlSystemGetNVMLVersion));
  int cuda_version = 0;
  if (const Return code = api.nvmlSystemGetCudaDriverVersion_v2(&cuda_version);
      code != nvml::kSuccess) {
    return Error{NvmlCode(code), "nvmlSystemGetCudaDriverVersion_v2: " + NvmlWords(api, code)};
  }
  inventory.cuda_version = CudaVersionText(cuda_version);
  RINGFENCE_ASSIGN(const std::string confidential, ConfidentialComputing(api));
  unsigned int count = 0;
  if (const Return code = api.nvmlDeviceGetCount_v2(&count); code != nvml::kSuccess) {
    return Error{NvmlCode(code), "nvmlDeviceGetCount_v2: " + NvmlWords(api, code)};
  }
  if (count > kGpusMax) {
    return Error{Code::kExhausted, "NVML counts " + std::to_string(count) + " GPUs, over the " +
                                       std::to_string(kGpusMax) + " that one node may have"};
  }
  for (unsigned int index = 0; index < count; ++index) {
    nvml::Device device = nullptr;
    if (const Return code = api.nvmlDeviceGetHandleByIndex_v2(index, &device);
        code != nvml::kSuccess) {
      return Error{NvmlCode(code), "GPU " + std::to_string(index) +
                                       ": nvmlDeviceGetHandleByIndex_v2: " + NvmlWords(api, code)};
    }
    RINGFENCE_ASSIGN(Gpu gpu, CardReader(api, device, index).Read());
    if (IsRenderMinor(gpu.minor)) {
      return Error{Code::kExhausted, gpu.uuid + ": device minor " + std::to_string(gpu.minor) +
                                         " is over those that one node may have"};
    }
    gpu.confidential_computing = confidential;
    RINGFENCE_ASSIGN(std::vector<Gpu> slices, SliceReader(api, device, gpu).Read());
    inventory.gpus.push_back(std::move(gpu));
    std::move(slices.begin(), slices.end(), std::back_inserter(inventory.gpus));
  }
  return inventory;
}

Status AddAmd(const std::string& driver_root, const Library& library, bool alone,
              Inventory& inventory) {
  RINGFENCE_ASSIGN(AmdPart part, ReadAmd(driver_root, library));
  std::uint32_t index = 0;
  for (const Gpu& gpu : inventory.gpus) {
    index = std::max(index, gpu.index + 1);
  }
  if (index + part.gpus.size() > kGpusMax) {
    return Error{Code::kExhausted,
                 "there are more than the " + std::to_string(kGpusMax) + " GPUs of one node"};
  }
  for (Gpu& gpu : part.gpus) {
    gpu.index += index;
    inventory.gpus.push_back(std::move(gpu));
  }
  inventory.simulated = inventory.simulated || part.simulated;
  if (alone) {
    inventory.driver_version = part.driver.version;
    inventory.kernel_driver = "amdgpu " + part.driver.version;
    inventory.library_path = part.driver.library_path;
    inventory.library_digest = part.driver.library_digest;
  }
  inventory.amd = std::move(part.driver);
  return {};
}

}  // namespace

Result<Inventory> ReadInventory(const std::string& driver_root) {
  const Result<Library> nvml = Library::Open(driver_root, kNvmlName);
  const Result<Library> amd_smi = Library::Open(driver_root, kAmdSmiName);
  if (!nvml.has_value() && !amd_smi.has_value()) {
    return HasAmdDriver(driver_root) ? amd_smi.error() : nvml.error();
  }
  const bool choose = nvml.has_value() && amd_smi.has_value();
  const bool with_nvidia =
      nvml.has_value() && !(choose && !HasNvidiaDriver(driver_root) && HasAmdDriver(driver_root));
  const bool with_amd = amd_smi.has_value() && !(choose && !HasAmdDriver(driver_root));
  Inventory inventory;
  if (with_nvidia) {
    RINGFENCE_ASSIGN(inventory, ReadNvidia(driver_root, *nvml));
  }
  if (with_amd) {
    RINGFENCE_TRY(AddAmd(driver_root, *amd_smi, !with_nvidia, inventory));
  }
  return inventory;
}

}  // namespace ringfence::gpu
