#include "wire/lease_json.h"

#include <algorithm>
#include <limits>

#include "base/encoding.h"

namespace ringfence::wire {
namespace {

constexpr std::size_t kIdBytesMax = 128;
constexpr std::size_t kReasonBytesMax = 8192;
constexpr std::size_t kDevicesMax = 8;
constexpr std::size_t kProofBytesMax = 64 * 1024;
constexpr std::int64_t kUint32Most = std::numeric_limits<std::uint32_t>::max();
// The largest whole number that every JSON reader keeps exactly.
constexpr std::int64_t kIntegerMost = std::int64_t{1} << 53U;

using Environment = std::vector<std::pair<std::string, std::string>>;

Result<Environment> ReadEnvironment(JsonReader& reader) {
  Environment environment;
  if (!reader.Has("env")) {
    return environment;
  }
  RINGFENCE_ASSIGN(const Json* const value, reader.Any("env"));
  const std::string path = reader.Path("env");
  const JsonObject* const object = value->if_object();
  if (object == nullptr) {
    return Error{Code::kInvalidArgument, path + " must be an object of names and values",
                 "write {\"NAME\": \"value\"}", path};
  }
  for (const auto& member : *object) {
    const auto* const text = member.value().if_string();
    if (text == nullptr) {
      return Error{Code::kInvalidArgument, path + " must have only strings as values",
                   "put numbers and the like in quotes", path};
    }
    environment.emplace_back(std::string(member.key().data(), member.key().size()),
                             std::string(text->data(), text->size()));
  }
  std::sort(environment.begin(), environment.end());
  return environment;
}

Result<model::BoxRequest> ReadBox(JsonReader& reader) {
  model::BoxRequest box;
  RINGFENCE_ASSIGN(box.image, reader.StringOr("image", {}, 2 * model::kImageBytesMax));
  if (reader.Has("mounts")) {
    RINGFENCE_ASSIGN(const auto mounts, reader.Array("mounts", 2 * model::kMountsMax));
    for (const Json* one : mounts) {
      RINGFENCE_ASSIGN(auto fields, JsonReader::Open(*one, reader.Path("mounts")));
      model::MountRequest mount;
      RINGFENCE_ASSIGN(mount.name, fields.String("name"));
      RINGFENCE_ASSIGN(mount.path, fields.String("path"));
      RINGFENCE_ASSIGN(mount.writable, fields.BoolOr("writable", false));
      RINGFENCE_TRY(fields.Finish());
      box.mounts.push_back(std::move(mount));
    }
  }
  for (const auto& [name, into] : {std::pair("shm_bytes", &box.shm_bytes_max),
                                   {"tmp_bytes", &box.tmp_bytes_max},
                                   {"huge_bytes", &box.huge_bytes_max}}) {
    RINGFENCE_ASSIGN(const auto bytes, reader.IntOr(name, 0, 0, kIntegerMost));
    *into = static_cast<std::uint64_t>(bytes);
  }
  if (reader.Has("devices")) {
    RINGFENCE_ASSIGN(box.devices, reader.Strings("devices", kDevicesMax, kIdBytesMax));
  }
  RINGFENCE_ASSIGN(box.exception, reader.StringOr("exception", {}, kIdBytesMax));
  return box;
}

// Only what was asked for: most leases have none of it.
void AddBox(const model::BoxRequest& box, JsonObject& object) {
  if (!box.image.empty()) {
    object["image"] = box.image;
  }
  if (!box.mounts.empty()) {
    JsonArray mounts;
    for (const model::MountRequest& mount : box.mounts) {
      mounts.push_back(
          JsonObject{{"name", mount.name}, {"path", mount.path}, {"writable", mount.writable}});
    }
    object["mounts"] = std::move(mounts);
  }
  for (const auto& [name, bytes] : {std::pair("shm_bytes", box.shm_bytes_max),
                                    {"tmp_bytes", box.tmp_bytes_max},
                                    {"huge_bytes", box.huge_bytes_max}}) {
    if (bytes != 0) {
      object[name] = static_cast<std::int64_t>(bytes);
    }
  }
  if (!box.devices.empty()) {
    JsonArray& devices = object["devices"].emplace_array();
    for (const std::string& device : box.devices) {
      devices.emplace_back(device);
    }
  }
  if (!box.exception.empty()) {
    object["exception"] = box.exception;
  }
}

Result<std::optional<model::ProbeRequest>> ReadProbe(JsonReader& reader) {
  if (!reader.Has("probe")) {
    return std::optional<model::ProbeRequest>();
  }
  RINGFENCE_ASSIGN(const Json* const json, reader.Any("probe"));
  RINGFENCE_ASSIGN(JsonReader fields, JsonReader::Open(*json, reader.Path("probe")));
  model::ProbeRequest probe;
  RINGFENCE_ASSIGN(probe.node, fields.String("node", kIdBytesMax));
  RINGFENCE_ASSIGN(probe.name, fields.String("name", kIdBytesMax));
  RINGFENCE_ASSIGN(probe.role, fields.String("role", kIdBytesMax));
  if (fields.Has("walls_away")) {
    RINGFENCE_ASSIGN(probe.walls_away, fields.Strings("walls_away", model::kWallsMax,
                                                      kIdBytesMax * model::kWallsMax));
  }
  if (fields.Has("facts")) {
    RINGFENCE_ASSIGN(probe.facts,
                     fields.Strings("facts", model::kProbeFactsMax,
                                    model::kProbeFactBytesMax * model::kProbeFactsMax));
  }
  RINGFENCE_TRY(fields.Finish());
  return std::optional<model::ProbeRequest>(std::move(probe));
}

Result<std::optional<model::ShareRequest>> ReadShare(JsonReader& reader) {
  if (!reader.Has("share")) {
    return std::optional<model::ShareRequest>();
  }
  RINGFENCE_ASSIGN(const Json* const json, reader.Any("share"));
  RINGFENCE_ASSIGN(JsonReader fields, JsonReader::Open(*json, reader.Path("share")));
  model::ShareRequest share;
  RINGFENCE_ASSIGN(const std::string isolation, fields.String("class", 40));
  const auto parsed = model::ParseIsolationClass(isolation);
  if (!parsed.has_value()) {
    return Error{Code::kInvalidArgument,
                 fields.Path("class") + " is no class of shares: \"" + isolation + "\"",
                 "ask for time or mps", fields.Path("class")};
  }
  share.isolation = *parsed;
  RINGFENCE_ASSIGN(const auto memory, fields.Int("memory_bytes", 0, kIntegerMost));
  share.memory_bytes = static_cast<std::uint64_t>(memory);
  RINGFENCE_ASSIGN(const auto threads, fields.IntOr("threads_percent", 0, 0, kUint32Most));
  share.threads_percent = static_cast<std::uint32_t>(threads);
  RINGFENCE_TRY(fields.Finish());
  return std::optional<model::ShareRequest>(share);
}

JsonObject ShareToJson(const model::ShareRequest& share) {
  JsonObject object{{"class", std::string(Name(share.isolation))},
                    {"memory_bytes", static_cast<std::int64_t>(share.memory_bytes)}};
  if (share.threads_percent != 0) {
    object["threads_percent"] = static_cast<std::int64_t>(share.threads_percent);
  }
  return object;
}

Result<Timestamp> ReadTime(JsonReader& reader, std::string_view name) {
  RINGFENCE_ASSIGN(const std::string text, reader.String(name, 40));
  Result<Timestamp> time = ParseTime(text);
  if (!time.has_value()) {
    Error error = Prefix(reader.Path(name), time.error());
    error.field = reader.Path(name);
    return error;
  }
  return time;
}

Result<std::optional<Timestamp>> ReadTimeIfGiven(JsonReader& reader, std::string_view name) {
  if (!reader.Has(name)) {
    return std::optional<Timestamp>();
  }
  RINGFENCE_ASSIGN(const Timestamp time, ReadTime(reader, name));
  return std::optional<Timestamp>(time);
}

JsonObject SliceToJson(const model::HeldSlice& slice) {
  return {{"parent", slice.parent},
          {"profile", slice.profile},
          {"memory_bytes", static_cast<std::int64_t>(slice.memory_bytes)},
          {"gpu_millis", static_cast<std::int64_t>(slice.gpu_millis)}};
}

Result<std::optional<model::HeldSlice>> ReadSlice(JsonReader& reader) {
  if (!reader.Has("slice")) {
    return std::optional<model::HeldSlice>();
  }
  RINGFENCE_ASSIGN(const Json* const json, reader.Any("slice"));
  RINGFENCE_ASSIGN(JsonReader fields, JsonReader::Open(*json, reader.Path("slice")));
  model::HeldSlice slice;
  RINGFENCE_ASSIGN(slice.parent, fields.String("parent", kIdBytesMax));
  RINGFENCE_ASSIGN(slice.profile, fields.String("profile", kIdBytesMax));
  RINGFENCE_ASSIGN(const auto memory, fields.Int("memory_bytes", 0, kIntegerMost));
  slice.memory_bytes = static_cast<std::uint64_t>(memory);
  RINGFENCE_ASSIGN(const auto millis, fields.Int("gpu_millis", 1, 1000));
  slice.gpu_millis = static_cast<std::uint32_t>(millis);
  RINGFENCE_TRY(fields.Finish());
  return std::optional<model::HeldSlice>(std::move(slice));
}

Result<model::LeaseState> ReadState(JsonReader& reader) {
  RINGFENCE_ASSIGN(const std::string text, reader.String("state", 40));
  Result<model::LeaseState> state = model::ParseLeaseState(text);
  if (!state.has_value()) {
    Error error = Prefix(reader.Path("state"), state.error());
    error.field = reader.Path("state");
    return error;
  }
  return state;
}

Result<model::LeaseStep> ReadStep(const Json& json, const std::string& path) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json, path));
  model::LeaseStep step;
  RINGFENCE_ASSIGN(step.state, ReadState(reader));
  RINGFENCE_ASSIGN(step.time, ReadTime(reader, "time"));
  RINGFENCE_ASSIGN(step.reason, reader.StringOr("reason", {}, kReasonBytesMax));
  RINGFENCE_TRY(reader.Finish());
  return step;
}

