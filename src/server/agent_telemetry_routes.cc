// What nodes' GPUs say: events for detection, readings for people, and faults that take a GPU out
// of use. Each record is taken once, by its number in the node's spool.

#include <algorithm>
#include <map>

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

struct Delivered {
  std::int64_t sequence = 0;
  Result<TelemetryRecord> record;  // one that was not understood is told of, and passed over
};

struct Batch {
  std::string epoch;
  std::vector<Delivered> records;
  store::NodeTelemetry said;  // readings, and how the node is with them
  std::vector<gpu::Reading> readings;
};

Result<Delivered> ReadDelivered(const Json& json, std::size_t index) {
  const std::string path = "records[" + std::to_string(index) + "]";
  const auto* object = json.if_object();
  const Json* const number = object == nullptr ? nullptr : object->if_contains("seq");
  if (number == nullptr || !number->is_int64() || number->get_int64() < 1) {
    return Error{Code::kInvalidArgument, "must be a number from 1 on", {}, path + ".seq"};
  }
  return Delivered{number->get_int64(), ReadTelemetryRecord(json, path)};
}

Result<Batch> ReadBatch(const Json& body, const std::string& node, Timestamp now) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  Batch batch;
  RINGFENCE_ASSIGN(batch.epoch, reader.String("epoch", 64));
  RINGFENCE_ASSIGN(const auto records, reader.Array("records", kRecordsMax));
  batch.records.reserve(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    RINGFENCE_ASSIGN(Delivered one, ReadDelivered(*records[i], i));
    batch.records.push_back(std::move(one));
  }
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

void PutSaid(const Batch& batch, store::NodeTelemetry& known) {
  known.waiting = batch.said.waiting;
  known.heard = batch.said.heard;
  known.read = batch.said.read;
  known.blind = batch.said.blind;
  known.readings = batch.said.readings;
}

// Whose each GPU of a batch is.
using Contexts = std::map<std::string, RecordContext, std::less<>>;

// Of a GPU with several leases, a process is in one's box.
std::string ContextKey(const TelemetryRecord& record) {
  return record.kind == "process" ? record.gpu + " " + record.process.lease : record.gpu;
}

Result<Contexts> ContextsOf(store::Connection& db, const Batch& batch, const std::string& node,
                            Timestamp now) {
  Contexts contexts;
  for (const Delivered& one : batch.records) {
    if (!one.record.has_value() || contexts.contains(ContextKey(*one.record))) {
      continue;
    }
    RecordContext context{node, {}, {}, {}, now};
    const auto gpu = one.record->gpu.empty() ? Error{Code::kNotFound, "none"}
                                             : store::GetGpu(db, one.record->gpu);
    if (gpu.has_value() && gpu->node == node && !gpu->lease.empty()) {
      RINGFENCE_ASSIGN(const model::Lease lease, store::GetLease(db, gpu->lease));
      context.lease = lease.id;
      context.tenant = lease.request.tenant.text();
      context.principal = lease.principal;
    }
    if (gpu.has_value() && gpu->state == model::GpuState::kShared &&
        one.record->kind == "process" && !one.record->process.lease.empty()) {
      const auto lease = store::GetLease(db, one.record->process.lease);
      if (lease.has_value() && lease->request.share.has_value() && lease->node == node &&
          !lease->gpus.empty() && lease->gpus.front() == gpu->uuid) {
        context.lease = lease->id;
        context.tenant = lease->request.tenant.text();
        context.principal = lease->principal;
      }
    }
    contexts.emplace(ContextKey(*one.record), std::move(context));
  }
  return contexts;
}

// What stands in the records that decides what becomes of a batch.
struct Standing {
  store::NodeTelemetry known;
  Contexts contexts;

  bool SameAs(const Standing& other) const {
    const auto same = [](const auto& a, const auto& b) {
      return a.first == b.first && a.second.lease == b.second.lease;
    };
    return known.epoch == other.known.epoch && known.next == other.known.next &&
           known.missing == other.known.missing && known.dropped == other.known.dropped &&
           known.gaps == other.known.gaps &&
           std::equal(contexts.begin(), contexts.end(), other.contexts.begin(),
                      other.contexts.end(), same);
  }
};

Result<Standing> StandingOf(store::Connection& db, const Batch& batch, const std::string& node,
                            Timestamp now) {
  Standing standing;
  RINGFENCE_ASSIGN(standing.known, store::GetTelemetry(db, node));
  RINGFENCE_ASSIGN(standing.contexts, ContextsOf(db, batch, node, now));
  return standing;
}

// What a batch becomes: made without the database, each record once, by its number.
class Draft {
 public:
  // `mapping` is null where nothing is detected.
  Draft(const Batch& batch, Standing standing, const detect::EventMapping* mapping, Timestamp now)
      : standing_(std::move(standing)),
        after_(standing_.known),
        mapping_(mapping),
        node_(batch.said.node),
        now_(now) {
    if (after_.epoch != batch.epoch) {
      if (!after_.epoch.empty()) {
        Gap(0, "the node's spool began anew: what it had not delivered is lost");
      }
      after_.epoch = batch.epoch;
      after_.next = 1;
    }
    for (const Delivered& one : batch.records) {
      Take(one);
    }
    events_ = store::EventBatch(std::move(rows_));
  }

  bool IsFor(const Standing& standing) const { return standing_.SameAs(standing); }
  const store::NodeTelemetry& after() const { return after_; }
  const store::EventBatch& events() const { return events_; }
  const std::vector<const TelemetryRecord*>& faults() const { return faults_; }

