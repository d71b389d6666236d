#include "gpu/scenario.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <tuple>

#include "base/json.h"

namespace ringfence::gpu {
namespace {

constexpr std::int64_t kMemoryMibMax = 1 << 20;
constexpr std::size_t kFailureSwitchesMax = 64;
constexpr std::size_t kBadBytesMax = 4096;
constexpr std::size_t kMigSlicesBytesMax = 1024;

std::string Format(const char* format, unsigned a, unsigned b = 0) {
  std::array<char, 64> text{};
  (void)std::snprintf(text.data(), text.size(), format, a, b);
  return text.data();
}

bool IsHex(std::string_view text, bool upper) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (upper ? c >= 'A' && c <= 'F' : c >= 'a' && c <= 'f');
  });
}

// `shape` has an x for each hexadecimal digit and every other character as itself.
bool HasShape(std::string_view text, std::string_view shape, bool upper) {
  if (text.size() != shape.size()) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (shape[i] == 'x' ? !IsHex(text.substr(i, 1), upper) : text[i] != shape[i]) {
      return false;
    }
  }
  return true;
}

Error Wrong(const std::string& field, const std::string& expected) {
  return Error{Code::kInvalidArgument, field + " must be " + expected, {}, field};
}

Result<FailureSwitches> ReadFailures(JsonReader& reader, const char* name) {
  FailureSwitches switches;
  if (!reader.Has(name)) {
    return switches;
  }
  RINGFENCE_ASSIGN(const Json* value, reader.Any(name));
  const JsonObject* object = value->if_object();
  if (object == nullptr || object->size() > kFailureSwitchesMax) {
    return Wrong(reader.Path(name), "an object of function names and error numbers");
  }
  for (const auto& member : *object) {
    const std::string function(member.key().data(), member.key().size());
    const std::string path = reader.Path(name) + "." + function;
    FailureSwitch failure;
    if (member.value().is_object()) {
      RINGFENCE_ASSIGN(JsonReader inner, JsonReader::Open(member.value(), path));
      RINGFENCE_ASSIGN(const std::int64_t result, inner.Int("result", 1, 999));
      RINGFENCE_ASSIGN(const std::int64_t after, inner.IntOr("after", 0, 0, INT32_MAX));
      RINGFENCE_ASSIGN(const std::int64_t times,
                       inner.IntOr("times", FailureSwitch::kAlways, 1, INT32_MAX));
      RINGFENCE_TRY(inner.Finish());
      failure = {static_cast<int>(result), static_cast<std::uint64_t>(after),
                 static_cast<std::uint64_t>(times)};
    } else {
      const std::int64_t* number = member.value().if_int64();
      if (number == nullptr || *number < 1 || *number > 999) {
        return Wrong(path, "an error number from 1 to 999, or {\"result\", \"after\"}");
      }
      failure.result = static_cast<int>(*number);
    }
    switches.emplace(function, failure);
  }
  return switches;
}

Result<std::optional<bool>> ReadOptionalBool(JsonReader& reader, const char* name, bool fallback,
                                             const JsonObject& object) {
  const Json* value = object.if_contains(name);
  if (value != nullptr && value->is_null()) {
    (void)reader.Has(name);  // asked for: null is a value here, "the card does not say"
    return std::optional<bool>();
  }
  RINGFENCE_ASSIGN(const bool flag, reader.BoolOr(name, fallback));
  return std::optional<bool>(flag);
}