// What a writer writes, the reader must take: a reason that came from elsewhere is cut to its limit
// and made UTF-8.
std::string Storable(std::string_view reason) {
  constexpr std::string_view kCut = "...";
  std::string text(reason);
  if (text.size() > kReasonBytesMax) {
    std::size_t end = kReasonBytesMax - kCut.size();
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
      --end;
    }
    text.resize(end);
    text += kCut;
  }
  if (!IsUtf8(text)) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) > 0x7e; }, '?');
  }
  return text;
}

JsonArray ToArray(const std::vector<std::string>& texts) {
  JsonArray array;
  array.reserve(texts.size());
  for (const std::string& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

JsonObject DeniedToJson(const model::Denied& denied) {
  JsonArray flows;
  for (const model::DeniedFlow& flow : denied.flows) {
    flows.emplace_back(JsonObject{{"to", flow.to},
                                  {"protocol", flow.protocol},
                                  {"port", static_cast<std::int64_t>(flow.port)},
                                  {"packets", static_cast<std::int64_t>(flow.packets)}});
  }
  return JsonObject{{"packets", static_cast<std::int64_t>(denied.packets)},
                    {"bytes", static_cast<std::int64_t>(denied.bytes)},
                    {"flows", std::move(flows)}};
}

// Shown to people and kept: an address and a protocol are short and plain.
bool IsPlain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
  });
}

}  // namespace

