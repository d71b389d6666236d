#include "server/queue.h"

#include <vector>

#include "lease/life.h"
#include "lease/slice_placement.h"
#include "os/log.h"
#include "server/placing.h"
#include "store/queue_records.h"

namespace ringfence::server {
namespace {

constexpr std::int64_t kQueueMax = 1000;
constexpr std::int64_t kQueuePerTenantMax = 100;
// Somebody who waits asks at least every 20 s; after this they are gone. A server that was away
// itself gives them as long to come back.
constexpr Milliseconds kBeatEvery = std::chrono::seconds(15);
constexpr Milliseconds kAbandonedAfter = std::chrono::minutes(2);

const audit::Actor kSelf{"ringfence", "system", "", ""};

bool HelpsToWait(const Error& why) {
  return why.code == Code::kUnavailable || why.code == Code::kExhausted;
}

// "" while it may go on waiting.
Result<std::string> WhyOver(Core& core, store::Connection& db, const model::Lease& lease) {
  const Timestamp now = core.Now();
  if (now >= lease.created + lease.request.wait) {
    return "waited " + FormatDuration(lease.request.wait) + " in vain: " + lease.reason;
  }
  const policy::Action action = lease.request.runtime == model::LeaseRuntime::kBox
                                    ? policy::Action::kLeaseRequest
                                    : policy::Action::kLeaseHold;
  const policy::Decision decision =
      core.policy()->Decide({lease.principal, action, lease.request.tenant, {now, {}}});
  if (!decision.allowed) {
    return "may not run any more: " + decision.reason;
  }
  if (lease.request.attended) {
    RINGFENCE_ASSIGN(const auto beat, store::GetBeat(db, lease.id));
    const Timestamp heard = std::max(beat.value_or(lease.created), core.started());
    if (now - heard > kAbandonedAfter) {
      return std::string("whoever waited for it has gone");
    }
  }
  return std::string();
}

Status Close(Core& core, store::Connection& db, model::Lease& lease, const std::string& reason) {
  RINGFENCE_TRY(LeaveQueue(core, db, lease, reason));
  RINGFENCE_TRY(store::UpdateLease(db, lease));
  audit::Entry entry = core.StepEntry(kSelf, "lease.close", lease);
  entry.time = *lease.ended;
  entry.detail["reason"] = reason.substr(0, 1024);
  return Core::Record(db, entry);
}

// True when something about the lease changed that those who look at it should know.
Result<bool> ServeOne(Core& core, store::Connection& db, model::Lease& lease) {
  RINGFENCE_ASSIGN(const std::string over, WhyOver(core, db, lease));
  if (!over.empty()) {
    RINGFENCE_TRY(Close(core, db, lease, over));
    return true;
  }
  std::string image = lease.image;
  const auto placement = PlaceInside(core, db, lease.request, image, lease.id);
  if (!placement.has_value()) {
    const std::string& why = placement.error().message;
    if (!HelpsToWait(placement.error())) {
      RINGFENCE_TRY(Close(core, db, lease, why));
      return true;
    }
    if (lease.reason != why) {
      lease.reason = why;
      RINGFENCE_TRY(store::UpdateLease(db, lease));
    }
    return false;
  }
  if (image != lease.image) {
    RINGFENCE_TRY(Close(core, db, lease, "its image's name means another image now"));
    return true;
  }
  lease.reason.clear();
  RINGFENCE_TRY(HoldPlace(core, db, lease, *placement));
  RINGFENCE_TRY(store::DropBeat(db, lease.id));
  RINGFENCE_TRY(store::UpdateLease(db, lease));
  return true;
}

}  // namespace

Status MayWait(Core& core, store::Connection& db, const model::LeaseRequest& request,
               const Error& why) {
  if (!HelpsToWait(why) || request.probe.has_value()) {
    return why;
  }
  RINGFENCE_ASSIGN(const auto gpus, store::ListGpus(db));
  const std::uint64_t millis = lease::LeastMillis(request, gpus);
  for (const policy::Quota& quota : core.policy()->QuotasOver(request.tenant)) {
    if (millis > std::uint64_t{quota.gpus_max} * 1000) {
      return why;  // no waiting makes a quota larger
    }
  }
  if (request.wait.count() == 0) {
    Error error = why;
    error.hint += "; --wait joins the queue";
    return error;
  }
  RINGFENCE_ASSIGN(const std::int64_t all, store::CountQueued(db));
  RINGFENCE_ASSIGN(const std::int64_t own, store::CountQueued(db, request.tenant.text()));
  if (all >= kQueueMax || own >= kQueuePerTenantMax) {
    return Error{Code::kExhausted,
                 "the queue is full: " + std::to_string(all) + " requests wait, " +
                     std::to_string(own) + " of them for " + request.tenant.text(),
                 "at most " + std::to_string(kQueueMax) + " may wait, " +
                     std::to_string(kQueuePerTenantMax) + " of one tenant; try again later"};
  }
  return {};
}

Status JoinQueue(Core& core, store::Connection& db, model::Lease& lease, const Error& why) {
  const Timestamp now = core.Now();
  RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kQueued, now, why.message));
  lease.reason = why.message;
  audit::Entry entry = core.StepEntry(kSelf, "lease.queue", lease);
  entry.detail["reason"] = why.message.substr(0, 1024);
  entry.detail["wait_ms"] = lease.request.wait.count();
  RINGFENCE_TRY(Core::Record(db, entry));
  if (lease.request.attended) {
    RINGFENCE_TRY(store::PutBeat(db, lease.id, now));
  }
  return store::InsertLease(db, lease);
}

Status LeaveQueue(Core& core, store::Connection& db, model::Lease& lease,
                  const std::string& reason) {
  lease.outcome = "failed";
  lease.reason = reason;
  lease.ended = core.Now();
  RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kClosed, *lease.ended, reason));
  return store::DropBeat(db, lease.id);
}

Status StillWaits(Core& core, const std::string& id, const std::string& principal) {
  bool due = false;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const model::Lease lease, store::GetLease(db, id));
    RINGFENCE_ASSIGN(const auto beat, store::GetBeat(db, id));
    due = lease.state == model::LeaseState::kQueued && lease.request.attended &&
          lease.principal == principal && beat.has_value() && core.Now() - *beat > kBeatEvery;
    return {};
  }));
  if (!due) {
    return {};
  }
  return core.database().Write(
      [&](store::Connection& db) { return store::PutBeat(db, id, core.Now()); });
}

Status ServeQueue(Core& core) {
  bool any = false;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(any, store::AnyQueued(db));
    return {};
  }));
  if (!any) {
    return {};
  }
  std::vector<model::Lease> changed;
  RINGFENCE_TRY(core.Change([&](store::Connection& db) -> Status {
    changed.clear();
    RINGFENCE_ASSIGN(auto open, store::OpenLeases(db));
    for (model::Lease& lease : open) {
      if (lease.state != model::LeaseState::kQueued) {
        continue;
      }
      RINGFENCE_ASSIGN(const bool told, ServeOne(core, db, lease));
      if (told) {
        changed.push_back(lease);
      }
    }
    return {};
  }));
  for (const model::Lease& lease : changed) {
    if (!lease.node.empty()) {
      core.NotifyWork(lease.node);
    }
    core.NotifyLease(lease.id);
  }
  return {};
}

void ServeQueueAfter(Core& core) {
  if (const Status served = ServeQueue(core); !served.has_value()) {
    os::Log(os::Level::kWarning, "queue_not_served", {{"why", served.error().message}});
  }
}

}  // namespace ringfence::server