Result<std::vector<BadByte>> ReadBadMemory(JsonReader& reader, std::uint64_t memory_bytes) {
  std::vector<BadByte> bytes;
  if (!reader.Has("bad_memory")) {
    return bytes;
  }
  RINGFENCE_ASSIGN(const auto elements, reader.Array("bad_memory", kBadBytesMax));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::string path = reader.Path("bad_memory") + "[" + std::to_string(i) + "]";
    RINGFENCE_ASSIGN(JsonReader inner, JsonReader::Open(*elements[i], path));
    RINGFENCE_ASSIGN(const std::int64_t offset,
                     inner.Int("offset", 0, static_cast<std::int64_t>(memory_bytes) - 1));
    RINGFENCE_ASSIGN(const std::int64_t and_mask, inner.IntOr("and", 255, 0, 255));
    RINGFENCE_ASSIGN(const std::int64_t or_mask, inner.IntOr("or", 0, 0, 255));
    RINGFENCE_TRY(inner.Finish());
    bytes.push_back({static_cast<std::uint64_t>(offset), static_cast<std::uint8_t>(and_mask),
                     static_cast<std::uint8_t>(or_mask)});
  }
  return bytes;
}

Result<std::uint32_t> ReadId(JsonReader& reader, const char* name, const char* fallback) {
  RINGFENCE_ASSIGN(const std::string text, reader.StringOr(name, fallback, 8));
  if (!HasShape(text, "xxxxxxxx", true)) {
    return Wrong(reader.Path(name), "eight upper-case hexadecimal digits");
  }
  return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16));
}

Result<std::uint32_t> ReadNumber(JsonReader& reader, const char* name, std::int64_t fallback,
                                 std::int64_t most) {
  RINGFENCE_ASSIGN(const std::int64_t number, reader.IntOr(name, fallback, 0, most));
  return static_cast<std::uint32_t>(number);
}

// What a GPU says of itself where its scenario does not.
struct Usual {
  const char* vendor;
  const char* model;
  const char* pci_device_id;
  const char* pci_subsystem_id;
  const char* vbios;
  const char* compute_partition;
  const char* memory_partition;
  std::uint32_t minor;  // of the first
  std::int64_t minor_most;
};
constexpr Usual kUsual[] = {
    {"nvidia", "NVIDIA H200", "233510DE", "18BF10DE", "96.00.A5.00.1A", "", "", 0, 127},
    {"amd", "AMD Instinct MI300X", "74A11002", "74A11002", "113-M3000100-102", "SPX", "NPS1", 128,
     254},
};

Result<const Usual*> ReadVendor(JsonReader& reader, SimulatedGpu& gpu) {
  RINGFENCE_ASSIGN(gpu.vendor, reader.StringOr("vendor", "nvidia", 16));
  for (const Usual& usual : kUsual) {
    if (gpu.vendor == usual.vendor) {
      return &usual;
    }
  }
  return Wrong(reader.Path("vendor"), "nvidia or amd");
}

Status ReadPartitions(JsonReader& reader, SimulatedGpu& gpu, const Usual& usual) {
  for (const auto& [name, fallback, into] :
       {std::tuple{"compute_partition", usual.compute_partition, &gpu.compute_partition},
        std::tuple{"memory_partition", usual.memory_partition, &gpu.memory_partition}}) {
    RINGFENCE_ASSIGN(*into, reader.StringOr(name, fallback, 15));
    if (!into->empty() && !gpu.is_amd()) {
      return Wrong(reader.Path(name), "of a GPU with \"vendor\": \"amd\"");
    }
  }
  return {};
}

Status ReadNames(JsonReader& reader, SimulatedGpu& gpu, const Usual& usual, unsigned index,
                 const std::string& driver_version) {
  RINGFENCE_ASSIGN(gpu.model, reader.StringOr("model", usual.model, 63));
  RINGFENCE_ASSIGN(gpu.uuid,
                   reader.StringOr("uuid", Format("GPU-00000000-0000-4000-8000-%012x", index + 1)));
  if (!HasShape(gpu.uuid, "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", false)) {
    return Wrong(reader.Path("uuid"), "GPU- and a UUID in lower case");
  }
  RINGFENCE_ASSIGN(gpu.serial, reader.StringOr("serial", Format("%013u", index + 1), 29));
  RINGFENCE_ASSIGN(gpu.pci_address,
                   reader.StringOr("pci_address", Format("00000000:%02X:00.0", index + 1)));
  if (!HasShape(gpu.pci_address, "xxxxxxxx:xx:xx.0", true)) {
    return Wrong(reader.Path("pci_address"), "of the form 00000000:0F:00.0");
  }
  RINGFENCE_ASSIGN(gpu.pci_device_id, ReadId(reader, "pci_device_id", usual.pci_device_id));
  RINGFENCE_ASSIGN(gpu.pci_subsystem_id,
                   ReadId(reader, "pci_subsystem_id", usual.pci_subsystem_id));
  RINGFENCE_ASSIGN(gpu.vbios, reader.StringOr("vbios", usual.vbios, 31));
  RINGFENCE_ASSIGN(gpu.gsp_firmware,
                   reader.StringOr("gsp_firmware", gpu.is_amd() ? "" : driver_version, 63));
  return ReadPartitions(reader, gpu, usual);
}