Result<model::Denied> DeniedFromJson(const Json& json, const std::string& path) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json, path));
  model::Denied denied;
  RINGFENCE_ASSIGN(const auto packets, reader.Int("packets", 0, kIntegerMost));
  RINGFENCE_ASSIGN(const auto bytes, reader.Int("bytes", 0, kIntegerMost));
  denied.packets = static_cast<std::uint64_t>(packets);
  denied.bytes = static_cast<std::uint64_t>(bytes);
  RINGFENCE_ASSIGN(const auto flows, reader.Array("flows", model::kDeniedFlowsMax));
  for (const Json* item : flows) {
    RINGFENCE_ASSIGN(JsonReader fields, JsonReader::Open(*item, reader.Path("flows")));
    model::DeniedFlow flow;
    RINGFENCE_ASSIGN(flow.to, fields.String("to", 40));
    RINGFENCE_ASSIGN(flow.protocol, fields.String("protocol", 8));
    RINGFENCE_ASSIGN(const auto port, fields.Int("port", 0, 65535));
    RINGFENCE_ASSIGN(const auto count, fields.Int("packets", 0, kIntegerMost));
    RINGFENCE_TRY(fields.Finish());
    if (!IsPlain(flow.to) || !IsPlain(flow.protocol)) {
      return Error{Code::kInvalidArgument, fields.Path("to") + " is no address", {}, path};
    }
    flow.port = static_cast<std::uint16_t>(port);
    flow.packets = static_cast<std::uint64_t>(count);
    denied.flows.push_back(std::move(flow));
  }
  RINGFENCE_TRY(reader.Finish());
  return denied;
}

