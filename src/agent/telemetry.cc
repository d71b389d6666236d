#include "agent/telemetry.h"

#include <algorithm>
#include <array>

#include "os/file.h"
#include "os/log.h"

namespace ringfence::agent {
namespace {

constexpr std::size_t kBatchRecordsMax = 512;
constexpr std::size_t kBatchBytesMax = std::size_t{512} << 10U;
constexpr std::chrono::seconds kDeliverEvery{2};
constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::seconds kRestart{5};
constexpr std::chrono::seconds kQuietMax{15};  // a sensor that says nothing for so long is ended

}  // namespace

Result<std::unique_ptr<Telemetry>> Telemetry::Open(const std::string& folder,
                                                   isolate::JailerClient& jailer,
                                                   Surroundings& surroundings) {
  RINGFENCE_ASSIGN(sense::Spool spool, sense::Spool::Open({folder}));
  return std::unique_ptr<Telemetry>(new Telemetry(std::move(spool), jailer, surroundings));
}

void Telemetry::Start() {
  listener_ = surroundings_.Launch([this](const std::stop_token& stop) { Listen(stop); });
  deliverer_ = surroundings_.Launch([this](const std::stop_token& stop) { Deliver(stop); });
}

void Telemetry::Listen(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto lines = jailer_.Sense();
    if (lines.has_value()) {
      ReadLines(stop, lines->get());
    }
    {
      const std::lock_guard lock(mutex_);
      if (!lines.has_value() || blind_.empty()) {
        blind_ = lines.has_value() ? "its sensor ended" : lines.error().message;
      }
    }
    surroundings_.Pause(stop, kRestart);
  }
}

// Until the sensor ends, says what no sensor says, or says nothing.
void Telemetry::ReadLines(const std::stop_token& stop, int fd) {
  std::string text;
  auto heard = surroundings_.Steady();
  while (!stop.stop_requested()) {
    std::vector<os::PollItem> items{{fd}};
    if (!surroundings_.Poll(items, std::chrono::seconds(1)).has_value() ||
        surroundings_.Steady() - heard > kQuietMax) {
      return;
    }
    std::array<std::byte, 65536> chunk{};
    for (;;) {
      const auto got = os::ReadSome(fd, chunk);
      if (!got.has_value()) {
        break;  // nothing more now
      }
      if (*got == 0 || text.size() + *got > gpu::kSensorLineBytesMax) {
        return;
      }
      heard = surroundings_.Steady();
      text += AsText(ByteView(chunk).first(*got));
      for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
        TakeLine(std::string_view(text).substr(0, end));
        text.erase(0, end + 1);
      }
    }
  }
}

void Telemetry::TakeLine(std::string_view text) {
  const auto line = gpu::ParseSensorLine(text);
  const std::lock_guard lock(mutex_);
  if (!line.has_value()) {  // {"error":...} of a worker that could not begin
    blind_ = std::string(text.substr(0, 300));
    return;
  }
  blind_.clear();
  const bool fault = line->fault.has_value();
  for (JsonObject& record : digest_.Take(*line, every_)) {
    urgent_ = urgent_ || record.at("kind") != "reading";
    if (const Status kept = spool_.Append(std::move(record), surroundings_.Now());
        !kept.has_value()) {
      os::Log(os::Level::kError, "telemetry_not_kept", {{"why", kept.error().message}});
    }
  }
  if (fault) {
    (void)spool_.Sync();  // evidence: also over a power cut
  }
}

Result<JsonObject> Telemetry::NextBatch() {
  const std::lock_guard lock(mutex_);
  urgent_ = false;
  RINGFENCE_ASSIGN(const auto records,
                   spool_.Peek(kBatchRecordsMax, kBatchBytesMax, surroundings_.Now()));
  JsonArray list;
  for (const sense::SpooledRecord& one : records) {
    RINGFENCE_ASSIGN(Json record, ParseJson(one.json, sense::kRecordBytesMax));
    record.get_object()["seq"] = static_cast<std::int64_t>(one.sequence);
    list.emplace_back(std::move(record));
  }
  JsonArray readings;
  for (const gpu::Reading* reading : digest_.Latest(kQuietMax)) {
    readings.emplace_back(gpu::ReadingToJson(*reading));
  }
  const std::uint64_t after = records.empty() ? 0 : records.back().sequence + 1;
  return JsonObject{{"epoch", spool_.epoch()},
                    {"records", std::move(list)},
                    {"waiting", static_cast<std::int64_t>(after == 0 ? 0 : spool_.next() - after)},
                    {"read", digest_.last_line().time_since_epoch().count()},
                    {"readings", std::move(readings)},
                    {"blind", blind_}};
}

Status Telemetry::TakeAnswer(const Json& answer) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(answer));
  RINGFENCE_ASSIGN(const std::int64_t next, reader.Int("next", 0, INT64_MAX));
  RINGFENCE_ASSIGN(const std::int64_t every, reader.Int("every_ms", 1000, 3'600'000));
  const std::lock_guard lock(mutex_);
  every_ = Milliseconds(every);
  return spool_.Acknowledge(static_cast<std::uint64_t>(next));
}

void Telemetry::Deliver(const std::stop_token& stop) {
  Link link(surroundings_);
  auto due = surroundings_.Steady();
  while (!stop.stop_requested()) {
    bool now = surroundings_.Steady() >= due;
    {
      const std::lock_guard lock(mutex_);
      now = now || urgent_;
    }
    if (!now) {
      surroundings_.Pause(stop, kLook);
      continue;
    }
    const auto batch = NextBatch();
    const auto answer = batch.has_value() ? link.Send("POST", "/v1/agent/telemetry", *batch)
                                          : Result<Json>(batch.error());
    const Status taken = answer.has_value() ? TakeAnswer(*answer) : Status(answer.error());
    if (!taken.has_value()) {
      os::Log(os::Level::kWarning, "telemetry_not_delivered", {{"why", taken.error().message}});
      surroundings_.Pause(stop, kDeliverEvery);
      continue;
    }
    const bool more = batch->at("waiting") != 0;
    due = surroundings_.Steady() + (more ? std::chrono::seconds(0) : kDeliverEvery);
  }
}

}  // namespace ringfence::agent
