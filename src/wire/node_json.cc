#include "wire/node_json.h"

#include <limits>

#include "model/box_request.h"

namespace ringfence::wire {
namespace {

constexpr std::int64_t kIntMax = std::int64_t{1} << 53U;

Result<Timestamp> TimeAt(JsonReader& reader, std::string_view name) {
  RINGFENCE_ASSIGN(const std::string text, reader.String(name, 32));
  return ParseTime(text);
}

JsonArray ToArray(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

}  // namespace

JsonArray NodeImagesToJson(const std::vector<model::NodeImage>& images) {
  JsonArray array;
  for (const model::NodeImage& image : images) {
    array.push_back(JsonObject{{"digest", image.digest}, {"names", ToArray(image.names)}});
  }
  return array;
}

Result<std::vector<model::NodeImage>> NodeImagesFromJson(JsonReader& reader) {
  std::vector<model::NodeImage> images;
  if (!reader.Has("images")) {
    return images;
  }
  RINGFENCE_ASSIGN(const auto list, reader.Array("images", kNodeImagesMax));
  for (const Json* one : list) {
    RINGFENCE_ASSIGN(auto fields, JsonReader::Open(*one, "images"));
    model::NodeImage image;
    RINGFENCE_ASSIGN(image.digest, fields.String("digest", 80));
    RINGFENCE_ASSIGN(image.names, fields.Strings("names", 64, model::kImageBytesMax));
    RINGFENCE_TRY(fields.Finish());
    images.push_back(std::move(image));
  }
  return images;
}

JsonObject NodeToJson(const model::Node& node) {
  JsonObject json{{"name", node.name},
                  {"joined", FormatTime(node.joined)},
                  {"last_seen", FormatTime(node.last_seen)},
                  {"version", node.version},
                  {"missing", ToArray(node.missing)},
                  {"simulated", node.simulated},
                  {"driver_version", node.driver_version},
                  {"kernel_driver", node.kernel_driver},
                  {"library_digest", node.library_digest},
                  {"certificate_fingerprint", node.certificate_fingerprint},
                  {"certificate_previous", node.certificate_previous},
                  {"certificate_expires", FormatTime(node.certificate_expires)},
                  {"receipt_key", node.receipt_key},
                  {"witness_vkey", node.witness_vkey},
                  {"witnessed_size", static_cast<std::int64_t>(node.witnessed_size)},
                  {"images", NodeImagesToJson(node.images)},
                  {"witness_refusal", node.witness_refusal}};
  if (node.scrub_on_free.has_value()) {
    json["scrub_on_free"] = *node.scrub_on_free;
  }
  return json;
}

Result<model::Node> NodeFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "node"));
  model::Node node;
  RINGFENCE_ASSIGN(node.name, reader.String("name"));
  RINGFENCE_ASSIGN(node.joined, TimeAt(reader, "joined"));
  RINGFENCE_ASSIGN(node.last_seen, TimeAt(reader, "last_seen"));
  RINGFENCE_ASSIGN(node.version, reader.String("version"));
  RINGFENCE_ASSIGN(node.missing, reader.Strings("missing"));
  RINGFENCE_ASSIGN(node.simulated, reader.Bool("simulated"));
  RINGFENCE_ASSIGN(node.driver_version, reader.String("driver_version"));
  RINGFENCE_ASSIGN(node.kernel_driver, reader.String("kernel_driver"));
  RINGFENCE_ASSIGN(node.library_digest, reader.String("library_digest"));
  if (reader.Has("scrub_on_free")) {
    RINGFENCE_ASSIGN(node.scrub_on_free, reader.Bool("scrub_on_free"));
  }
  RINGFENCE_ASSIGN(node.certificate_fingerprint, reader.String("certificate_fingerprint"));
  RINGFENCE_ASSIGN(node.certificate_previous, reader.String("certificate_previous"));
  RINGFENCE_ASSIGN(node.certificate_expires, TimeAt(reader, "certificate_expires"));
  RINGFENCE_ASSIGN(node.receipt_key, reader.String("receipt_key"));
  RINGFENCE_ASSIGN(node.witness_vkey, reader.String("witness_vkey"));
  RINGFENCE_ASSIGN(const std::int64_t witnessed, reader.Int("witnessed_size", 0, kIntMax));
  node.witnessed_size = static_cast<std::uint64_t>(witnessed);
  RINGFENCE_ASSIGN(node.images, NodeImagesFromJson(reader));
  RINGFENCE_ASSIGN(node.witness_refusal, reader.String("witness_refusal"));
  RINGFENCE_TRY(reader.Finish());
  return node;
}

