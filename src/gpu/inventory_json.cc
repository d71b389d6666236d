#include "gpu/inventory.h"
#include "gpu/limits.h"

namespace ringfence::gpu {
namespace {

constexpr std::int64_t kBytesMax = std::int64_t{1} << 53U;
constexpr std::size_t kTextBytesMax = 256;

// Signed, as a parser makes them: what is written is what can be read, without text between.
std::int64_t Number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

Json OptionalBool(const std::optional<bool>& flag) {
  return flag.has_value() ? Json(*flag) : Json(nullptr);
}

Result<std::optional<bool>> ReadOptionalBool(JsonReader& reader, const char* name) {
  if (!reader.Has(name)) {
    return std::optional<bool>();
  }
  RINGFENCE_ASSIGN(const bool flag, reader.Bool(name));
  return std::optional<bool>(flag);
}

Result<std::uint64_t> ReadBytes(JsonReader& reader, const char* name) {
  RINGFENCE_ASSIGN(const std::int64_t number, reader.Int(name, 0, kBytesMax));
  return static_cast<std::uint64_t>(number);
}

Result<std::uint32_t> ReadSmall(JsonReader& reader, const char* name, std::int64_t most) {
  RINGFENCE_ASSIGN(const std::int64_t number, reader.Int(name, 0, most));
  return static_cast<std::uint32_t>(number);
}

JsonObject SliceToJson(const GpuSlice& slice) {
  return JsonObject{{"parent", slice.parent},
                    {"profile", slice.profile},
                    {"gpu_instance", Number(slice.gpu_instance)},
                    {"compute_instance", Number(slice.compute_instance)},
                    {"start", slice.start ? Json(Number(*slice.start)) : Json(nullptr)}};
}

JsonObject GpuToJson(const Gpu& gpu) {
  JsonArray processes;
  for (const GpuProcess& process : gpu.processes) {
    processes.push_back(
        JsonObject{{"pid", Number(process.pid)}, {"memory_bytes", Number(process.memory_bytes)}});
  }
  JsonObject object{{"uuid", gpu.uuid},
                    {"model", gpu.model},
                    {"index", Number(gpu.index)},
                    {"minor", Number(gpu.minor)},
                    {"serial", gpu.serial},
                    {"pci_address", gpu.pci_address},
                    {"pci_device_id", gpu.pci_device_id},
                    {"memory_bytes", Number(gpu.memory_bytes)},
                    {"memory_used_bytes", Number(gpu.memory_used_bytes)},
                    {"vbios", gpu.vbios},
                    {"gsp_firmware", gpu.gsp_firmware},
                    {"ecc_enabled", OptionalBool(gpu.ecc_enabled)},
                    {"mig_enabled", OptionalBool(gpu.mig_enabled)},
                    {"confidential_computing", gpu.confidential_computing},
                    {"processes", std::move(processes)}};
  if (gpu.slice.has_value()) {
    object["slice"] = SliceToJson(*gpu.slice);
  }
  if (gpu.vendor != kNvidia) {
    object["vendor"] = gpu.vendor;
    object["compute_partition"] = gpu.compute_partition;
    object["memory_partition"] = gpu.memory_partition;
    object["never_run_on_hardware"] = gpu.never_run_on_hardware();
  }
  return object;
}

Result<std::vector<GpuProcess>> ReadProcesses(JsonReader& reader) {
  RINGFENCE_ASSIGN(const auto elements, reader.Array("processes", kProcessesMax));
  std::vector<GpuProcess> processes;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::string path = reader.Path("processes") + "[" + std::to_string(i) + "]";
    RINGFENCE_ASSIGN(JsonReader inner, JsonReader::Open(*elements[i], path));
    GpuProcess process;
    RINGFENCE_ASSIGN(process.pid, ReadSmall(inner, "pid", UINT32_MAX));
    RINGFENCE_ASSIGN(process.memory_bytes, ReadBytes(inner, "memory_bytes"));
    RINGFENCE_TRY(inner.Finish());
    processes.push_back(process);
  }
  return processes;
}

Result<std::optional<GpuSlice>> ReadSlice(JsonReader& reader) {
  constexpr std::int64_t kInstancesMax = 255;
  if (!reader.Has("slice")) {
    return std::optional<GpuSlice>();
  }
  RINGFENCE_ASSIGN(const Json* json, reader.Any("slice"));
  RINGFENCE_ASSIGN(JsonReader inner, JsonReader::Open(*json, reader.Path("slice")));
  GpuSlice slice;
  RINGFENCE_ASSIGN(slice.parent, inner.String("parent", kTextBytesMax));
  RINGFENCE_ASSIGN(slice.profile, inner.String("profile", kTextBytesMax));
  RINGFENCE_ASSIGN(slice.gpu_instance, ReadSmall(inner, "gpu_instance", kInstancesMax));
  RINGFENCE_ASSIGN(slice.compute_instance, ReadSmall(inner, "compute_instance", kInstancesMax));
  if (inner.Has("start")) {
    RINGFENCE_ASSIGN(slice.start, ReadSmall(inner, "start", kInstancesMax));
  }
  RINGFENCE_TRY(inner.Finish());
  return std::optional<GpuSlice>(std::move(slice));
}

// Absent for NVIDIA's, as they were before there were others.
Status ReadVendor(JsonReader& reader, Gpu& gpu) {
  if (!reader.Has("vendor")) {
    return {};
  }
  RINGFENCE_ASSIGN(gpu.vendor, reader.String("vendor", kTextBytesMax));
  if (gpu.vendor != kAmd) {
    return Error{Code::kInvalidArgument,
                 reader.Path("vendor") + " must be " + kAmd,
                 {},
                 reader.Path("vendor")};
  }
  RINGFENCE_ASSIGN(gpu.compute_partition, reader.String("compute_partition", kTextBytesMax));
  RINGFENCE_ASSIGN(gpu.memory_partition, reader.String("memory_partition", kTextBytesMax));
  RINGFENCE_ASSIGN(const bool never, reader.Bool("never_run_on_hardware"));
  if (never != gpu.never_run_on_hardware()) {
    return Error{Code::kInvalidArgument,
                 reader.Path("never_run_on_hardware") + " is not what is known of this vendor",
                 {},
                 reader.Path("never_run_on_hardware")};
  }
  return {};
}

Result<Gpu> GpuFromJson(const Json& json, std::size_t index) {
  RINGFENCE_ASSIGN(JsonReader reader,
                   JsonReader::Open(json, "gpus[" + std::to_string(index) + "]"));
  Gpu gpu;
  RINGFENCE_ASSIGN(gpu.uuid, reader.String("uuid", kTextBytesMax));
  RINGFENCE_ASSIGN(gpu.model, reader.String("model", kTextBytesMax));
  RINGFENCE_ASSIGN(gpu.index, ReadSmall(reader, "index", kGpusMax - 1));
  RINGFENCE_ASSIGN(gpu.minor, ReadSmall(reader, "minor", UINT32_MAX));
  RINGFENCE_ASSIGN(gpu.serial, reader.String("serial", kTextBytesMax));
  RINGFENCE_ASSIGN(gpu.pci_address, reader.String("pci_address", kTextBytesMax));
  RINGFENCE_ASSIGN(gpu.pci_device_id, reader.String("pci_device_id", kTextBytesMax));
  RINGFENCE_ASSIGN(gpu.memory_bytes, ReadBytes(reader, "memory_bytes"));
  RINGFENCE_ASSIGN(gpu.memory_used_bytes, ReadBytes(reader, "memory_used_bytes"));
  RINGFENCE_ASSIGN(gpu.vbios, reader.String("vbios", kTextBytesMax));
  RINGFENCE_ASSIGN(gpu.gsp_firmware, reader.String("gsp_firmware", kTextBytesMax));
  RINGFENCE_ASSIGN(gpu.ecc_enabled, ReadOptionalBool(reader, "ecc_enabled"));
  RINGFENCE_ASSIGN(gpu.mig_enabled, ReadOptionalBool(reader, "mig_enabled"));
  RINGFENCE_ASSIGN(gpu.confidential_computing,
                   reader.String("confidential_computing", kTextBytesMax));
  RINGFENCE_ASSIGN(gpu.processes, ReadProcesses(reader));
  RINGFENCE_ASSIGN(gpu.slice, ReadSlice(reader));
  RINGFENCE_TRY(ReadVendor(reader, gpu));
  RINGFENCE_TRY(reader.Finish());
  return gpu;
}

}  // namespace

