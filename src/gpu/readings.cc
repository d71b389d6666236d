#include "gpu/readings.h"

#include <algorithm>
#include <charconv>

#include "gpu/limits.h"

namespace ringfence::gpu {
namespace {

constexpr std::int64_t kValueMax = std::int64_t{1} << 53U;
constexpr std::size_t kUuidBytesMax = 80;
constexpr std::size_t kNameBytesMax = 64;
constexpr std::size_t kWhyBytesMax = 512;

constexpr std::array<SignalFacts, kSignals> kFacts = {{
    {"busy_percent", Measure::kLevel},
    {"memory_busy_percent", Measure::kLevel},
    {"memory_used_bytes", Measure::kLevel},
    {"memory_bytes", Measure::kLevel},
    {"power_mw", Measure::kLevel},
    {"power_limit_mw", Measure::kLevel},
    {"energy_mj", Measure::kCounter},
    {"temperature_c", Measure::kLevel},
    {"sm_clock_mhz", Measure::kLevel},
    {"memory_clock_mhz", Measure::kLevel},
    {"pcie_tx_kbps", Measure::kLevel},
    {"pcie_rx_kbps", Measure::kLevel},
    {"nvlink_tx_kib", Measure::kCounter},
    {"nvlink_rx_kib", Measure::kCounter},
    {"ecc_corrected", Measure::kCounter},
    {"ecc_uncorrected", Measure::kCounter},
    {"remapped_corrected", Measure::kCounter},
    {"remapped_uncorrected", Measure::kCounter},
    {"remap_pending", Measure::kLevel},
    {"remap_failed", Measure::kLevel},
    {"sm_active_percent", Measure::kLevel},
    {"tensor_active_percent", Measure::kLevel},
    {"dram_active_percent", Measure::kLevel},
}};

constexpr std::array<std::string_view, 4> kFaultNames = {"xid", "lost", "hung", "back"};

Result<ProcessReading> ProcessFromJson(const Json& json, const std::string& path) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, path));
  ProcessReading process;
  RINGFENCE_ASSIGN(const std::int64_t pid, reader.Int("pid", 1, UINT32_MAX));
  process.pid = static_cast<std::uint32_t>(pid);
  RINGFENCE_ASSIGN(process.name, reader.StringOr("name", "", kNameBytesMax));
  RINGFENCE_ASSIGN(const std::int64_t memory, reader.Int("memory_bytes", 0, kValueMax));
  process.memory_bytes = static_cast<std::uint64_t>(memory);
  RINGFENCE_ASSIGN(process.lease, reader.StringOr("lease", "", kNameBytesMax));
  RINGFENCE_TRY(reader.Finish());
  return process;
}

Result<GpuFault> FaultFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "fault"));
  GpuFault fault;
  RINGFENCE_ASSIGN(fault.uuid, reader.String("gpu", kUuidBytesMax));
  RINGFENCE_ASSIGN(const std::string kind, reader.String("kind", 16));
  const auto found = std::find(kFaultNames.begin(), kFaultNames.end(), kind);
  if (found == kFaultNames.end()) {
    return Error{Code::kInvalidArgument, kind + " is no kind of fault", {}, "fault.kind"};
  }
  fault.kind = static_cast<FaultKind>(found - kFaultNames.begin());
  RINGFENCE_ASSIGN(const std::int64_t xid,
                   reader.IntOr("xid", 0, fault.kind == FaultKind::kXid ? 1 : 0, 99999));
  fault.xid = static_cast<std::uint32_t>(xid);
  RINGFENCE_ASSIGN(fault.why, reader.StringOr("why", "", kWhyBytesMax));
  RINGFENCE_TRY(reader.Finish());
  return fault;
}

}  // namespace

const SignalFacts& Facts(Signal signal) { return kFacts[static_cast<std::size_t>(signal)]; }

std::string_view Name(FaultKind kind) { return kFaultNames[static_cast<std::size_t>(kind)]; }

JsonObject ReadingToJson(const Reading& reading) {
  JsonObject json{{"gpu", reading.uuid}};
  for (std::size_t i = 0; i < kSignals; ++i) {
    if (reading.values[i].has_value()) {
      json[kFacts[i].name] = *reading.values[i];
    }
  }
  JsonArray processes;
  for (const ProcessReading& process : reading.processes) {
    JsonObject one{{"pid", static_cast<std::int64_t>(process.pid)},
                   {"memory_bytes", static_cast<std::int64_t>(process.memory_bytes)}};
    if (!process.name.empty()) {
      one["name"] = process.name;
    }
    if (!process.lease.empty()) {
      one["lease"] = process.lease;
    }
    processes.emplace_back(std::move(one));
  }
  json["processes"] = std::move(processes);
  return json;
}