Result<model::LeaseRequest> LeaseRequestFromJson(const Json& json, const std::string& path) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json, path));
  model::LeaseRequest request;
  RINGFENCE_ASSIGN(const std::string tenant, reader.String("tenant", 256));
  RINGFENCE_ASSIGN(request.tenant, model::TenantPath::Create(tenant));
  RINGFENCE_ASSIGN(const auto gpus, reader.IntOr("gpus", request.gpus, 0, kUint32Most));
  request.gpus = static_cast<std::uint32_t>(gpus);
  RINGFENCE_ASSIGN(request.profile, reader.StringOr("profile", {}, 2 * model::kProfileBytesMax));
  RINGFENCE_ASSIGN(const auto gpu_memory, reader.IntOr("gpu_memory_bytes", 0, 0, kIntegerMost));
  request.gpu_memory_bytes = static_cast<std::uint64_t>(gpu_memory);
  RINGFENCE_ASSIGN(request.probe, ReadProbe(reader));
  RINGFENCE_ASSIGN(const std::string runtime, reader.StringOr("runtime", "box", 40));
  RINGFENCE_ASSIGN(request.runtime, model::ParseLeaseRuntime(runtime));
  // Twice the limits of the model, so that what is a little too large gets Validate's clear words.
  if (request.probe.has_value() && !reader.Has("command")) {
    request.command = request.probe->Command();
  } else if (request.runtime == model::LeaseRuntime::kBox || reader.Has("command")) {
    RINGFENCE_ASSIGN(request.command, reader.Strings("command", 2 * model::kCommandWordsMax,
                                                     2 * model::kCommandBytesMax));
  }
  RINGFENCE_ASSIGN(request.environment, ReadEnvironment(reader));
  RINGFENCE_ASSIGN(const auto memory,
                   reader.IntOr("memory_bytes", static_cast<std::int64_t>(request.memory_bytes_max),
                                0, kIntegerMost));
  request.memory_bytes_max = static_cast<std::uint64_t>(memory);
  RINGFENCE_ASSIGN(const auto cpu,
                   reader.IntOr("cpu_millis", request.cpu_millis_max, 0, kUint32Most));
  request.cpu_millis_max = static_cast<std::uint32_t>(cpu);
  RINGFENCE_ASSIGN(const auto pids, reader.IntOr("pids", request.pids_max, 0, kUint32Most));
  request.pids_max = static_cast<std::uint32_t>(pids);
  RINGFENCE_ASSIGN(const auto timeout,
                   reader.IntOr("timeout_ms", request.timeout.count(), 0, kIntegerMost));
  request.timeout = Milliseconds(timeout);
  RINGFENCE_ASSIGN(const auto wait, reader.IntOr("wait_ms", 0, 0, kIntegerMost));
  request.wait = Milliseconds(wait);
  RINGFENCE_ASSIGN(request.attended, reader.BoolOr("attended", false));
  RINGFENCE_ASSIGN(request.box, ReadBox(reader));
  RINGFENCE_ASSIGN(request.share, ReadShare(reader));
  RINGFENCE_TRY(reader.Finish());
  RINGFENCE_TRY(request.Validate());
  return request;
}

