#include "server/telemetry_events.h"

#include <algorithm>

#include "fleet/gpu_fault.h"

namespace ringfence::server {
namespace {

constexpr std::int64_t kTelemetry = 99001;
constexpr std::int64_t kDriver = 99003;
constexpr std::int64_t kProcess = 99004;
constexpr std::int64_t kInventory = 99005;
constexpr std::int64_t kNode = 99006;
constexpr std::int64_t kNumberMax = std::int64_t{1} << 53U;
constexpr std::size_t kUuidBytesMax = 80;
constexpr std::size_t kWhyBytesMax = 512;
constexpr Milliseconds kAheadMax = std::chrono::minutes(5);
constexpr Milliseconds kBehindMax = std::chrono::hours(24 * 30);

Result<JsonObject> Numbers(JsonReader& reader, std::string_view name) {
  RINGFENCE_ASSIGN(const Json* const value, reader.Any(name));
  RINGFENCE_ASSIGN(auto inner, JsonReader::Open(*value, reader.Path(name)));
  JsonObject numbers;
  for (std::size_t i = 0; i < gpu::kSignals; ++i) {
    const char* const signal = gpu::Facts(static_cast<gpu::Signal>(i)).name;
    if (inner.Has(signal)) {
      RINGFENCE_ASSIGN(const std::int64_t number, inner.Int(signal, 0, kNumberMax));
      numbers[signal] = number;
    }
  }
  RINGFENCE_TRY(inner.Finish());
  return numbers;
}

Status ReadFault(JsonReader& reader, gpu::GpuFault& fault) {
  RINGFENCE_ASSIGN(const std::string kind, reader.String("fault", 16));
  bool known = false;
  for (const gpu::FaultKind one : {gpu::FaultKind::kXid, gpu::FaultKind::kLost,
                                   gpu::FaultKind::kHung, gpu::FaultKind::kBack}) {
    if (gpu::Name(one) == kind) {
      fault.kind = one;
      known = true;
    }
  }
  if (!known) {
    return Error{Code::kInvalidArgument, kind + " is no kind of fault", {}, reader.Path("fault")};
  }
  RINGFENCE_ASSIGN(const std::int64_t xid, reader.IntOr("xid", 0, 0, 99999));
  fault.xid = static_cast<std::uint32_t>(xid);
  RINGFENCE_ASSIGN(fault.why, reader.StringOr("why", "", kWhyBytesMax));
  return {};
}

Status ReadProcess(JsonReader& reader, gpu::ProcessReading& process) {
  RINGFENCE_ASSIGN(const std::int64_t pid, reader.Int("pid", 1, UINT32_MAX));
  process.pid = static_cast<std::uint32_t>(pid);
  RINGFENCE_ASSIGN(process.name, reader.StringOr("name", "", 64));
  RINGFENCE_ASSIGN(process.lease, reader.StringOr("lease", "", 64));
  return {};
}

std::optional<std::int64_t> At(const JsonObject& numbers, gpu::Signal signal) {
  const Json* const value = numbers.if_contains(gpu::Facts(signal).name);
  return value == nullptr ? std::nullopt : std::optional(value->get_int64());
}

// The names that rules use (docs/formats/events.md).
JsonObject GpuOf(const TelemetryRecord& record) {
  using gpu::Signal;
  JsonObject gpu{{"uuid", record.gpu}};
  const auto copy = [&](const JsonObject& from, Signal signal, const char* name,
                        std::int64_t divisor = 1) {
    if (const auto value = At(from, signal)) {
      gpu[name] = *value / divisor;
    }
  };
  const auto percent = [&](const char* name, std::optional<std::int64_t> part,
                           std::optional<std::int64_t> whole) {
    if (part.has_value() && whole.has_value() && *whole > 0) {
      gpu[name] = std::min<std::int64_t>(*part, kNumberMax / 100) * 100 / *whole;
    }
  };
  copy(record.mean, Signal::kBusy, "busy_percent");
  copy(record.mean, Signal::kSmActive, "sm_active_percent");
  copy(record.mean, Signal::kTensorActive, "tensor_active_percent");
  copy(record.mean, Signal::kDramActive, "dram_active_percent");
  copy(record.mean, Signal::kPower, "power_w", 1000);
  copy(record.peak, Signal::kTemperature, "temperature_c");
  copy(record.mean, Signal::kSmClock, "sm_clock_mhz");
  copy(record.mean, Signal::kPcieRx, "pcie_rx_mbps", 1000);
  copy(record.mean, Signal::kPcieTx, "pcie_tx_mbps", 1000);
  copy(record.grown, Signal::kNvlinkRx, "nvlink_rx_kib");
  copy(record.grown, Signal::kNvlinkTx, "nvlink_tx_kib");
  copy(record.grown, Signal::kEnergy, "energy_mj");
  copy(record.grown, Signal::kEccCorrected, "ecc_corrected_delta");
  copy(record.grown, Signal::kEccUncorrected, "ecc_uncorrected_delta");
  copy(record.grown, Signal::kRemappedCorrected, "remapped_corrected_delta");
  copy(record.grown, Signal::kRemappedUncorrected, "remapped_uncorrected_delta");
  percent("power_percent", At(record.mean, Signal::kPower), At(record.mean, Signal::kPowerLimit));
  percent("memory_used_percent", At(record.peak, Signal::kMemoryUsed),
          At(record.mean, Signal::kMemory));
  return gpu;
}

detect::EventMapping::Own OwnOf(const TelemetryRecord& record) {
  using detect::Severity;
  if (record.kind == "reading") {
    return {{}, kTelemetry, "telemetry", "read", Severity::kInformational, {}};
  }
  if (record.kind == "process") {
    return {{}, kProcess, "gpu-process", "seen", Severity::kInformational, {}};
  }
  if (record.kind == "change") {
    return {{}, kInventory, "inventory", "changed", Severity::kLow, {}};
  }
  if (record.kind == "gap") {
    return {{}, kNode, "node", "gap", Severity::kHigh, {}};
  }
  const bool serious = fleet::Judge(record.fault).quarantines;
  const std::string what = record.fault.kind == gpu::FaultKind::kLost
                               ? "gone"
                               : std::string(gpu::Name(record.fault.kind));
  return {{}, kDriver, "driver", what, serious ? Severity::kHigh : Severity::kLow, {}};
}

}  // namespace

Result<TelemetryRecord> ReadTelemetryRecord(const Json& json, const std::string& path) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, path));
  TelemetryRecord record;
  RINGFENCE_ASSIGN(record.sequence, reader.Int("seq", 1, INT64_MAX - 1));
  RINGFENCE_ASSIGN(const std::int64_t time, reader.Int("time", 0, kNumberMax));
  record.time = Timestamp(Milliseconds(time));
  RINGFENCE_ASSIGN(record.kind, reader.String("kind", 16));
  if (record.kind == "gap") {
    RINGFENCE_ASSIGN(record.dropped, reader.Int("dropped", 0, kNumberMax));
    RINGFENCE_ASSIGN(record.why, reader.String("why", kWhyBytesMax));
    RINGFENCE_TRY(reader.Finish());
    return record;
  }
  RINGFENCE_ASSIGN(record.gpu, reader.String("gpu", kUuidBytesMax));
  if (record.kind == "fault") {
    record.fault.uuid = record.gpu;
    RINGFENCE_TRY(ReadFault(reader, record.fault));
  } else if (record.kind == "process") {
    RINGFENCE_TRY(ReadProcess(reader, record.process));
  } else if (record.kind == "change") {
    RINGFENCE_ASSIGN(record.field, reader.String("field", 64));
    RINGFENCE_ASSIGN(record.from, reader.Int("from", 0, kNumberMax));
    RINGFENCE_ASSIGN(record.to, reader.Int("to", 0, kNumberMax));
  } else if (record.kind == "reading") {
    RINGFENCE_TRY(reader.Int("samples", 0, kNumberMax));
    RINGFENCE_ASSIGN(record.mean, Numbers(reader, "mean"));
    RINGFENCE_ASSIGN(record.grown, Numbers(reader, "grown"));
    RINGFENCE_ASSIGN(record.peak, Numbers(reader, "peak"));
  } else {
    return Error{Code::kInvalidArgument, record.kind + " is no kind of record",
                 "an agent that is newer than its server: upgrade the server", reader.Path("kind")};
  }
  RINGFENCE_TRY(reader.Finish());
  return record;
}

