// Leases: asking for one, seeing it, ending it, its output and its receipts.

#include <algorithm>

#include "base/encoding.h"
#include "crypto/dsse.h"
#include "crypto/random.h"
#include "isolate/grant.h"
#include "lease/life.h"
#include "os/failpoint.h"
#include "server/placing.h"
#include "server/queue.h"
#include "server/routes.h"
#include "server/shared_gpus.h"
#include "store/queue_records.h"
#include "wire/lease_json.h"

namespace ringfence::server {
namespace {

constexpr std::int64_t kWaitMsMax = 30000;
constexpr std::int64_t kScanRows = 500;
constexpr const char* kHidden = "(hidden)";

// As people may see it: of the environment only the names, as values are where secrets hide.
JsonObject ViewOf(const model::Lease& lease) {
  model::Lease shown = lease;
  for (auto& [name, value] : shown.request.environment) {
    value = kHidden;
  }
  return wire::LeaseToJson(shown);
}

// How many come before a lease that waits, itself counted.
Status AddPosition(Core& core, const model::Lease& lease, JsonObject& view) {
  if (lease.state != model::LeaseState::kQueued) {
    return {};
  }
  return core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(view["queue_position"], store::QueuePosition(db, lease.id));
    return {};
  });
}

// The same from the stored text, which is written out as it is where nothing is to be hidden. A
// name in JSON is the only place for these bytes: inside a string the quotes would be escaped.
Result<net::Response> ViewOfText(Core& core, const store::LeaseText& text) {
  constexpr std::string_view kName = "\"env\":";
  constexpr std::string_view kNothing = "{}";
  const std::size_t at = text.json.find(kName);
  net::Response response;
  if (at != std::string::npos && text.state != Name(model::LeaseState::kQueued) &&
      text.json.compare(at + kName.size(), kNothing.size(), kNothing) == 0) {
    response.body = text.json;
    return response;
  }
  RINGFENCE_ASSIGN(const Json json, ParseJson(text.json, wire::kLeaseJsonBytesMax));
  RINGFENCE_ASSIGN(const model::Lease lease, wire::LeaseFromJson(json));
  JsonObject view = ViewOf(lease);
  RINGFENCE_TRY(AddPosition(core, lease, view));
  return net::Response::OfJson(200, view);
}

// Reads a lease and asks policy; ids cannot be guessed, so that one exists may be known.
Result<model::Lease> LeaseFor(const Call& call, policy::Action action) {
  const std::string id = call.params.find("lease")->second;
  model::Lease lease;
  RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(lease, store::GetLease(db, id));
    return {};
  }));
  // A probe's box holds nobody's secrets: whoever may prove may see it.
  if (lease.request.probe.has_value() &&
      Decide(call, policy::Action::kNodeProve, model::TenantPath::Root()).allowed) {
    return lease;
  }
  RINGFENCE_TRY(Authorize(call, action, lease.request.tenant, lease.id));
  return lease;
}

// The tenant of a request must exist; a near miss is named. Whoever may not see tenants there is
// not told which exist: for them, `action` is denied all the same.
Status KnownTenant(const Call& call, const model::TenantPath& tenant, policy::Action action) {
  const auto policy = call.core.policy();
  if (policy->FindTenant(tenant) != nullptr) {
    return {};
  }
  const auto sees = [&](const model::TenantPath& path) {
    return Decide(call, policy::Action::kTenantRead, path).allowed;
  };
  const auto close = policy->ClosestTenant(tenant.text());
  const auto near = close ? model::TenantPath::Create(*close) : Result<model::TenantPath>(tenant);
  const bool may_hint = close && near.has_value() && sees(*near);
  if (!may_hint && !sees(model::TenantPath::Root()) && !sees(tenant)) {
    return Authorize(call, action, tenant);
  }
  return Error{Code::kNotFound, "no tenant \"" + tenant.text() + "\"",
               may_hint ? "did you mean \"" + *close + "\"?" : "`ringfence tenant list` shows them",
               "tenant"};
}