JsonObject LeaseRequestToJson(const model::LeaseRequest& request) {
  JsonObject environment;
  for (const auto& [name, value] : request.environment) {
    environment[name] = value;
  }
  JsonObject object;
  object["tenant"] = request.tenant.text();
  object["gpus"] = static_cast<std::int64_t>(request.gpus);
  if (!request.profile.empty()) {
    object["profile"] = request.profile;
  }
  if (request.gpu_memory_bytes != 0) {
    object["gpu_memory_bytes"] = static_cast<std::int64_t>(request.gpu_memory_bytes);
  }
  if (request.runtime != model::LeaseRuntime::kBox) {  // older programs know no other
    object["runtime"] = std::string(Name(request.runtime));
  }
  object["command"] = ToArray(request.command);
  object["env"] = std::move(environment);
  object["memory_bytes"] = static_cast<std::int64_t>(request.memory_bytes_max);
  object["cpu_millis"] = static_cast<std::int64_t>(request.cpu_millis_max);
  object["pids"] = static_cast<std::int64_t>(request.pids_max);
  object["timeout_ms"] = static_cast<std::int64_t>(request.timeout.count());
  if (request.wait.count() != 0) {
    object["wait_ms"] = static_cast<std::int64_t>(request.wait.count());
    object["attended"] = request.attended;
  }
  AddBox(request.box, object);
  if (request.share.has_value()) {
    object["share"] = ShareToJson(*request.share);
  }
  if (request.probe.has_value()) {
    object["probe"] = JsonObject{{"node", request.probe->node},
                                 {"name", request.probe->name},
                                 {"role", request.probe->role},
                                 {"walls_away", ToArray(request.probe->walls_away)},
                                 {"facts", ToArray(request.probe->facts)}};
  }
  return object;
}

