#include "isolate/grant.h"

#include <algorithm>
#include <set>

#include "crypto/dsse.h"
#include "isolate/names.h"
#include "model/lease.h"

namespace ringfence::isolate {
namespace {

constexpr std::int64_t kFormat = 1;  // of grants
constexpr std::size_t kTextBytesMax = 512;
constexpr std::size_t kValueBytesMax = 32 * 1024;
constexpr std::size_t kEnvironmentBytesMax = 64 * 1024;
// The runtime's own start needs this many tasks in the box's pids cgroup.
constexpr std::int64_t kPidsLeast = model::kPidsMin;
constexpr std::int64_t kPidsMost = model::kPidsMax;
constexpr std::int64_t kCpuMillisMost = 4'096'000;
constexpr std::int64_t kRuntimeMostMs = std::int64_t{366} * 24 * 3600 * 1000;

Error Bad(std::string field, std::string message, std::string hint = {}) {
  return Error{Code::kInvalidArgument, field + ": " + message, std::move(hint), field};
}

JsonArray ToArray(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

gpu::ScrubDetail Detail(int receipt_format) {
  return receipt_format == 1 ? gpu::ScrubDetail::kBrief : gpu::ScrubDetail::kFull;
}

JsonObject GrantToJson(const Grant& grant) {
  JsonArray environment;
  for (const auto& [name, value] : grant.environment) {
    environment.push_back(JsonObject{{"name", name}, {"value", value}});
  }
  JsonObject object{
      {"v", kFormat},
      {"lease", grant.lease},
      {"node", grant.node},
      {"tenant", grant.tenant},
      {"principal", grant.principal},
      {"gpus", ToArray(grant.gpus)},
      {"command", ToArray(grant.command)},
      {"environment", std::move(environment)},
      {"memory_bytes_max", static_cast<std::int64_t>(grant.memory_bytes_max)},
      {"cpu_millis_max", static_cast<std::int64_t>(grant.cpu_millis_max)},
      {"pids_max", static_cast<std::int64_t>(grant.pids_max)},
      {"issued", FormatTime(grant.issued)},
      {"start_before", FormatTime(grant.start_before)},
      {"runtime_max_ms", static_cast<std::int64_t>(grant.runtime_max.count())},
  };
  if (grant.network.has_value()) {
    object["network"] = NetworkToJson(*grant.network);
  }
  AddBox(grant.box, object);
  if (grant.share.has_value()) {  // a jailer that does not know it refuses it
    object["share"] =
        JsonObject{{"class", std::string(Name(grant.share->isolation))},
                   {"memory_bytes", static_cast<std::int64_t>(grant.share->memory_bytes)},
                   {"threads_percent", static_cast<std::int64_t>(grant.share->threads_percent)}};
  }
  return object;
}

Result<std::optional<model::ShareRequest>> ReadShare(JsonReader& reader, const Grant& grant) {
  if (!reader.Has("share")) {
    return std::optional<model::ShareRequest>();
  }
  RINGFENCE_ASSIGN(const Json* const json, reader.Any("share"));
  RINGFENCE_ASSIGN(JsonReader fields, JsonReader::Open(*json, "grant.share"));
  model::ShareRequest share;
  RINGFENCE_ASSIGN(const std::string isolation, fields.String("class", kNameBytesMax));
  RINGFENCE_ASSIGN(share.isolation, model::ParseIsolationClass(isolation));
  RINGFENCE_ASSIGN(const auto memory,
                   fields.Int("memory_bytes", 0, static_cast<std::int64_t>(model::kShareBytesMax)));
  share.memory_bytes = static_cast<std::uint64_t>(memory);
  RINGFENCE_ASSIGN(const auto threads, fields.Int("threads_percent", 0, 100));
  share.threads_percent = static_cast<std::uint32_t>(threads);
  RINGFENCE_TRY(fields.Finish());
  RINGFENCE_TRY(share.Validate());
  if (grant.gpus.size() != 1 || grant.runtime != model::LeaseRuntime::kBox) {
    return Bad("grant.share", "goes with a box that has one GPU");
  }
  return std::optional<model::ShareRequest>(share);
}

Result<Timestamp> ReadTime(JsonReader& reader, std::string_view name) {
  RINGFENCE_ASSIGN(const std::string text, reader.String(name, 64));
  auto time = ParseTime(text);
  if (!time.has_value()) {
    return Prefix(reader.Path(name), time.error());
  }
  return time;
}

Status CheckCommand(const std::vector<std::string>& command) {
  std::size_t bytes = 0;
  for (const std::string& word : command) {
    bytes += word.size() + 1;
    if (word.find('\0') != std::string::npos) {
      return Bad("grant.command", "a word holds a zero byte");
    }
  }
  if (command.empty() || command[0].empty()) {
    return Bad("grant.command", "there is no program to run");
  }
  if (bytes > model::kCommandBytesMax) {
    return Bad("grant.command", "is longer than 16 KiB", "put long arguments into a file");
  }
  return {};
}

Result<std::vector<std::pair<std::string, std::string>>> ReadEnvironment(JsonReader& reader) {
  RINGFENCE_ASSIGN(const auto entries, reader.Array("environment", model::kEnvironmentMax));
  std::vector<std::pair<std::string, std::string>> environment;
  std::size_t bytes = 0;
  for (const Json* entry : entries) {
    RINGFENCE_ASSIGN(auto fields, JsonReader::Open(*entry, "grant.environment"));
    RINGFENCE_ASSIGN(std::string name, fields.String("name"));
    RINGFENCE_ASSIGN(std::string value, fields.String("value", kValueBytesMax));
    RINGFENCE_TRY(fields.Finish());
    if (!IsVariableName(name)) {
      return Bad("grant.environment", "a variable's name is not letters, digits and '_'");
    }
    if (value.find('\0') != std::string::npos) {
      return Bad("grant.environment", name + " holds a zero byte");
    }
    bytes += name.size() + value.size();
    environment.emplace_back(std::move(name), std::move(value));
  }
  if (bytes > kEnvironmentBytesMax) {
    return Bad("grant.environment", "is larger than 64 KiB in all");
  }
  return environment;
}

Status CheckGpus(const std::vector<std::string>& gpus) {
  std::set<std::string_view> seen;
  for (const std::string& uuid : gpus) {
    if (!IsGpuUuid(uuid)) {
      return Bad("grant.gpus", "an entry is not a GPU's UUID");
    }
    if (!seen.insert(uuid).second) {
      return Bad("grant.gpus", uuid + " is named twice");
    }
  }
  return {};
}

Status ReadLimits(JsonReader& reader, Grant& grant) {
  RINGFENCE_ASSIGN(const auto memory,
                   reader.Int("memory_bytes_max", static_cast<std::int64_t>(model::kMemoryBytesMin),
                              static_cast<std::int64_t>(model::kMemoryBytesMax)));
  RINGFENCE_ASSIGN(const auto cpu, reader.Int("cpu_millis_max", 10, kCpuMillisMost));
  RINGFENCE_ASSIGN(const auto pids, reader.Int("pids_max", kPidsLeast, kPidsMost));
  RINGFENCE_ASSIGN(const auto runtime, reader.Int("runtime_max_ms", 1, kRuntimeMostMs));
  grant.memory_bytes_max = static_cast<std::uint64_t>(memory);
  grant.cpu_millis_max = static_cast<std::uint32_t>(cpu);
  grant.pids_max = static_cast<std::uint32_t>(pids);
  grant.runtime_max = Milliseconds(runtime);
  RINGFENCE_ASSIGN(grant.issued, ReadTime(reader, "issued"));
  RINGFENCE_ASSIGN(grant.start_before, ReadTime(reader, "start_before"));
  if (grant.start_before < grant.issued) {
    return Bad("grant.start_before", "lies before grant.issued");
  }
  return {};
}

Result<Grant> GrantFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "grant"));
  RINGFENCE_TRY(reader.Int("v", kFormat, kFormat));
  Grant grant;
  RINGFENCE_ASSIGN(grant.lease, reader.String("lease", kNameBytesMax));
  RINGFENCE_ASSIGN(grant.node, reader.String("node", kNameBytesMax));
  RINGFENCE_ASSIGN(grant.tenant, reader.String("tenant", kTextBytesMax));
  RINGFENCE_ASSIGN(grant.principal, reader.String("principal", kTextBytesMax));
  RINGFENCE_ASSIGN(grant.gpus, reader.Strings("gpus", model::kGpusPerLeaseMax, kNameBytesMax));
  RINGFENCE_ASSIGN(const std::string runtime, reader.StringOr("runtime", "box", kNameBytesMax));
  RINGFENCE_ASSIGN(grant.runtime, model::ParseLeaseRuntime(runtime));
  RINGFENCE_ASSIGN(grant.command,
                   reader.Strings("command", model::kCommandWordsMax, model::kCommandBytesMax));
  RINGFENCE_ASSIGN(grant.environment, ReadEnvironment(reader));
  RINGFENCE_TRY(ReadLimits(reader, grant));
  if (reader.Has("network")) {
    RINGFENCE_ASSIGN(const Json* const network, reader.Any("network"));
    RINGFENCE_ASSIGN(grant.network, NetworkFromJson(*network));
  }
  RINGFENCE_ASSIGN(grant.box, ReadBox(reader));
  RINGFENCE_ASSIGN(grant.share, ReadShare(reader, grant));
  RINGFENCE_TRY(reader.Finish());
  if (!IsName(grant.lease)) {
    return Bad("grant.lease", "is not a name");
  }
  if (!IsName(grant.node)) {
    return Bad("grant.node", "is not a name");
  }
  if (grant.tenant.find('\0') != std::string::npos) {
    return Bad("grant.tenant", "holds a zero byte");
  }
  RINGFENCE_TRY(CheckGpus(grant.gpus));
  if (grant.runtime == model::LeaseRuntime::kBox) {
    RINGFENCE_TRY(CheckCommand(grant.command));
  } else if (!grant.command.empty() || !grant.environment.empty() || grant.gpus.empty() ||
             grant.network.has_value() || grant.box != GrantBox()) {
    return Bad("grant.runtime", "cdi goes with GPUs, and with nothing that a box has");
  }
  return grant;
}