Json InventoryToJson(const Inventory& inventory) {
  JsonArray gpus;
  for (const Gpu& gpu : inventory.gpus) {
    gpus.push_back(GpuToJson(gpu));
  }
  JsonObject object{{"scrub_on_free", OptionalBool(inventory.scrub_on_free)},
                    {"simulated", inventory.simulated},
                    {"driver_version", inventory.driver_version},
                    {"cuda_version", inventory.cuda_version},
                    {"nvml_version", inventory.nvml_version},
                    {"kernel_driver", inventory.kernel_driver},
                    {"library_path", inventory.library_path},
                    {"library_digest", inventory.library_digest},
                    {"gpus", std::move(gpus)}};
  if (inventory.amd.has_value()) {
    object["amd"] = JsonObject{{"driver_version", inventory.amd->version},
                               {"library_path", inventory.amd->library_path},
                               {"library_digest", inventory.amd->library_digest}};
  }
  return object;
}

namespace {

Result<std::optional<AmdDriver>> ReadAmdDriver(JsonReader& reader) {
  if (!reader.Has("amd")) {
    return std::optional<AmdDriver>();
  }
  RINGFENCE_ASSIGN(const Json* json, reader.Any("amd"));
  RINGFENCE_ASSIGN(JsonReader inner, JsonReader::Open(*json, reader.Path("amd")));
  AmdDriver driver;
  RINGFENCE_ASSIGN(driver.version, inner.String("driver_version", kTextBytesMax));
  RINGFENCE_ASSIGN(driver.library_path, inner.String("library_path"));
  RINGFENCE_ASSIGN(driver.library_digest, inner.String("library_digest", kTextBytesMax));
  RINGFENCE_TRY(inner.Finish());
  return std::optional(std::move(driver));
}

}  // namespace