// Each use of an exception is an entry of its own: who, under whose approval, why and until when.
Status RecordException(const Call& call, store::Connection& db, const model::Lease& lease) {
  if (lease.request.box.exception.empty()) {
    return {};
  }
  RINGFENCE_ASSIGN(const policy::BoxException exception,
                   policy::FindException(*call.core.policy(), lease.request.tenant,
                                         lease.request.box.exception, call.core.Now()));
  audit::Entry entry = call.core.StepEntry(ActorOf(call.caller), "exception.use", lease);
  Note(call, entry);
  JsonArray what;
  for (const std::string& one : exception.what()) {
    what.emplace_back(one);
  }
  entry.detail["exception"] = exception.name;
  entry.detail["what"] = std::move(what);
  entry.detail["reason"] = exception.reason;
  entry.detail["requested_by"] = exception.requested_by;
  entry.detail["approved_by"] = exception.approved_by;
  entry.detail["until"] = FormatTime(exception.until);
  return Core::Record(db, entry);
}

void NoteSlice(const model::LeaseRequest& request, audit::Entry& entry) {
  if (!request.profile.empty()) {
    entry.detail["profile"] = request.profile;
  }
  if (request.gpu_memory_bytes != 0) {
    entry.detail["gpu_memory_bytes"] = static_cast<std::int64_t>(request.gpu_memory_bytes);
  }
}

// requested and admitted, each with its entry, in the caller's transaction.
Status Admit(const Call& call, store::Connection& db, model::Lease& lease,
             const policy::Decision& decision) {
  Core& core = call.core;
  const audit::Actor actor = ActorOf(call.caller);
  const Timestamp now = core.Now();
  lease.created = now;
  lease.updated = now;
  lease.steps.push_back({model::LeaseState::kRequested, now, {}});
  audit::Entry requested = core.StepEntry(actor, "lease.request", lease);
  Note(core, decision, requested);
  requested.detail["gpus"] = lease.request.gpus;
  NoteSlice(lease.request, requested);
  if (lease.request.runtime == model::LeaseRuntime::kBox) {
    requested.detail["program"] = lease.request.command.front().substr(0, 256);
  } else {
    requested.detail["runtime"] = std::string(Name(lease.request.runtime));
  }
  requested.detail["timeout_ms"] = lease.request.timeout.count();
  if (lease.request.share.has_value()) {
    requested.detail["share"] = std::string(Name(lease.request.share->isolation));
    requested.detail["share_bytes"] = static_cast<std::int64_t>(lease.request.share->memory_bytes);
  }
  if (!lease.image.empty()) {
    requested.detail["image"] = lease.image;
  }
  if (lease.request.probe.has_value()) {
    JsonArray walls;
    for (const std::string& wall : lease.request.probe->walls_away) {
      walls.emplace_back(wall);
    }
    requested.detail["probe"] = lease.request.probe->name;
    requested.detail["walls_away"] = std::move(walls);
  }
  if (!lease.request.box.mounts.empty()) {
    JsonArray mounts;
    for (const model::MountRequest& mount : lease.request.box.mounts) {
      mounts.emplace_back(mount.name + ":" + mount.path + (mount.writable ? ":rw" : ""));
    }
    requested.detail["mounts"] = std::move(mounts);
  }
  if (!lease.request.box.devices.empty()) {
    JsonArray devices;
    for (const std::string& device : lease.request.box.devices) {
      devices.emplace_back(device);
    }
    requested.detail["devices"] = std::move(devices);
  }
  RINGFENCE_TRY(Core::Record(db, requested));
  RINGFENCE_TRY(RecordException(call, db, lease));

  const audit::Actor self{"ringfence", "system", "", ""};
  RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kAdmitted, now));
  return Core::Record(db, core.StepEntry(self, "lease.admit", lease));
}

// A request that policy allowed but that cannot be met is on record too.
Status RecordRefusal(const Call& call, const model::LeaseRequest& request,
                     const policy::Decision& decision, const Error& error) {
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "lease.request");
  entry.tenant = request.tenant.text();
  Note(call.core, decision, entry);
  entry.result = "error";
  entry.detail["gpus"] = request.gpus;
  NoteSlice(request, entry);
  entry.detail["reason"] = error.message.substr(0, 1024);
  return call.core.RecordAlone(entry);
}