Status ReadKernels(JsonReader& reader, SimulatedGpu& gpu) {
  const auto most = static_cast<std::int64_t>(gpu.memory_bytes());
  RINGFENCE_ASSIGN(const std::int64_t skip, reader.IntOr("kernel_skip_bytes", 0, 0, most));
  gpu.kernel_skip_bytes = static_cast<std::uint64_t>(skip);
  RINGFENCE_ASSIGN(gpu.shared_residue_bytes,
                   ReadNumber(reader, "shared_residue_bytes", 0, INT32_MAX));
  RINGFENCE_ASSIGN(gpu.shared_bad_bytes, ReadNumber(reader, "shared_bad_bytes", 0, INT32_MAX));
  RINGFENCE_ASSIGN(gpu.hidden_multiprocessors,
                   ReadNumber(reader, "hidden_multiprocessors", 0, INT32_MAX));
  RINGFENCE_ASSIGN(gpu.kernels_spill, reader.BoolOr("kernels_spill", false));
  RINGFENCE_ASSIGN(gpu.mig_lies, reader.BoolOr("mig_lies", false));
  return {};
}

Result<SimulatedGpu> ReadGpu(const Json& value, unsigned index, const std::string& driver_version) {
  RINGFENCE_ASSIGN(JsonReader reader,
                   JsonReader::Open(value, "gpus[" + std::to_string(index) + "]"));
  const JsonObject& object = *value.if_object();
  SimulatedGpu gpu;
  RINGFENCE_ASSIGN(const Usual* usual, ReadVendor(reader, gpu));
  RINGFENCE_TRY(ReadNames(reader, gpu, *usual, index, driver_version));
  RINGFENCE_ASSIGN(gpu.minor, ReadNumber(reader, "minor", usual->minor + index, usual->minor_most));
  if (gpu.minor < usual->minor) {
    return Wrong(reader.Path("minor"), "from 128 on for a render node");
  }
  RINGFENCE_ASSIGN(const std::int64_t memory, reader.IntOr("memory_mib", 64, 2, kMemoryMibMax));
  RINGFENCE_ASSIGN(const std::int64_t reserved, reader.IntOr("reserved_mib", 1, 0, memory - 1));
  gpu.memory_mib = static_cast<std::uint64_t>(memory);
  gpu.reserved_mib = static_cast<std::uint64_t>(reserved);
  RINGFENCE_ASSIGN(gpu.ecc, ReadOptionalBool(reader, "ecc", true, object));
  RINGFENCE_ASSIGN(gpu.mig, ReadOptionalBool(reader, "mig", false, object));
  RINGFENCE_ASSIGN(gpu.mig_slices, reader.StringOr("mig_slices", "", kMigSlicesBytesMax));
  if (!gpu.mig_slices.empty() && !gpu.mig.value_or(false)) {
    return Wrong(reader.Path("mig_slices"), "of a GPU with \"mig\": true");
  }
  RINGFENCE_ASSIGN(gpu.temperature_c, ReadNumber(reader, "temperature_c", 33, 200));
  RINGFENCE_ASSIGN(gpu.power_mw, ReadNumber(reader, "power_mw", 75000, 10'000'000));
  RINGFENCE_ASSIGN(gpu.power_limit_mw, ReadNumber(reader, "power_limit_mw", 700000, 10'000'000));
  RINGFENCE_ASSIGN(gpu.utilization_percent, ReadNumber(reader, "utilization_percent", 0, 100));
  RINGFENCE_ASSIGN(gpu.ecc_errors_corrected,
                   ReadNumber(reader, "ecc_errors_corrected", 0, INT32_MAX));
  RINGFENCE_ASSIGN(gpu.ecc_errors_uncorrected,
                   ReadNumber(reader, "ecc_errors_uncorrected", 0, INT32_MAX));
  RINGFENCE_ASSIGN(gpu.lost, reader.BoolOr("lost", false));
  RINGFENCE_TRY(ReadSignals(reader, gpu.signals));
  RINGFENCE_ASSIGN(gpu.timeline, ReadTimeline(reader));
  RINGFENCE_ASSIGN(gpu.cuda_failures, ReadFailures(reader, "fail"));
  RINGFENCE_ASSIGN(gpu.nvml_failures, ReadFailures(reader, "nvml_fail"));
  RINGFENCE_ASSIGN(gpu.bad_memory, ReadBadMemory(reader, gpu.memory_bytes()));
  RINGFENCE_TRY(ReadKernels(reader, gpu));
  RINGFENCE_TRY(reader.Finish());
  return gpu;
}