Result<Reading> ReadingFromJson(const Json& json, const std::string& path) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, path));
  Reading reading;
  RINGFENCE_ASSIGN(reading.uuid, reader.String("gpu", kUuidBytesMax));
  for (std::size_t i = 0; i < kSignals; ++i) {
    if (reader.Has(kFacts[i].name)) {
      RINGFENCE_ASSIGN(reading.values[i], reader.Int(kFacts[i].name, 0, kValueMax));
    }
  }
  RINGFENCE_ASSIGN(const auto processes, reader.Array("processes", kReadingProcessesMax));
  for (const Json* one : processes) {
    RINGFENCE_ASSIGN(ProcessReading process, ProcessFromJson(*one, path + ".processes[]"));
    reading.processes.push_back(std::move(process));
  }
  RINGFENCE_TRY(reader.Finish());
  return reading;
}

std::string SensorLineToText(const SensorLine& line) {
  JsonObject json{{"time", line.time.time_since_epoch().count()}};
  if (line.fault.has_value()) {
    JsonObject fault{{"gpu", line.fault->uuid}, {"kind", std::string(Name(line.fault->kind))}};
    if (line.fault->kind == FaultKind::kXid) {
      fault["xid"] = static_cast<std::int64_t>(line.fault->xid);
    }
    if (!line.fault->why.empty()) {
      fault["why"] = line.fault->why.substr(0, kWhyBytesMax);
    }
    json["fault"] = std::move(fault);
  } else {
    JsonArray readings;
    for (const Reading& reading : line.readings) {
      readings.emplace_back(ReadingToJson(reading));
    }
    json["readings"] = std::move(readings);
  }
  return CanonicalJson(json);
}

Result<SensorLine> ParseSensorLine(std::string_view text) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kSensorLineBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  SensorLine line;
  RINGFENCE_ASSIGN(const std::int64_t time, reader.Int("time", 0, kValueMax));
  line.time = Timestamp(Milliseconds(time));
  if (reader.Has("fault")) {
    RINGFENCE_ASSIGN(const Json* const fault, reader.Any("fault"));
    RINGFENCE_ASSIGN(line.fault, FaultFromJson(*fault));
  } else {
    RINGFENCE_ASSIGN(const auto readings, reader.Array("readings", kGpusMax));
    for (std::size_t i = 0; i < readings.size(); ++i) {
      RINGFENCE_ASSIGN(Reading reading,
                       ReadingFromJson(*readings[i], "readings[" + std::to_string(i) + "]"));
      line.readings.push_back(std::move(reading));
    }
  }
  RINGFENCE_TRY(reader.Finish());
  return line;
}

std::optional<XidLine> ParseXidLine(std::string_view text) {
  constexpr std::string_view kBegin = "NVRM: Xid (";
  const std::size_t at = text.find(kBegin);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(at + kBegin.size());
  if (text.starts_with("PCI:")) {
    text.remove_prefix(4);
  }
  const std::size_t end = text.find("): ");
  constexpr std::size_t kAddress = 10;  // 0000:10:1c
  if (end == std::string_view::npos || end < kAddress) {
    return std::nullopt;
  }
  XidLine line;
  line.pci_address = std::string(text.substr(0, kAddress));
  const std::string_view number = text.substr(end + 3);
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), line.xid);
  if (parsed.ec != std::errc() || line.xid == 0 || line.xid > 99999) {
    return std::nullopt;
  }
  std::transform(line.pci_address.begin(), line.pci_address.end(), line.pci_address.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  return line;
}

std::string LeaseOfCgroup(std::string_view cgroup_file) {
  constexpr std::string_view kOurs = "/ringfence/";
  const std::size_t ours = cgroup_file.find(kOurs);
  if (ours == std::string_view::npos) {
    return {};
  }
  std::string_view rest = cgroup_file.substr(ours + kOurs.size());
  rest = rest.substr(0, rest.find('\n'));
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) {
    return {};
  }
  rest.remove_prefix(slash + 1);
  return std::string(rest.substr(0, std::min(rest.find('/'), kNameBytesMax)));
}

}  // namespace ringfence::gpu