Result<net::Response> Request(const Call& call) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(const model::LeaseRequest request, wire::LeaseRequestFromJson(body));
  policy::Action action = policy::Action::kNodeProve;
  if (!request.probe.has_value()) {
    // What runs on held GPUs is not boxed by us: that is for fewer people to ask for.
    action = request.runtime == model::LeaseRuntime::kBox ? policy::Action::kLeaseRequest
                                                          : policy::Action::kLeaseHold;
    RINGFENCE_TRY(KnownTenant(call, request.tenant, action));
  }
  RINGFENCE_TRY(Authorize(call, action, request.tenant));
  const policy::Decision decision = Decide(call, action, request.tenant);
  ++call.core.counters().leases_requested;
  model::Lease lease;
  RINGFENCE_FAILPOINT("server.request");
  auto response = CreateOnce(call, [&](store::Connection& db, Creation& creation) -> Status {
    lease = {};
    lease.id = crypto::RandomId("lease");
    lease.request = request;
    lease.principal = call.caller.principal;
    const auto placement = PlaceInside(call.core, db, request, lease.image);
    if (!placement.has_value()) {
      RINGFENCE_TRY(MayWait(call.core, db, request, placement.error()));
      RINGFENCE_TRY(Admit(call, db, lease, decision));
      RINGFENCE_TRY(JoinQueue(call.core, db, lease, placement.error()));
      creation.body = ViewOf(lease);
      RINGFENCE_ASSIGN(creation.body["queue_position"], store::QueuePosition(db, lease.id));
      return {};
    }
    RINGFENCE_TRY(Admit(call, db, lease, decision));
    RINGFENCE_TRY(HoldPlace(call.core, db, lease, *placement));
    RINGFENCE_TRY(store::InsertLease(db, lease));
    creation.body = ViewOf(lease);
    return {};
  });
  if (!response.has_value()) {
    if (response.error().code != Code::kConflict) {
      RINGFENCE_TRY(RecordRefusal(call, request, decision, response.error()));
    }
    return response.error();
  }
  RINGFENCE_FAILPOINT("server.requested");
  if (!lease.node.empty()) {
    call.core.NotifyWork(lease.node);
  }
  return response;
}

Result<net::Response> List(const Call& call) {
  RINGFENCE_ASSIGN(const Page page, PageOf(call.request));
  store::LeaseFilter filter;
  filter.limit = page.limit;
  RINGFENCE_ASSIGN(filter.before, IntQuery(call.request, "cursor", 0, 0, INT64_MAX));
  if (const std::string_view tenant = call.request.Query("tenant"); !tenant.empty()) {
    RINGFENCE_ASSIGN(const model::TenantPath path, model::TenantPath::Create(tenant));
    RINGFENCE_TRY(KnownTenant(call, path, policy::Action::kLeaseRead));
    filter.tenant = path.text();
  }
  const std::string_view state = call.request.Query("state");
  if (state == "open") {
    filter.open_only = true;
  } else if (!state.empty()) {
    RINGFENCE_ASSIGN(filter.state, model::ParseLeaseState(state));
  }
  JsonArray items;
  std::int64_t last = 0;
  bool more = true;
  // What the caller may not see is left out, so a page of the store can give less than a page: then
  // more is read at a time.
  while (more && static_cast<std::int64_t>(items.size()) < page.limit) {
    std::vector<store::NumberedLease> leases;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(leases, store::ListLeases(db, filter));
      return {};
    }));
    more = static_cast<std::int64_t>(leases.size()) == filter.limit;
    for (const store::NumberedLease& found : leases) {
      last = found.number;
      if (Decide(call, policy::Action::kLeaseRead, found.lease.request.tenant).allowed) {
        JsonObject view = ViewOf(found.lease);
        RINGFENCE_TRY(AddPosition(call.core, found.lease, view));
        items.emplace_back(std::move(view));
        if (static_cast<std::int64_t>(items.size()) == page.limit) {
          more = true;
          break;
        }
      }
    }
    filter.before = last;
    filter.limit = std::max(page.limit, kScanRows);
  }
  JsonObject body{{"items", std::move(items)}};
  if (more && last > 1) {
    body["next_cursor"] = std::to_string(last);
  }
  return net::Response::OfJson(200, body);
}