Status CheckDistinct(const std::vector<SimulatedGpu>& gpus) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const std::array<std::pair<const char*, std::string>, 3> facts = {
        {{"uuid", gpus[i].uuid},
         {"pci_address", gpus[i].pci_address},
         {"minor", std::to_string(gpus[i].minor)}}};
    for (const auto& [field, fact] : facts) {
      if (!seen.insert(std::string(field) + fact).second) {
        return Wrong("gpus[" + std::to_string(i) + "]." + field,
                     "of this GPU alone; another one has " + fact);
      }
    }
  }
  return {};
}

Result<int> ReadCudaVersion(JsonReader& reader) {
  RINGFENCE_ASSIGN(const std::string text, reader.StringOr("cuda_version", "13.0", 5));
  unsigned major = 0;
  unsigned minor = 0;
  int used = 0;
  if (std::sscanf(text.c_str(), "%2u.%1u%n", &major, &minor, &used) != 2 ||
      static_cast<std::size_t>(used) != text.size()) {
    return Wrong(reader.Path("cuda_version"), "of the form 13.0");
  }
  return static_cast<int>(major * 1000 + minor * 10);
}

Json FailuresToJson(const FailureSwitches& switches) {
  JsonObject object;
  for (const auto& [name, failure] : switches) {
    object[name] =
        JsonObject{{"result", failure.result}, {"after", failure.after}, {"times", failure.times}};
  }
  return object;
}

Json OptionalBool(const std::optional<bool>& flag) {
  return flag.has_value() ? Json(*flag) : Json(nullptr);
}