Result<model::Lease> LeaseFromJson(const Json& json) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json));
  model::Lease lease;
  RINGFENCE_ASSIGN(lease.id, reader.String("id", kIdBytesMax));
  RINGFENCE_ASSIGN(const Json* const request, reader.Any("request"));
  RINGFENCE_ASSIGN(lease.request, LeaseRequestFromJson(*request, "request"));
  RINGFENCE_ASSIGN(lease.principal, reader.String("principal", kIdBytesMax));
  RINGFENCE_ASSIGN(lease.state, ReadState(reader));
  RINGFENCE_ASSIGN(lease.node, reader.StringOr("node", {}, kIdBytesMax));
  if (reader.Has("gpus")) {
    RINGFENCE_ASSIGN(lease.gpus, reader.Strings("gpus", model::kGpusPerLeaseMax, kIdBytesMax));
  }
  RINGFENCE_ASSIGN(lease.slice, ReadSlice(reader));
  RINGFENCE_ASSIGN(lease.image, reader.StringOr("image", {}, kIdBytesMax));
  RINGFENCE_ASSIGN(lease.created, ReadTime(reader, "created"));
  RINGFENCE_ASSIGN(lease.updated, ReadTime(reader, "updated"));
  RINGFENCE_ASSIGN(lease.started, ReadTimeIfGiven(reader, "started"));
  RINGFENCE_ASSIGN(lease.ended, ReadTimeIfGiven(reader, "ended"));
  RINGFENCE_ASSIGN(lease.outcome, reader.StringOr("outcome", {}, kIdBytesMax));
  if (reader.Has("exit_code")) {
    RINGFENCE_ASSIGN(const auto code, reader.Int("exit_code", std::numeric_limits<int>::min(),
                                                 std::numeric_limits<int>::max()));
    lease.exit_code = static_cast<int>(code);
  }
  RINGFENCE_ASSIGN(lease.reason, reader.StringOr("reason", {}, kReasonBytesMax));
  RINGFENCE_ASSIGN(lease.end_requested, reader.BoolOr("end_requested", false));
  RINGFENCE_ASSIGN(lease.simulated, reader.BoolOr("simulated", false));
  if (reader.Has("receipts")) {
    RINGFENCE_ASSIGN(lease.receipts, reader.Strings("receipts", kLeaseReceiptsMax, kIdBytesMax));
  }
  if (reader.Has("steps")) {
    RINGFENCE_ASSIGN(const auto steps, reader.Array("steps", kLeaseStepsMax));
    lease.steps.reserve(steps.size());
    for (const Json* step : steps) {
      RINGFENCE_ASSIGN(auto read,
                       ReadStep(*step, "steps[" + std::to_string(lease.steps.size()) + "]"));
      lease.steps.push_back(std::move(read));
    }
  }
  RINGFENCE_ASSIGN(lease.proof, reader.StringOr("proof", {}, kProofBytesMax));
  if (reader.Has("denied")) {
    RINGFENCE_ASSIGN(const Json* const denied, reader.Any("denied"));
    RINGFENCE_ASSIGN(lease.denied, DeniedFromJson(*denied, "denied"));
  }
  RINGFENCE_TRY(reader.Finish());
  return lease;
}

JsonObject LeaseToJson(const model::Lease& lease) {
  JsonArray steps;
  steps.reserve(lease.steps.size());
  for (const model::LeaseStep& step : lease.steps) {
    steps.emplace_back(JsonObject{{"state", std::string(Name(step.state))},
                                  {"time", FormatTime(step.time)},
                                  {"reason", Storable(step.reason)}});
  }
  JsonObject object;
  object["id"] = lease.id;
  object["request"] = LeaseRequestToJson(lease.request);
  object["principal"] = lease.principal;
  object["state"] = std::string(Name(lease.state));
  object["node"] = lease.node;
  object["gpus"] = ToArray(lease.gpus);
  if (lease.slice.has_value()) {
    object["slice"] = SliceToJson(*lease.slice);
  }
  if (!lease.image.empty()) {
    object["image"] = lease.image;
  }
  object["created"] = FormatTime(lease.created);
  object["updated"] = FormatTime(lease.updated);
  if (lease.started.has_value()) {
    object["started"] = FormatTime(*lease.started);
  }
  if (lease.ended.has_value()) {
    object["ended"] = FormatTime(*lease.ended);
  }
  object["outcome"] = lease.outcome;
  if (lease.exit_code.has_value()) {
    object["exit_code"] = static_cast<std::int64_t>(*lease.exit_code);
  }
  object["reason"] = Storable(lease.reason);
  object["end_requested"] = lease.end_requested;
  object["simulated"] = lease.simulated;
  object["receipts"] = ToArray(lease.receipts);
  object["steps"] = std::move(steps);
  if (!lease.proof.empty()) {
    object["proof"] = lease.proof;
  }
  if (lease.denied.has_value()) {
    object["denied"] = DeniedToJson(*lease.denied);
  }
  return object;
}

}  // namespace ringfence::wire
