// What nodes' GPUs say: events for detection, readings for people, and faults that take a GPU out
// of use. Each record is taken once, by its number in the node's spool.

#include <algorithm>

#include "detect/live_event.h"
#include "fleet/gpu_fault.h"
#include "gpu/limits.h"
#include "gpu/readings.h"
#include "lease/life.h"
#include "server/routes.h"
#include "server/shared_gpus.h"
#include "server/telemetry_events.h"
#include "store/telemetry_records.h"

namespace ringfence::server {
namespace {

constexpr std::size_t kRecordsMax = 1024;
constexpr Milliseconds kWriteEvery = std::chrono::seconds(10);  // where nothing new is to be kept
constexpr Milliseconds kEveryDefault = std::chrono::seconds(60);

struct Batch {
  std::string epoch;
  std::vector<const Json*> records;
  store::NodeTelemetry said;  // readings, and how the node is with them
  std::vector<gpu::Reading> readings;
};

Result<Batch> ReadBatch(const Json& body, const std::string& node, Timestamp now) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  Batch batch;
  RINGFENCE_ASSIGN(batch.epoch, reader.String("epoch", 64));
  RINGFENCE_ASSIGN(batch.records, reader.Array("records", kRecordsMax));
  batch.said.node = node;
  batch.said.heard = now;
  RINGFENCE_ASSIGN(batch.said.waiting, reader.Int("waiting", 0, INT64_MAX));
  RINGFENCE_ASSIGN(const std::int64_t read, reader.Int("read", 0, 1LL << 53U));
  batch.said.read = Timestamp(Milliseconds(read));
  RINGFENCE_ASSIGN(batch.said.blind, reader.StringOr("blind", "", 512));
  RINGFENCE_ASSIGN(const auto readings, reader.Array("readings", gpu::kGpusMax));
  JsonArray kept;
  for (const Json* one : readings) {
    RINGFENCE_ASSIGN(const gpu::Reading reading, gpu::ReadingFromJson(*one, "readings[]"));
    kept.emplace_back(gpu::ReadingToJson(reading));
    batch.readings.push_back(reading);
  }
  batch.said.readings = CanonicalJson(kept);
  RINGFENCE_TRY(reader.Finish());
  return batch;
}

// Takes the batch inside one transaction; made anew when that is tried again.
class Taker {
 public:
  Taker(const Call& call, store::Connection& db, store::NodeTelemetry& known)
      : call_(call), db_(db), known_(known), now_(call.core.Now()) {}

  Status Take(const Batch& batch) {
    Detector* const detector = call_.core.detector();
    mapping_ = detector == nullptr ? nullptr : &detector->mapping();
    if (mapping_ != nullptr) {
      RINGFENCE_ASSIGN(detection_, store::GetDetection(db_));
    }
    if (known_.epoch != batch.epoch) {
      if (!known_.epoch.empty()) {
        RINGFENCE_TRY(Gap(0, "the node's spool began anew: what it had not delivered is lost"));
      }
      known_.epoch = batch.epoch;
      known_.next = 1;
    }
    for (std::size_t i = 0; i < batch.records.size(); ++i) {
      RINGFENCE_TRY(TakeOne(*batch.records[i], "records[" + std::to_string(i) + "]"));
    }
    if (events_ > 0) {
      RINGFENCE_TRY(store::PutDetection(db_, detection_));
    }
    return {};
  }
  // Nothing but us holds a share to its cap where the driver has none.
  Status EndBreach(Breach breach) {
    audit::Entry entry =
        call_.core.StepEntry(ActorOf(call_.caller), "lease.over_share", breach.lease);
    entry.result = "error";
    entry.detail["reason"] = breach.why;
    RINGFENCE_TRY(Core::Record(db_, entry));
    return EndLease(breach.lease, breach.why);
  }
  std::size_t events() const { return events_; }
  const std::vector<std::string>& touched() const { return touched_; }

