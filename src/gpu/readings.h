#pragma once

// What a GPU measures of itself, once. What a card or its library does not say is absent.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"

namespace ringfence::gpu {

enum class Signal : std::uint8_t {
  kBusy,
  kMemoryBusy,
  kMemoryUsed,
  kMemory,
  kPower,
  kPowerLimit,
  kEnergy,
  kTemperature,
  kSmClock,
  kMemoryClock,
  kPcieTx,
  kPcieRx,
  kNvlinkTx,
  kNvlinkRx,
  kEccCorrected,
  kEccUncorrected,
  kRemappedCorrected,
  kRemappedUncorrected,
  kRemapPending,
  kRemapFailed,
  kSmActive,
  kTensorActive,
  kDramActive,
};
inline constexpr std::size_t kSignals = 23;

enum class Measure : std::uint8_t { kLevel, kCounter };  // a counter only grows
struct SignalFacts {
  const char* name;  // in JSON, with its unit
  Measure measure;
};
const SignalFacts& Facts(Signal signal);

struct ProcessReading {
  std::uint32_t pid = 0;  // the host's
  std::string name;       // may be empty
  std::uint64_t memory_bytes = 0;
  std::string lease;  // whose box its cgroup is; empty: none's
  bool operator==(const ProcessReading&) const = default;
};

struct Reading {
  std::string uuid;
  std::array<std::optional<std::int64_t>, kSignals> values;
  std::vector<ProcessReading> processes;

  const std::optional<std::int64_t>& Of(Signal signal) const {
    return values[static_cast<std::size_t>(signal)];
  }
  void Set(Signal signal, std::int64_t value) { values[static_cast<std::size_t>(signal)] = value; }
};

inline constexpr std::size_t kReadingProcessesMax = 256;

enum class FaultKind : std::uint8_t {
  kXid,   // the driver said so
  kLost,  // fallen off the bus, or not to be spoken to without a reset
  kHung,  // does not answer
  kBack,  // answers again
};
std::string_view Name(FaultKind kind);

struct GpuFault {
  std::string uuid;
  FaultKind kind = FaultKind::kXid;
  std::uint32_t xid = 0;  // of kXid
  std::string why;        // evidence, in the words of the driver
};

// What a sensor says: one line of JSON each.
struct SensorLine {
  Timestamp time;
  std::vector<Reading> readings;  // of one moment; or
  std::optional<GpuFault> fault;  // one of these
};
inline constexpr std::size_t kSensorLineBytesMax = std::size_t{1} << 20U;

JsonObject ReadingToJson(const Reading& reading);
Result<Reading> ReadingFromJson(const Json& json, const std::string& path = "reading");
std::string SensorLineToText(const SensorLine& line);  // without its end
// kInvalidArgument for what no sensor writes.
Result<SensorLine> ParseSensorLine(std::string_view text);

// "NVRM: Xid (PCI:0000:10:1c): 63, pid=..." of the kernel's log; older drivers write no "PCI:".
struct XidLine {
  std::string pci_address;  // "0000:10:1c"
  std::uint32_t xid = 0;
};
std::optional<XidLine> ParseXidLine(std::string_view text);

// The lease in "/ringfence/NODE/LEASE[/...]" of a process's /proc/PID/cgroup; empty: none.
std::string LeaseOfCgroup(std::string_view cgroup_file);

}  // namespace ringfence::gpu