Result<net::Response> End(const Call& call) {
  RINGFENCE_ASSIGN(const model::Lease seen, LeaseFor(call, policy::Action::kLeaseEnd));
  const policy::Decision decision = Decide(call, policy::Action::kLeaseEnd, seen.request.tenant);
  model::Lease lease;
  RINGFENCE_TRY(call.core.Change([&](store::Connection& db) -> Status {
    Core& core = call.core;
    RINGFENCE_ASSIGN(lease, store::GetLease(db, seen.id));
    if (lease.end_requested || model::IsOver(lease.state) ||
        lease.state == model::LeaseState::kScrubbing) {
      return {};  // said before, or nothing left to end
    }
    lease.end_requested = true;
    const std::string why = "ended by " + call.caller.principal;
    if (lease.state == model::LeaseState::kQueued) {
      RINGFENCE_TRY(LeaveQueue(call.core, db, lease, why + " while it waited"));
    } else if (lease.state == model::LeaseState::kPlaced) {
      // Not handed to a node yet: its GPUs were not touched.
      RINGFENCE_TRY(ReleaseUntouched(db, lease));
      lease.outcome = "failed";
      lease.reason = why + " before it started";
      lease.ended = core.Now();
      RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kClosed, core.Now(), lease.reason));
    } else if (lease.state == model::LeaseState::kActive) {
      RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kEnding, core.Now(), why));
    }
    lease.updated = core.Now();
    RINGFENCE_TRY(store::UpdateLease(db, lease));
    audit::Entry entry = core.StepEntry(ActorOf(call.caller), "lease.end", lease);
    Note(core, decision, entry);
    entry.time = lease.ended.value_or(entry.time);
    return Core::Record(db, entry);
  }));
  RINGFENCE_FAILPOINT("server.end_asked");
  if (!lease.node.empty()) {
    call.core.NotifyWork(lease.node);
  }
  call.core.NotifyLease(lease.id);
  if (IsOver(lease.state)) {
    ServeQueueAfter(call.core);  // its place, or its GPUs, may be another's now
  }
  return net::Response::OfJson(202, ViewOf(lease));
}

struct LogView {
  store::OutputPage page;
  model::Lease lease;
  bool complete = false;
};

Result<LogView> LogsFrom(Core& core, const std::string& id, std::int64_t after) {
  LogView view;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(view.lease, store::GetLease(db, id));
    RINGFENCE_ASSIGN(view.page, store::ReadOutput(db, id, after));
    return {};
  }));
  view.complete = view.page.at_end && (view.lease.ended.has_value() || IsOver(view.lease.state));
  return view;
}

net::Response LogResponse(const LogView& view) {
  JsonArray chunks;
  for (const store::OutputChunk& chunk : view.page.chunks) {
    chunks.emplace_back(
        JsonObject{{"stream", chunk.is_error ? "stderr" : "stdout"}, {"data", Base64(chunk.data)}});
  }
  JsonObject body{{"chunks", std::move(chunks)},
                  {"next_cursor", std::to_string(view.page.next)},
                  {"complete", view.complete},
                  {"state", std::string(Name(view.lease.state))}};
  if (view.page.dropped > 0) {
    body["dropped_bytes"] = view.page.dropped;
  }
  if (view.complete) {
    body["outcome"] = view.lease.outcome;
    body["reason"] = view.lease.reason;
    if (view.lease.exit_code.has_value()) {
      body["exit_code"] = *view.lease.exit_code;
    }
  }
  return net::Response::OfJson(200, body);
}

}  // namespace

void RequestLease(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return Request(call); });
}

void ListLeases(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return List(call); });
}

void EndLease(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return End(call); });
}