 private:
  Status TakeOne(const Json& json, const std::string& path) {
    const auto* object = json.if_object();
    const Json* const number = object == nullptr ? nullptr : object->if_contains("seq");
    if (number == nullptr || !number->is_int64() || number->get_int64() < 1) {
      return Error{Code::kInvalidArgument, "must be a number from 1 on", {}, path + ".seq"};
    }
    const std::int64_t sequence = number->get_int64();
    if (sequence < known_.next) {
      return {};  // delivered before
    }
    known_.missing += sequence - known_.next;
    known_.next = sequence + 1;
    const auto record = ReadTelemetryRecord(json, path);
    if (!record.has_value()) {  // kept aside: one bad record must not hold up those behind it
      return Gap(1, "a record was not understood: " + record.error().message);
    }
    if (record->kind == "gap") {
      known_.dropped += record->dropped;
      ++known_.gaps;
      return Keep(*record, {call_.caller.principal, {}, {}, {}, now_});
    }
    RecordContext context{call_.caller.principal, {}, {}, {}, now_};
    const auto gpu = store::GetGpu(db_, record->gpu);
    if (gpu.has_value() && gpu->node == call_.caller.principal && !gpu->lease.empty()) {
      RINGFENCE_ASSIGN(const model::Lease lease, store::GetLease(db_, gpu->lease));
      context.lease = lease.id;
      context.tenant = lease.request.tenant.text();
      context.principal = lease.principal;
    }
    if (gpu.has_value() && gpu->state == model::GpuState::kShared && record->kind == "process" &&
        !record->process.lease.empty()) {  // of a GPU with several leases: whose box it is in
      const auto lease = store::GetLease(db_, record->process.lease);
      if (lease.has_value() && lease->request.share.has_value() &&
          lease->node == call_.caller.principal && !lease->gpus.empty() &&
          lease->gpus.front() == gpu->uuid) {
        context.lease = lease->id;
        context.tenant = lease->request.tenant.text();
        context.principal = lease->principal;
      }
    }
    RINGFENCE_TRY(Keep(*record, context));
    return record->kind == "fault" ? TakeFault(*record) : Status();
  }

  Status Gap(std::int64_t dropped, const std::string& why) {
    known_.dropped += dropped;
    ++known_.gaps;
    TelemetryRecord record;
    record.sequence = known_.next;
    record.time = now_;
    record.kind = "gap";
    record.dropped = dropped;
    record.why = why.substr(0, 512);
    return Keep(record, {call_.caller.principal, {}, {}, {}, now_});
  }

  Status Keep(const TelemetryRecord& record, const RecordContext& context) {
    if (mapping_ == nullptr) {
      return {};
    }
    detect::LiveEvent event = EventOf(record, context, known_.epoch, *mapping_);
    ++events_;
    return store::InsertEvent(db_, detection_, RowOf(event, detection_.next));
  }

  // Out of use until an operator lets it back: `ringfence gpu scrub`.
  Status TakeFault(const TelemetryRecord& record) {
    const fleet::FaultVerdict verdict = fleet::Judge(record.fault);
    auto gpu = store::GetGpu(db_, record.gpu);
    if (!verdict.quarantines || !gpu.has_value() || gpu->node != call_.caller.principal ||
        !gpu->fault.empty()) {
      return {};
    }
    const std::string fault = verdict.what.substr(0, 512) + " (" + FormatTime(record.time) + ")";
    RINGFENCE_TRY(Distrust(*gpu, fault, record));
    RINGFENCE_ASSIGN(auto slices, store::GpusOf(db_, gpu->node));
    for (model::Gpu& slice : slices) {
      if (slice.parent == gpu->uuid && slice.fault.empty() &&
          slice.state != model::GpuState::kLost) {
        RINGFENCE_TRY(Distrust(slice, fault, record));
      }
    }
    return {};
  }

  Status Distrust(model::Gpu& gpu, const std::string& fault, const TelemetryRecord& record) {
    gpu.fault = fault;
    audit::Entry entry = call_.core.NewEntry(ActorOf(call_.caller), "gpu.fault");
    entry.node = gpu.node;
    entry.gpus = {gpu.uuid};
    entry.result = "error";
    entry.detail["why"] = gpu.fault;
    entry.detail["kind"] = std::string(gpu::Name(record.fault.kind));
    if (record.fault.kind == gpu::FaultKind::kXid) {
      entry.detail["xid"] = static_cast<std::int64_t>(record.fault.xid);
    }
    entry.detail["evidence"] = record.fault.why;
    entry.detail["state_before"] = std::string(Name(gpu.state));
    if (gpu.state == model::GpuState::kFree || gpu.state == model::GpuState::kDirty ||
        gpu.state == model::GpuState::kCut) {
      lease::Quarantine(gpu, gpu.fault);
    }
    RINGFENCE_TRY(store::PutGpu(db_, gpu));
    if (gpu.state == model::GpuState::kLeased) {
      RINGFENCE_ASSIGN(model::Lease lease, store::GetLease(db_, gpu.lease));
      entry.lease = lease.id;
      entry.tenant = lease.request.tenant.text();
      RINGFENCE_TRY(Core::Record(db_, entry));
      return EndLease(lease, gpu.uuid + ": " + gpu.fault);
    }
    RINGFENCE_TRY(Core::Record(db_, entry));
    if (gpu.state != model::GpuState::kShared) {
      return {};
    }
    RINGFENCE_ASSIGN(auto open, store::OpenLeasesOf(db_, gpu.node));
    for (model::Lease& lease : open) {
      if (lease.request.share.has_value() && lease.gpus.front() == gpu.uuid) {
        RINGFENCE_TRY(EndLease(lease, gpu.uuid + ": " + gpu.fault));
      }
    }
    return {};
  }

