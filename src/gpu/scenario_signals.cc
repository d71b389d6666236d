#include "gpu/scenario_signals.h"

#include <algorithm>
#include <array>

#include "gpu/scenario.h"

namespace ringfence::gpu {
namespace {

constexpr std::int64_t kCountMax = std::int64_t{1} << 53U;
constexpr std::int64_t kXidMax = 999;
constexpr std::int64_t kDayMs = 24LL * 60 * 60 * 1000;

// What may change under a running driver.
constexpr std::array<std::string_view, 25> kChangeable = {"temperature_c",
                                                          "power_mw",
                                                          "power_limit_mw",
                                                          "utilization_percent",
                                                          "ecc_errors_corrected",
                                                          "ecc_errors_uncorrected",
                                                          "lost",
                                                          "hang",
                                                          "memory_busy_percent",
                                                          "sm_clock_mhz",
                                                          "memory_clock_mhz",
                                                          "pcie_tx_kbps",
                                                          "pcie_rx_kbps",
                                                          "nvlink_tx_kib",
                                                          "nvlink_rx_kib",
                                                          "energy_mj",
                                                          "remapped_corrected",
                                                          "remapped_uncorrected",
                                                          "remap_pending",
                                                          "remap_failed",
                                                          "gpm",
                                                          "sm_active_percent",
                                                          "tensor_active_percent",
                                                          "dram_active_percent",
                                                          "nvml_fail"};

template <typename Number>
Status ReadCount(JsonReader& reader, const char* name, std::int64_t most, Number& into) {
  RINGFENCE_ASSIGN(const std::int64_t number,
                   reader.IntOr(name, static_cast<std::int64_t>(into), 0, most));
  into = static_cast<Number>(number);
  return {};
}

Status ReadFlag(JsonReader& reader, const char* name, bool& into) {
  RINGFENCE_ASSIGN(into, reader.BoolOr(name, into));
  return {};
}

}  // namespace

Status ReadSignals(JsonReader& reader, SimulatedSignals& signals) {
  RINGFENCE_TRY(ReadCount(reader, "memory_busy_percent", 100, signals.memory_busy_percent));
  RINGFENCE_TRY(ReadCount(reader, "sm_clock_mhz", 10'000, signals.sm_clock_mhz));
  RINGFENCE_TRY(ReadCount(reader, "memory_clock_mhz", 100'000, signals.memory_clock_mhz));
  RINGFENCE_TRY(ReadCount(reader, "pcie_tx_kbps", INT32_MAX, signals.pcie_tx_kbps));
  RINGFENCE_TRY(ReadCount(reader, "pcie_rx_kbps", INT32_MAX, signals.pcie_rx_kbps));
  RINGFENCE_TRY(ReadCount(reader, "nvlink_tx_kib", kCountMax, signals.nvlink_tx_kib));
  RINGFENCE_TRY(ReadCount(reader, "nvlink_rx_kib", kCountMax, signals.nvlink_rx_kib));
  RINGFENCE_TRY(ReadCount(reader, "energy_mj", kCountMax, signals.energy_mj));
  RINGFENCE_TRY(ReadCount(reader, "remapped_corrected", INT32_MAX, signals.remapped_corrected));
  RINGFENCE_TRY(ReadCount(reader, "remapped_uncorrected", INT32_MAX, signals.remapped_uncorrected));
  RINGFENCE_TRY(ReadFlag(reader, "remap_pending", signals.remap_pending));
  RINGFENCE_TRY(ReadFlag(reader, "remap_failed", signals.remap_failed));
  RINGFENCE_TRY(ReadFlag(reader, "gpm", signals.gpm));
  RINGFENCE_TRY(ReadCount(reader, "sm_active_percent", 100, signals.sm_active_percent));
  RINGFENCE_TRY(ReadCount(reader, "tensor_active_percent", 100, signals.tensor_active_percent));
  RINGFENCE_TRY(ReadCount(reader, "dram_active_percent", 100, signals.dram_active_percent));
  return ReadFlag(reader, "hang", signals.hang);
}

void WriteSignals(const SimulatedSignals& signals, JsonObject& object) {
  object["memory_busy_percent"] = signals.memory_busy_percent;
  object["sm_clock_mhz"] = signals.sm_clock_mhz;
  object["memory_clock_mhz"] = signals.memory_clock_mhz;
  object["pcie_tx_kbps"] = signals.pcie_tx_kbps;
  object["pcie_rx_kbps"] = signals.pcie_rx_kbps;
  object["nvlink_tx_kib"] = signals.nvlink_tx_kib;
  object["nvlink_rx_kib"] = signals.nvlink_rx_kib;
  object["energy_mj"] = signals.energy_mj;
  object["remapped_corrected"] = signals.remapped_corrected;
  object["remapped_uncorrected"] = signals.remapped_uncorrected;
  object["remap_pending"] = signals.remap_pending;
  object["remap_failed"] = signals.remap_failed;
  object["gpm"] = signals.gpm;
  object["sm_active_percent"] = signals.sm_active_percent;
  object["tensor_active_percent"] = signals.tensor_active_percent;
  object["dram_active_percent"] = signals.dram_active_percent;
  object["hang"] = signals.hang;
}

Result<std::vector<TimelineStep>> ReadTimeline(JsonReader& reader) {
  std::vector<TimelineStep> timeline;
  if (!reader.Has("timeline")) {
    return timeline;
  }
  RINGFENCE_ASSIGN(const auto elements, reader.Array("timeline", kTimelineMax));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::string path = reader.Path("timeline") + "[" + std::to_string(i) + "]";
    RINGFENCE_ASSIGN(JsonReader inner, JsonReader::Open(*elements[i], path));
    TimelineStep step;
    RINGFENCE_ASSIGN(const std::int64_t after, inner.Int("after_ms", 0, kDayMs));
    step.after = Milliseconds(after);
    if (inner.Has("xid")) {
      RINGFENCE_ASSIGN(const std::int64_t xid, inner.Int("xid", 1, kXidMax));
      step.xid = static_cast<std::uint32_t>(xid);
    }
    if (inner.Has("set")) {
      RINGFENCE_ASSIGN(const Json* const set, inner.Any("set"));
      if (!set->is_object()) {
        return Error{Code::kInvalidArgument, path + ".set must be an object", {}, path + ".set"};
      }
      for (const auto& member : set->get_object()) {
        const std::string_view name(member.key().data(), member.key().size());
        if (std::find(kChangeable.begin(), kChangeable.end(), name) == kChangeable.end()) {
          const std::string field = path + ".set." + std::string(name);
          return Error{
              Code::kInvalidArgument, field + " cannot change while a driver runs", {}, field};
        }
      }
      step.set = set->get_object();
    }
    RINGFENCE_TRY(inner.Finish());
    if (!timeline.empty() && timeline.back().after > step.after) {
      return Error{Code::kInvalidArgument,
                   path + ".after_ms must not be before the step before it",
                   {},
                   path + ".after_ms"};
    }
    timeline.push_back(std::move(step));
  }
  return timeline;
}

JsonArray TimelineToJson(const std::vector<TimelineStep>& timeline) {
  JsonArray steps;
  for (const TimelineStep& step : timeline) {
    JsonObject one{{"after_ms", step.after.count()}, {"set", step.set}};
    if (step.xid.has_value()) {
      one["xid"] = *step.xid;
    }
    steps.emplace_back(std::move(one));
  }
  return steps;
}

Result<Scenario> ScenarioAt(const Scenario& scenario, Milliseconds elapsed) {
  const bool changes =
      std::any_of(scenario.gpus.begin(), scenario.gpus.end(), [&](const SimulatedGpu& gpu) {
        return !gpu.timeline.empty() && gpu.timeline.front().after <= elapsed;
      });
  if (!changes) {
    return scenario;
  }
  RINGFENCE_ASSIGN(Json document, ParseJson(ScenarioToJson(scenario), kScenarioBytesMax));
  JsonArray& gpus = document.get_object()["gpus"].get_array();
  for (std::size_t i = 0; i < scenario.gpus.size(); ++i) {
    for (const TimelineStep& step : scenario.gpus[i].timeline) {
      if (step.after > elapsed) {
        break;
      }
      for (const auto& member : step.set) {
        gpus[i].get_object()[member.key()] = member.value();
      }
    }
  }
  return ParseScenario(CanonicalJson(document));
}

}  // namespace ringfence::gpu