Result<ReceiptShare> ReceiptShareFromJson(const Json& json) {
  RINGFENCE_ASSIGN(JsonReader fields, JsonReader::Open(json, "receipt.share"));
  ReceiptShare share;
  RINGFENCE_ASSIGN(share.gpu, fields.String("gpu", kNameBytesMax));
  RINGFENCE_ASSIGN(const auto neighbours,
                   fields.Int("neighbours", 0, static_cast<std::int64_t>(kSharersMax)));
  share.neighbours = static_cast<std::uint32_t>(neighbours);
  RINGFENCE_ASSIGN(share.leases, fields.Strings("leases", kSharersMax, kNameBytesMax));
  RINGFENCE_TRY(fields.Finish());
  if (!IsGpuUuid(share.gpu) ||
      !std::all_of(share.leases.begin(), share.leases.end(),
                   [](const std::string& lease) { return IsName(lease); })) {
    return Bad("receipt.share", "names no GPU, or what is no lease");
  }
  return share;
}

Result<GpuScrub> ScrubFromJson(const Json& json, int format) {
  RINGFENCE_ASSIGN(GpuScrub scrub, gpu::ScrubResultFromJson(json, "receipt.gpus", Detail(format)));
  if (!IsGpuUuid(scrub.uuid)) {
    return Bad("receipt.gpus.uuid", "is not a GPU's UUID");
  }
  return scrub;
}