detect::LiveEvent EventOf(const TelemetryRecord& record, const RecordContext& context,
                          const std::string& epoch, const detect::EventMapping& mapping) {
  detect::EventMapping::Own own = OwnOf(record);
  // A node's clock may be wrong; its events must still be found, and age, where they belong.
  const bool believable =
      record.time <= context.now + kAheadMax && record.time >= context.now - kBehindMax;
  own.time = believable ? record.time : context.now;
  own.uid = context.node + "-" + epoch + "-" + std::to_string(record.sequence);
  detect::LiveEvent event = mapping.Make(own);
  if (!believable) {
    detect::SetPath(event.json, "metadata.original_time", Json(FormatTime(record.time)));
  }
  event.node = context.node;
  event.json["node"] = JsonObject{{"name", context.node}};
  if (record.kind == "gap") {
    detect::SetPath(event.json, "gap.dropped", record.dropped);
    detect::SetPath(event.json, "gap.why", Json(record.why));
    event.json["message"] = std::to_string(record.dropped) + " records: " + record.why;
    return event;
  }
  event.gpus = {record.gpu};
  event.json["gpu"] = record.kind == "reading" ? GpuOf(record) : JsonObject{{"uuid", record.gpu}};
  // A process belongs to the lease of its GPU only if it is in that lease's box.
  std::string lease = context.lease;
  if (record.kind == "process" && record.process.lease != lease) {
    lease.clear();
  }
  if (!lease.empty()) {
    event.lease = lease;
    event.tenant = context.tenant;
    event.principal = context.principal;
    event.json["lease"] = JsonObject{{"id", lease}};
    event.json["tenant"] = JsonObject{{"path", context.tenant}};
    detect::SetPath(event.json, "actor.user.name", Json(context.principal));
  }
  if (record.kind == "process") {
    detect::SetPath(event.json, "process.pid", static_cast<std::int64_t>(record.process.pid));
    detect::SetPath(event.json, "process.file.name", Json(record.process.name));
    if (!record.process.lease.empty()) {
      detect::SetPath(event.json, "process.lease", Json(record.process.lease));
    }
  } else if (record.kind == "change") {
    event.json["change"] =
        JsonObject{{"field", record.field}, {"from", record.from}, {"to", record.to}};
    event.json["message"] = record.field + " changed from " + std::to_string(record.from) + " to " +
                            std::to_string(record.to);
  } else if (record.kind == "fault") {
    if (record.fault.kind == gpu::FaultKind::kXid) {
      detect::SetPath(event.json, "gpu.xid", static_cast<std::int64_t>(record.fault.xid));
    }
    event.json["message"] = fleet::Judge(record.fault).what;
  }
  return event;
}

}  // namespace ringfence::server