void GetLease(const Call& call, const net::Responder& responder) {
  const std::string id = call.params.find("lease")->second;
  Core& core = call.core;
  const auto read = [&core, id]() -> Result<store::LeaseText> {
    store::LeaseText text;
    RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(text, store::GetLeaseText(db, id));
      return {};
    }));
    return text;
  };
  const std::string left(call.request.Query("state"));
  std::int64_t wait = 0;
  const auto first = [&]() -> Result<store::LeaseText> {
    RINGFENCE_ASSIGN(store::LeaseText text, read());
    RINGFENCE_ASSIGN(const model::TenantPath tenant, model::TenantPath::Create(text.tenant));
    RINGFENCE_TRY(Authorize(call, policy::Action::kLeaseRead, tenant, id));
    RINGFENCE_ASSIGN(wait, IntQuery(call.request, "wait_ms", 0, 0, kWaitMsMax));
    if (text.state == Name(model::LeaseState::kQueued)) {
      RINGFENCE_TRY(StillWaits(core, id, call.caller.principal));
    }
    return text;
  }();
  if (!first.has_value() || wait == 0 || left.empty() || first->state != left) {
    Answer(responder, [&] { return first.has_value() ? ViewOfText(core, *first) : first.error(); });
    return;
  }
  core.waiters().Park("lease:" + id, Milliseconds(wait), [&core, read, responder, left](bool last) {
    const auto now = read();
    if (now.has_value() && !last && now->state == left) {
      return false;
    }
    Answer(responder, [&] { return now.has_value() ? ViewOfText(core, *now) : now.error(); });
    return true;
  });
}

void GetLeaseLogs(const Call& call, const net::Responder& responder) {
  const auto lease = LeaseFor(call, policy::Action::kLeaseLogs);
  const auto wait = IntQuery(call.request, "wait_ms", 0, 0, kWaitMsMax);
  const auto from = IntQuery(call.request, "cursor", 0, 0, INT64_MAX);
  if (!lease.has_value() || !wait.has_value() || !from.has_value()) {
    responder.Send(net::Response::OfError(!lease.has_value()  ? lease.error()
                                          : !wait.has_value() ? wait.error()
                                                              : from.error()));
    return;
  }
  Core& core = call.core;  // outlives the request, which the attempt must not hold
  if (lease->state == model::LeaseState::kQueued) {
    const Status waits = StillWaits(core, lease->id, call.caller.principal);
    if (!waits.has_value()) {
      responder.Send(net::Response::OfError(waits.error()));
      return;
    }
  }
  core.waiters().Park("lease:" + lease->id, Milliseconds(*wait),
                      [&core, responder, id = lease->id, start = *from](bool last) {
                        const auto view = LogsFrom(core, id, start);
                        if (!view.has_value()) {
                          responder.Send(net::Response::OfError(view.error()));
                          return true;
                        }
                        if (!last && view->page.chunks.empty() && !view->complete) {
                          return false;
                        }
                        responder.Send(LogResponse(*view));
                        return true;
                      });
}

void GetLeaseReceipts(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const model::Lease lease, LeaseFor(call, policy::Action::kLeaseRead));
    JsonArray items;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(const auto receipts, store::ReceiptsOf(db, lease.id));
      for (const store::StoredReceipt& stored : receipts) {
        RINGFENCE_ASSIGN(const Bytes raw, FromBase64(stored.key));
        RINGFENCE_ASSIGN(const auto key, crypto::PublicKey::FromRaw(raw));
        RINGFENCE_ASSIGN(const auto receipt, isolate::OpenReceipt(key, stored.envelope));
        RINGFENCE_ASSIGN(const Json envelope,
                         ParseJson(stored.envelope, crypto::kEnvelopeBytesMax));
        items.emplace_back(JsonObject{{"id", stored.id},
                                      {"key", stored.key},
                                      {"receipt", isolate::ReceiptToJson(receipt)},
                                      {"envelope", envelope}});
      }
      return {};
    }));
    return net::Response::OfJson(200, JsonObject{{"items", std::move(items)}});
  });
}

}  // namespace ringfence::server