JsonObject GpuToJson(const SimulatedGpu& gpu) {
  JsonArray bad;
  for (const BadByte& byte : gpu.bad_memory) {
    bad.push_back(JsonObject{
        {"offset", byte.offset}, {"and", unsigned{byte.and_mask}}, {"or", unsigned{byte.or_mask}}});
  }
  JsonObject json{{"vendor", gpu.vendor},
                  {"compute_partition", gpu.compute_partition},
                  {"memory_partition", gpu.memory_partition},
                  {"model", gpu.model},
                  {"uuid", gpu.uuid},
                  {"serial", gpu.serial},
                  {"pci_address", gpu.pci_address},
                  {"pci_device_id", Format("%08X", gpu.pci_device_id)},
                  {"pci_subsystem_id", Format("%08X", gpu.pci_subsystem_id)},
                  {"vbios", gpu.vbios},
                  {"gsp_firmware", gpu.gsp_firmware},
                  {"minor", gpu.minor},
                  {"memory_mib", gpu.memory_mib},
                  {"reserved_mib", gpu.reserved_mib},
                  {"ecc", OptionalBool(gpu.ecc)},
                  {"mig", OptionalBool(gpu.mig)},
                  {"mig_slices", gpu.mig_slices},
                  {"temperature_c", gpu.temperature_c},
                  {"power_mw", gpu.power_mw},
                  {"power_limit_mw", gpu.power_limit_mw},
                  {"utilization_percent", gpu.utilization_percent},
                  {"ecc_errors_corrected", gpu.ecc_errors_corrected},
                  {"ecc_errors_uncorrected", gpu.ecc_errors_uncorrected},
                  {"lost", gpu.lost},
                  {"fail", FailuresToJson(gpu.cuda_failures)},
                  {"nvml_fail", FailuresToJson(gpu.nvml_failures)},
                  {"bad_memory", std::move(bad)},
                  {"kernel_skip_bytes", gpu.kernel_skip_bytes},
                  {"shared_residue_bytes", gpu.shared_residue_bytes},
                  {"shared_bad_bytes", gpu.shared_bad_bytes},
                  {"hidden_multiprocessors", gpu.hidden_multiprocessors},
                  {"kernels_spill", gpu.kernels_spill},
                  {"mig_lies", gpu.mig_lies},
                  {"timeline", TimelineToJson(gpu.timeline)}};
  WriteSignals(gpu.signals, json);
  return json;
}

}  // namespace

Result<Scenario> ParseScenario(std::string_view text) {
  RINGFENCE_ASSIGN(const Json document, ParseJson(text, kScenarioBytesMax));
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(document));
  Scenario scenario;
  RINGFENCE_ASSIGN(scenario.driver_version, reader.StringOr("driver_version", "580.159.04", 63));
  RINGFENCE_ASSIGN(scenario.amdgpu_version, reader.StringOr("amdgpu_version", "6.12.12", 63));
  RINGFENCE_ASSIGN(scenario.cuda_version, ReadCudaVersion(reader));
  RINGFENCE_ASSIGN(
      scenario.nvml_version,
      reader.StringOr("nvml_version",
                      std::to_string(scenario.cuda_version / 1000) + "." + scenario.driver_version,
                      79));
  RINGFENCE_ASSIGN(const std::string confidential,
                   reader.StringOr("confidential_computing", "off", 16));
  if (confidential != "unsupported") {
    if (confidential != "off" && confidential != "on" && confidential != "devtools") {
      return Wrong("confidential_computing", "off, on, devtools or unsupported");
    }
    scenario.confidential_computing = confidential;
  }
  if (reader.Has("scrub_on_free")) {
    RINGFENCE_ASSIGN(const Json* const scrubs, reader.Any("scrub_on_free"));
    if (!scrubs->is_null() && !scrubs->is_bool()) {
      return Wrong("scrub_on_free", "true, false or null");
    }
    if (scrubs->is_bool()) {
      scenario.scrub_on_free = scrubs->get_bool();
    }
  }
  RINGFENCE_ASSIGN(scenario.cuda_failures, ReadFailures(reader, "fail"));
  RINGFENCE_ASSIGN(scenario.nvml_failures, ReadFailures(reader, "nvml_fail"));
  RINGFENCE_ASSIGN(const auto gpus, reader.Array("gpus", kSimulatedGpusMax));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    RINGFENCE_ASSIGN(SimulatedGpu gpu,
                     ReadGpu(*gpus[i], static_cast<unsigned>(i), scenario.driver_version));
    gpu.scrubs_on_free = scenario.scrub_on_free.value_or(false);
    scenario.gpus.push_back(std::move(gpu));
  }
  RINGFENCE_TRY(reader.Finish());
  RINGFENCE_TRY(CheckDistinct(scenario.gpus));
  std::sort(scenario.gpus.begin(), scenario.gpus.end(),
            [](const auto& a, const auto& b) { return a.pci_address < b.pci_address; });
  return scenario;
}