Result<Receipt> ReceiptFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "receipt"));
  RINGFENCE_ASSIGN(const std::int64_t format, reader.Int("v", 1, kShareReceiptFormat));
  Receipt receipt;
  receipt.format = static_cast<int>(format);
  RINGFENCE_ASSIGN(receipt.id, reader.String("id", kNameBytesMax));
  RINGFENCE_ASSIGN(receipt.node, reader.String("node", kNameBytesMax));
  RINGFENCE_ASSIGN(receipt.lease, reader.String("lease", kNameBytesMax));
  RINGFENCE_ASSIGN(receipt.time, ReadTime(reader, "time"));
  RINGFENCE_ASSIGN(const auto gpus, reader.Array("gpus", model::kGpusPerLeaseMax));
  for (const Json* entry : gpus) {
    RINGFENCE_ASSIGN(GpuScrub scrub, ScrubFromJson(*entry, receipt.format));
    receipt.gpus.push_back(std::move(scrub));
  }
  RINGFENCE_ASSIGN(receipt.driver_version, reader.String("driver_version", kTextBytesMax));
  RINGFENCE_ASSIGN(receipt.kernel_driver, reader.String("kernel_driver", kTextBytesMax));
  RINGFENCE_ASSIGN(receipt.library_digest, reader.String("library_digest", kTextBytesMax));
  RINGFENCE_ASSIGN(receipt.simulated, reader.Bool("simulated"));
  const auto lines = [&](std::string_view name) {
    return reader.Strings(name, gpu::kCoverLinesMax, kTextBytesMax);
  };
  if (receipt.format >= 2) {
    RINGFENCE_ASSIGN(receipt.kernels_digest, reader.String("kernels_digest", kTextBytesMax));
    RINGFENCE_ASSIGN(receipt.pattern, reader.String("pattern", kTextBytesMax));
    RINGFENCE_ASSIGN(receipt.covered, lines("covered"));
  }
  RINGFENCE_ASSIGN(receipt.not_covered, lines("not_covered"));
  if (receipt.format >= kShareReceiptFormat) {
    RINGFENCE_ASSIGN(const Json* const share, reader.Any("share"));
    RINGFENCE_ASSIGN(receipt.share, ReceiptShareFromJson(*share));
  }
  RINGFENCE_TRY(reader.Finish());
  if (!IsName(receipt.id) || !IsName(receipt.node) ||
      (!receipt.lease.empty() && !IsName(receipt.lease))) {
    return Bad("receipt", "id, node or lease is not a name");
  }
  return receipt;
}

}  // namespace