JsonObject GpuToJson(const model::Gpu& gpu) {
  JsonObject json{{"uuid", gpu.uuid},
                  {"node", gpu.node},
                  {"state", std::string(Name(gpu.state))},
                  {"lease", gpu.lease},
                  {"tenant", gpu.tenant},
                  {"last_receipt", gpu.last_receipt},
                  {"reason", gpu.reason},
                  {"dirty_since", FormatTime(gpu.dirty_since)},
                  {"index", gpu.index},
                  {"minor", gpu.minor},
                  {"model", gpu.model},
                  {"memory_bytes", static_cast<std::int64_t>(gpu.memory_bytes)},
                  {"pci_address", gpu.pci_address},
                  {"vbios", gpu.vbios},
                  {"gsp_firmware", gpu.gsp_firmware},
                  {"ecc", gpu.ecc},
                  {"mig", gpu.mig},
                  {"confidential_computing", gpu.confidential_computing},
                  {"processes", gpu.processes},
                  {"simulated", gpu.simulated}};
  if (!gpu.fault.empty()) {
    json["fault"] = gpu.fault;
  }
  if (!gpu.board.empty()) {
    json["board"] = gpu.board;
  }
  if (gpu.never_run_on_hardware()) {
    json["vendor"] = gpu.vendor;
    json["compute_partition"] = gpu.compute_partition;
    json["memory_partition"] = gpu.memory_partition;
    json["never_run_on_hardware"] = true;
  }
  if (gpu.is_slice()) {
    json["parent"] = gpu.parent;
    json["profile"] = gpu.profile;
    json["gpu_instance"] = gpu.gpu_instance;
    json["compute_instance"] = gpu.compute_instance;
    json["start"] = gpu.start ? Json(*gpu.start) : Json(nullptr);
  }
  return json;
}

namespace {

Status ReadSlice(JsonReader& reader, model::Gpu& gpu) {
  constexpr std::int64_t kInstancesMax = 255;
  if (!reader.Has("parent")) {
    return {};
  }
  RINGFENCE_ASSIGN(gpu.parent, reader.String("parent"));
  RINGFENCE_ASSIGN(gpu.profile, reader.String("profile"));
  RINGFENCE_ASSIGN(const std::int64_t instance, reader.Int("gpu_instance", 0, kInstancesMax));
  gpu.gpu_instance = static_cast<std::uint32_t>(instance);
  RINGFENCE_ASSIGN(const std::int64_t compute, reader.Int("compute_instance", 0, kInstancesMax));
  gpu.compute_instance = static_cast<std::uint32_t>(compute);
  if (reader.Has("start")) {
    RINGFENCE_ASSIGN(const std::int64_t start, reader.Int("start", 0, kInstancesMax));
    gpu.start = static_cast<std::uint32_t>(start);
  }
  return {};
}

}  // namespace

Result<model::Gpu> GpuFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "gpu"));
  constexpr std::int64_t kU32Max = std::numeric_limits<std::uint32_t>::max();
  model::Gpu gpu;
  RINGFENCE_ASSIGN(gpu.uuid, reader.String("uuid"));
  RINGFENCE_ASSIGN(gpu.node, reader.String("node"));
  RINGFENCE_ASSIGN(const std::string state, reader.String("state"));
  RINGFENCE_ASSIGN(gpu.state, model::ParseGpuState(state));
  RINGFENCE_ASSIGN(gpu.lease, reader.String("lease"));
  RINGFENCE_ASSIGN(gpu.tenant, reader.String("tenant"));
  RINGFENCE_ASSIGN(gpu.last_receipt, reader.String("last_receipt"));
  RINGFENCE_ASSIGN(gpu.reason, reader.String("reason"));
  RINGFENCE_ASSIGN(gpu.fault, reader.StringOr("fault", ""));
  RINGFENCE_ASSIGN(gpu.dirty_since, TimeAt(reader, "dirty_since"));
  RINGFENCE_ASSIGN(const std::int64_t index, reader.Int("index", 0, kU32Max));
  gpu.index = static_cast<std::uint32_t>(index);
  RINGFENCE_ASSIGN(const std::int64_t minor_number, reader.Int("minor", 0, kU32Max));
  gpu.minor = static_cast<std::uint32_t>(minor_number);
  RINGFENCE_ASSIGN(gpu.model, reader.String("model"));
  RINGFENCE_ASSIGN(const std::int64_t memory, reader.Int("memory_bytes", 0, kIntMax));
  gpu.memory_bytes = static_cast<std::uint64_t>(memory);
  RINGFENCE_ASSIGN(gpu.pci_address, reader.String("pci_address"));
  RINGFENCE_ASSIGN(gpu.vbios, reader.String("vbios"));
  RINGFENCE_ASSIGN(gpu.gsp_firmware, reader.String("gsp_firmware"));
  RINGFENCE_ASSIGN(gpu.ecc, reader.String("ecc"));
  RINGFENCE_ASSIGN(gpu.mig, reader.String("mig"));
  RINGFENCE_ASSIGN(gpu.confidential_computing, reader.String("confidential_computing"));
  RINGFENCE_ASSIGN(const std::int64_t processes, reader.Int("processes", 0, kU32Max));
  gpu.processes = static_cast<std::uint32_t>(processes);
  RINGFENCE_ASSIGN(gpu.simulated, reader.Bool("simulated"));
  RINGFENCE_ASSIGN(gpu.board, reader.StringOr("board", "", 64));
  RINGFENCE_ASSIGN(gpu.vendor, reader.StringOr("vendor", "nvidia", 16));
  RINGFENCE_ASSIGN(gpu.compute_partition, reader.StringOr("compute_partition", "", 16));
  RINGFENCE_ASSIGN(gpu.memory_partition, reader.StringOr("memory_partition", "", 16));
  RINGFENCE_ASSIGN([[maybe_unused]] const bool never,
                   reader.BoolOr("never_run_on_hardware", false));
  RINGFENCE_TRY(ReadSlice(reader, gpu));
  RINGFENCE_TRY(reader.Finish());
  return gpu;
}

}  // namespace ringfence::wire