std::string ScenarioToJson(const Scenario& scenario) {
  JsonArray gpus;
  for (const SimulatedGpu& gpu : scenario.gpus) {
    gpus.push_back(GpuToJson(gpu));
  }
  const int version = scenario.cuda_version;
  return CanonicalJson(JsonObject{
      {"driver_version", scenario.driver_version},
      {"amdgpu_version", scenario.amdgpu_version},
      {"cuda_version", std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10)},
      {"nvml_version", scenario.nvml_version},
      {"confidential_computing", scenario.confidential_computing.value_or("unsupported")},
      {"scrub_on_free", scenario.scrub_on_free ? Json(*scenario.scrub_on_free) : Json(nullptr)},
      {"fail", FailuresToJson(scenario.cuda_failures)},
      {"nvml_fail", FailuresToJson(scenario.nvml_failures)},
      {"gpus", std::move(gpus)}});
}

std::string ProcName(const std::string& pci_address) {
  std::string name = pci_address.substr(4);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  return name;
}

bool Scenario::has_amd() const {
  return std::any_of(gpus.begin(), gpus.end(), [](const auto& gpu) { return gpu.is_amd(); });
}

bool Scenario::has_nvidia() const {
  return gpus.empty() ||
         std::any_of(gpus.begin(), gpus.end(), [](const auto& gpu) { return !gpu.is_amd(); });
}

std::string AmdFolder(const std::string& root, const SimulatedGpu& gpu) {
  return root + "/sys/bus/pci/devices/" + ProcName(gpu.pci_address);
}

std::string AmdNodeFolder(const std::string& root, const SimulatedGpu& gpu) {
  return root + "/sys/class/kfd/kfd/topology/nodes/" + std::to_string(gpu.minor);
}

std::string InformationPath(const std::string& root, const SimulatedGpu& gpu) {
  if (gpu.is_amd()) {
    return AmdFolder(root, gpu) + "/uevent";
  }
  if (gpu.slice.has_value()) {
    return MigInstanceFolder(root, gpu.slice->parent, gpu.slice->gpu_instance) + "/information";
  }
  return root + "/proc/driver/nvidia/gpus/" + ProcName(gpu.pci_address) + "/information";
}

std::string MemoryPath(const std::string& root, const std::string& uuid) {
  return root + "/memory/" + uuid;
}

std::string MemoryPath(const std::string& root, const SimulatedGpu& gpu) {
  return gpu.slice.has_value()
             ? MigInstanceFolder(root, gpu.slice->parent, gpu.slice->gpu_instance) + "/memory"
             : MemoryPath(root, gpu.uuid);
}

std::string MigFolder(const std::string& root, const std::string& uuid) {
  return root + "/mig/" + uuid;
}

std::string MigInstanceFolder(const std::string& root, const std::string& uuid,
                              std::uint32_t gpu_instance) {
  return MigFolder(root, uuid) + "/gi" + std::to_string(gpu_instance);
}

std::uint32_t SimulatedInstanceId(const MigBoard& board, const MigProfile& profile,
                                  std::uint32_t start) {
  return board.slices / profile.slices - 1 + start / profile.slices;
}

std::uint64_t SimulatedSliceMib(const SimulatedGpu& gpu, const MigBoard& board,
                                const MigProfile& profile) {
  const std::uint64_t share = (gpu.memory_mib - gpu.reserved_mib) * profile.slices / board.slices;
  return std::max<std::uint64_t>(share, 1);
}

std::uint32_t SimulatedCapMinor(std::uint32_t gpu_minor, std::uint32_t gpu_instance,
                                std::optional<std::uint32_t> compute_instance) {
  const std::uint32_t each = kMigComputeInstancesMax + 1;
  return kMigMonitorMinor + 1 + (gpu_minor * kMigGpuInstancesMax + gpu_instance) * each +
         (compute_instance.has_value() ? *compute_instance + 1 : 0);
}

}  // namespace ringfence::gpu