 private:
  void Take(const Delivered& one) {
    if (one.sequence < after_.next) {
      return;  // delivered before
    }
    after_.missing += one.sequence - after_.next;
    after_.next = one.sequence + 1;
    if (!one.record.has_value()) {  // kept aside: a bad one must not hold up those behind it
      Gap(1, "a record was not understood: " + one.record.error().message);
      return;
    }
    if (one.record->kind == "gap") {
      after_.dropped += one.record->dropped;
      ++after_.gaps;
    } else if (one.record->kind == "fault") {
      faults_.push_back(&*one.record);
    }
    Keep(*one.record, standing_.contexts.find(ContextKey(*one.record))->second);
  }

  void Gap(std::int64_t dropped, const std::string& why) {
    after_.dropped += dropped;
    ++after_.gaps;
    TelemetryRecord record;
    record.sequence = after_.next;
    record.time = now_;
    record.kind = "gap";
    record.dropped = dropped;
    record.why = why.substr(0, 512);
    Keep(record, {node_, {}, {}, {}, now_});
  }

  void Keep(const TelemetryRecord& record, const RecordContext& context) {
    if (mapping_ != nullptr) {
      detect::LiveEvent event = EventOf(record, context, after_.epoch, *mapping_);
      rows_.push_back(RowOf(event, 0));
    }
  }

  const Standing standing_;
  store::NodeTelemetry after_;
  const detect::EventMapping* const mapping_;
  const std::string node_;
  const Timestamp now_;
  std::vector<store::EventRow> rows_;
  std::vector<const TelemetryRecord*> faults_;
  store::EventBatch events_;
};

// Takes GPUs out of use, inside one transaction.
class FaultTaker {
 public:
  FaultTaker(const Call& call, store::Connection& db)
      : call_(call), db_(db), now_(call.core.Now()) {}
  const std::vector<std::string>& touched() const { return touched_; }

  // Nothing but us holds a share to its cap where the driver has none.
  Status EndBreach(Breach breach) {
    audit::Entry entry =
        call_.core.StepEntry(ActorOf(call_.caller), "lease.over_share", breach.lease);
    entry.result = "error";
    entry.detail["reason"] = breach.why;
    RINGFENCE_TRY(Core::Record(db_, entry));
    return EndLease(breach.lease, breach.why);
  }

  // Out of use until an operator lets it back: `ringfence gpu scrub`.
  Status Take(const TelemetryRecord& record) {
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

 private:
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
  const Timestamp now_;
  std::vector<std::string> touched_;  // leases
};

// What a delivery left behind.
struct Taken {
  store::NodeTelemetry known;
  std::int64_t events = 0;
  std::vector<std::string> touched;
};

// Everything in one transaction; what takes time is done before it, on what the records said then,
// and again inside only if they say something else by now.
Result<Taken> Store(const Call& call, const Batch& batch) {
  Core& core = call.core;
  const std::string& node = call.caller.principal;
  const Timestamp now = core.Now();
  const detect::EventMapping* const mapping =
      core.detector() == nullptr ? nullptr : &core.detector()->mapping();
  Standing standing;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(standing, StandingOf(db, batch, node, now));
    return {};
  }));
  const Draft ready(batch, std::move(standing), mapping, now);
  Taken taken;
  RINGFENCE_TRY(core.Change([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(Standing by_now, StandingOf(db, batch, node, now));
    std::optional<Draft> again;
    if (!ready.IsFor(by_now)) {
      again.emplace(batch, std::move(by_now), mapping, now);
    }
    const Draft& draft = again.has_value() ? *again : ready;
    taken.events = draft.events().size();
    if (taken.events > 0) {
      RINGFENCE_ASSIGN(store::Detection detection, store::GetDetection(db));
      RINGFENCE_TRY(store::InsertEvents(db, detection, draft.events()));
      RINGFENCE_TRY(store::PutDetection(db, detection));
    }
    FaultTaker faults(call, db);
    for (const TelemetryRecord* const fault : draft.faults()) {
      RINGFENCE_TRY(faults.Take(*fault));
    }
    RINGFENCE_ASSIGN(const auto now_over, BreachesOf(db, node, batch.readings));
    for (const Breach& breach : now_over) {
      RINGFENCE_TRY(faults.EndBreach(breach));
    }
    taken.touched = faults.touched();
    taken.known = draft.after();
    PutSaid(batch, taken.known);
    return store::PutTelemetry(db, taken.known);
  }));
  taken.known.stored = now;
  return taken;
}

Result<net::Response> TakeTelemetry(const Call& call) {
  Core& core = call.core;
  const std::string& node = call.caller.principal;
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(const Batch batch, ReadBatch(body, node, core.Now()));
  const auto before = core.telemetry().Get(node);
  std::vector<Breach> breaches;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(breaches, BreachesOf(db, node, batch.readings));
    return {};
  }));
  const bool only_readings = breaches.empty() && batch.records.empty() && before.has_value() &&
                             before->epoch == batch.epoch &&
                             core.Now() - before->stored < kWriteEvery;
  Taken taken;
  if (only_readings) {
    taken.known = *before;
    PutSaid(batch, taken.known);
  } else {
    RINGFENCE_ASSIGN(taken, Store(call, batch));
  }
  core.telemetry().Set(taken.known);
  if (taken.events > 0) {
    core.NotifyEvents();
    core.detector()->Wake();
  }
  for (const std::string& lease : taken.touched) {
    core.NotifyLease(lease);
    core.NotifyWork(node);
  }
  const Milliseconds every =
      core.detector() == nullptr ? kEveryDefault : core.detector()->telemetry_every();
  return net::Response::OfJson(200,
                               JsonObject{{"next", taken.known.next}, {"every_ms", every.count()}});
}

}  // namespace

void AgentTelemetry(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return TakeTelemetry(call); });
}

}  // namespace ringfence::server