Result<Inventory> InventoryFromJson(const Json& json) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json));
  Inventory inventory;
  RINGFENCE_ASSIGN(inventory.simulated, reader.Bool("simulated"));
  RINGFENCE_ASSIGN(inventory.driver_version, reader.String("driver_version", kTextBytesMax));
  RINGFENCE_ASSIGN(inventory.cuda_version, reader.String("cuda_version", kTextBytesMax));
  RINGFENCE_ASSIGN(inventory.nvml_version, reader.String("nvml_version", kTextBytesMax));
  RINGFENCE_ASSIGN(inventory.kernel_driver, reader.String("kernel_driver"));
  if (reader.Has("scrub_on_free")) {
    RINGFENCE_ASSIGN(inventory.scrub_on_free, ReadOptionalBool(reader, "scrub_on_free"));
  }
  RINGFENCE_ASSIGN(inventory.library_path, reader.String("library_path"));
  RINGFENCE_ASSIGN(inventory.library_digest, reader.String("library_digest", kTextBytesMax));
  RINGFENCE_ASSIGN(const auto gpus, reader.Array("gpus", kUnitsMax));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    RINGFENCE_ASSIGN(Gpu gpu, GpuFromJson(*gpus[i], i));
    inventory.gpus.push_back(std::move(gpu));
  }
  RINGFENCE_ASSIGN(inventory.amd, ReadAmdDriver(reader));
  RINGFENCE_TRY(reader.Finish());
  return inventory;
}

}  // namespace ringfence::gpu
