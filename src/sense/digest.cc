#include "sense/digest.h"

#include <algorithm>

namespace ringfence::sense {
namespace {

using gpu::Signal;

// Growth of one of these is told within seconds, not at the end of the minute.
constexpr std::array kUrgent = {Signal::kEccCorrected, Signal::kEccUncorrected,
                                Signal::kRemappedCorrected, Signal::kRemappedUncorrected};
constexpr Milliseconds kUrgentEvery = std::chrono::seconds(5);
// Their highest value says more than their mean.
constexpr std::array kPeaks = {Signal::kMemoryUsed, Signal::kPower, Signal::kTemperature};

std::size_t At(Signal signal) { return static_cast<std::size_t>(signal); }

JsonObject FaultRecord(const gpu::GpuFault& fault, Timestamp time) {
  JsonObject record{{"kind", "fault"},
                    {"time", time.time_since_epoch().count()},
                    {"gpu", fault.uuid},
                    {"fault", std::string(gpu::Name(fault.kind))},
                    {"why", fault.why}};
  if (fault.kind == gpu::FaultKind::kXid) {
    record["xid"] = static_cast<std::int64_t>(fault.xid);
  }
  return record;
}

JsonObject ProcessRecord(const std::string& uuid, const gpu::ProcessReading& process,
                         Timestamp time) {
  return {{"kind", "process"},    {"time", time.time_since_epoch().count()},
          {"gpu", uuid},          {"pid", static_cast<std::int64_t>(process.pid)},
          {"name", process.name}, {"lease", process.lease}};
}

JsonObject ChangeRecord(const std::string& uuid, std::int64_t from, std::int64_t to,
                        Timestamp time) {
  return {{"kind", "change"}, {"time", time.time_since_epoch().count()},
          {"gpu", uuid},      {"field", "power_limit"},
          {"from", from},     {"to", to}};
}

}  // namespace

std::vector<const gpu::Reading*> Digest::Latest(Milliseconds age) const {
  std::vector<const gpu::Reading*> readings;
  for (const auto& [uuid, last] : latest_) {
    if (last_line_ - last.time <= age) {
      readings.push_back(&last.reading);
    }
  }
  return readings;
}

void Digest::Add(const gpu::Reading& reading, const gpu::Reading* before, Sum& sum) {
  ++sum.samples;
  for (std::size_t i = 0; i < gpu::kSignals; ++i) {
    if (!reading.values[i].has_value()) {
      continue;
    }
    const std::int64_t value = *reading.values[i];
    sum.total[i] += value;
    ++sum.count[i];
    sum.most[i] = std::max(sum.most[i], value);
    if (before != nullptr && before->values[i].has_value() && value > *before->values[i]) {
      sum.grown[i] += value - *before->values[i];
    }
  }
}

JsonObject Digest::Close(const std::string& uuid, const Sum& sum, Timestamp time) {
  JsonObject mean;
  JsonObject grown;
  JsonObject peak;
  for (std::size_t i = 0; i < gpu::kSignals; ++i) {
    const auto signal = static_cast<Signal>(i);
    if (sum.count[i] == 0) {
      continue;
    }
    if (gpu::Facts(signal).measure == gpu::Measure::kCounter) {
      grown[gpu::Facts(signal).name] = sum.grown[i];
    } else {
      mean[gpu::Facts(signal).name] = sum.total[i] / sum.count[i];
    }
    if (std::find(kPeaks.begin(), kPeaks.end(), signal) != kPeaks.end()) {
      peak[gpu::Facts(signal).name] = sum.most[i];
    }
  }
  return {{"kind", "reading"},
          {"time", time.time_since_epoch().count()},
          {"gpu", uuid},
          {"samples", sum.samples},
          {"mean", std::move(mean)},
          {"grown", std::move(grown)},
          {"peak", std::move(peak)}};
}

std::vector<JsonObject> Digest::Take(const gpu::SensorLine& line, Milliseconds every) {
  std::vector<JsonObject> records;
  last_line_ = line.time;
  if (line.fault.has_value()) {
    records.push_back(FaultRecord(*line.fault, line.time));
    return records;
  }
  for (const gpu::Reading& reading : line.readings) {
    const auto before = latest_.find(reading.uuid);
    auto [place, fresh] = sums_.try_emplace(reading.uuid);
    Sum& sum = place->second;
    if (fresh || sum.samples == 0) {
      sum.since = line.time;
    }
    Add(reading, before == latest_.end() ? nullptr : &before->second.reading, sum);
    if (before != latest_.end()) {
      const auto& was = before->second.reading.Of(Signal::kPowerLimit);
      const auto& is = reading.Of(Signal::kPowerLimit);
      if (was.has_value() && is.has_value() && *was != *is) {
        records.push_back(ChangeRecord(reading.uuid, *was, *is, line.time));
      }
    }
    std::set<std::uint32_t> there;
    for (const gpu::ProcessReading& process : reading.processes) {
      there.insert(process.pid);
      if (!processes_[reading.uuid].contains(process.pid)) {
        records.push_back(ProcessRecord(reading.uuid, process, line.time));
      }
    }
    processes_[reading.uuid] = std::move(there);
    const bool urgent = std::any_of(kUrgent.begin(), kUrgent.end(),
                                    [&](Signal signal) { return sum.grown[At(signal)] > 0; });
    // A clock that was put back must not keep a record open.
    const Milliseconds open = line.time - sum.since;
    if (open < Milliseconds(0) || open + std::chrono::milliseconds(500) >= every ||
        (urgent && open >= std::min(every, kUrgentEvery))) {
      records.push_back(Close(reading.uuid, sum, line.time));
      sum = {};
    }
    latest_[reading.uuid] = {reading, line.time};
  }
  return records;
}

}  // namespace ringfence::sense