std::string SlicesOf(const std::vector<std::string>& gpus) {
  std::string slices;
  for (const std::string& uuid : gpus) {
    if (uuid.starts_with("MIG-")) {
      slices += (slices.empty() ? "" : ",") + uuid;
    }
  }
  return slices;
}

std::string SealGrant(const crypto::SigningKey& server, const Grant& grant) {
  JsonObject json = GrantToJson(grant);
  if (grant.runtime != model::LeaseRuntime::kBox) {  // a jailer that does not know it refuses it
    json["runtime"] = std::string(Name(grant.runtime));
  }
  return crypto::SignEnvelope(server, kGrantType, CanonicalJson(json));
}

Result<Grant> OpenGrant(const crypto::PublicKey& server, std::string_view envelope) {
  RINGFENCE_ASSIGN(const std::string payload, crypto::OpenEnvelope(server, kGrantType, envelope));
  RINGFENCE_ASSIGN(const Json json, ParseJson(payload, crypto::kEnvelopeBytesMax));
  return GrantFromJson(json);
}

Json ReceiptToJson(const Receipt& receipt) {
  JsonArray gpus;
  for (const GpuScrub& scrub : receipt.gpus) {
    gpus.push_back(gpu::ScrubResultToJson(scrub, Detail(receipt.format)));
  }
  JsonObject object{
      {"v", receipt.format},
      {"id", receipt.id},
      {"node", receipt.node},
      {"lease", receipt.lease},
      {"time", FormatTime(receipt.time)},
      {"gpus", std::move(gpus)},
      {"driver_version", receipt.driver_version},
      {"kernel_driver", receipt.kernel_driver},
      {"library_digest", receipt.library_digest},
      {"simulated", receipt.simulated},
      {"not_covered", ToArray(receipt.not_covered)},
  };
  if (receipt.format >= 2) {
    object["kernels_digest"] = receipt.kernels_digest;
    object["pattern"] = receipt.pattern;
    object["covered"] = ToArray(receipt.covered);
  }
  if (receipt.share.has_value()) {
    object["v"] = kShareReceiptFormat;
    object["share"] =
        JsonObject{{"gpu", receipt.share->gpu},
                   {"neighbours", static_cast<std::int64_t>(receipt.share->neighbours)},
                   {"leases", ToArray(receipt.share->leases)}};
  }
  return object;
}

std::string SealReceipt(const crypto::SigningKey& jailer, const Receipt& receipt) {
  return crypto::SignEnvelope(jailer, kReceiptType, CanonicalJson(ReceiptToJson(receipt)));
}

Result<Receipt> OpenReceipt(const crypto::PublicKey& jailer, std::string_view envelope) {
  RINGFENCE_ASSIGN(const std::string payload, crypto::OpenEnvelope(jailer, kReceiptType, envelope));
  RINGFENCE_ASSIGN(const Json json, ParseJson(payload, crypto::kEnvelopeBytesMax));
  return ReceiptFromJson(json);
}

}  // namespace ringfence::isolate