  // Its GPU is quarantined once it is scrubbed, or could not be.
  Status EndLease(model::Lease& lease, const std::string& why) {
    if (lease.end_requested || model::IsOver(lease.state) ||
        lease.state == model::LeaseState::kScrubbing) {
      return {};
    }
    lease.end_requested = true;
    lease.reason = why.substr(0, 1024);
    if (lease.state == model::LeaseState::kPlaced) {  // no node has it yet: nothing was touched
      RINGFENCE_TRY(ReleaseUntouched(db_, lease));
      lease.outcome = "failed";
      lease.ended = now_;
      RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kClosed, now_, lease.reason));
    } else if (lease.state == model::LeaseState::kActive) {
      RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kEnding, now_, lease.reason));
    }
    lease.updated = now_;
    RINGFENCE_TRY(store::UpdateLease(db_, lease));
    touched_.push_back(lease.id);
    return Core::Record(db_, call_.core.StepEntry(ActorOf(call_.caller), "lease.end", lease));
  }

  const Call& call_;
  store::Connection& db_;
  store::NodeTelemetry& known_;
  const Timestamp now_;
  const detect::EventMapping* mapping_ = nullptr;  // null: nothing is detected here
  store::Detection detection_;
  std::size_t events_ = 0;
  std::vector<std::string> touched_;
};

Result<net::Response> TakeTelemetry(const Call& call) {
  Core& core = call.core;
  const std::string& node = call.caller.principal;
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(const Batch batch, ReadBatch(body, node, core.Now()));
  const auto before = core.telemetry().Get(node);
  store::NodeTelemetry known;
  std::vector<Breach> breaches;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(breaches, BreachesOf(db, node, batch.readings));
    return {};
  }));
  const bool only_readings = breaches.empty() && batch.records.empty() && before.has_value() &&
                             before->epoch == batch.epoch &&
                             core.Now() - before->stored < kWriteEvery;
  if (only_readings) {
    known = *before;
  }
  const auto put_said = [&] {
    known.waiting = batch.said.waiting;
    known.heard = batch.said.heard;
    known.read = batch.said.read;
    known.blind = batch.said.blind;
    known.readings = batch.said.readings;
  };
  std::size_t events = 0;
  std::vector<std::string> touched;
  if (!only_readings) {
    RINGFENCE_TRY(core.Change([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(known, store::GetTelemetry(db, node));
      Taker taker(call, db, known);
      RINGFENCE_TRY(taker.Take(batch));
      RINGFENCE_ASSIGN(const auto now_over, BreachesOf(db, node, batch.readings));
      for (const Breach& breach : now_over) {
        RINGFENCE_TRY(taker.EndBreach(breach));
      }
      put_said();
      RINGFENCE_TRY(store::PutTelemetry(db, known));
      events = taker.events();
      touched = taker.touched();
      return {};
    }));
    known.stored = core.Now();
  }
  put_said();
  core.telemetry().Set(known);
  if (events > 0) {
    core.NotifyEvents();
    core.detector()->Wake();
  }
  for (const std::string& lease : touched) {
    core.NotifyLease(lease);
    core.NotifyWork(node);
  }
  const Milliseconds every =
      core.detector() == nullptr ? kEveryDefault : core.detector()->telemetry_every();
  return net::Response::OfJson(200, JsonObject{{"next", known.next}, {"every_ms", every.count()}});
}

}  // namespace

void AgentTelemetry(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return TakeTelemetry(call); });
}

}  // namespace ringfence::server
