// What a node is to do, and what it says it did: the server's half of a lease's life. Orders are
// derived from the records each time, so that a lost answer or a restart on either side is made
// good by asking again.

#include <algorithm>
#include <set>

#include "base/encoding.h"
#include "crypto/dsse.h"
#include "crypto/sha256.h"
#include "isolate/grant.h"
#include "lease/life.h"
#include "os/failpoint.h"
#include "server/agent_work.h"
#include "server/network_grant.h"
#include "server/routes.h"
#include "server/shared_gpus.h"
#include "store/strays.h"
#include "wire/lease_json.h"

namespace ringfence::server {
namespace {

constexpr std::int64_t kWaitMsMax = 30000;
constexpr Milliseconds kStartWithin = std::chrono::minutes(2);
constexpr std::size_t kChunksMax = 64;
constexpr Milliseconds kSettled = std::chrono::seconds(30);

isolate::GrantBox BoxOf(const model::Lease& lease) {
  const model::BoxRequest& request = lease.request.box;
  isolate::GrantBox box;
  box.image = lease.image;
  for (const model::MountRequest& mount : request.mounts) {
    box.mounts.push_back({mount.name, mount.path, mount.writable});
  }
  box.shm_bytes_max = request.shm_bytes_max;
  box.tmp_bytes_max = request.tmp_bytes_max;
  box.huge_bytes_max = request.huge_bytes_max;
  box.devices = request.devices;
  if (lease.request.probe.has_value()) {
    box.walls_away = lease.request.probe->walls_away;
  }
  return box;
}

// As the policy has it now. One that is gone meanwhile lets nothing, and no jailer starts the box.
std::optional<isolate::GrantException> ExceptionOf(const Core& core, const model::Lease& lease) {
  const std::string& name = lease.request.box.exception;
  if (name.empty()) {
    return std::nullopt;
  }
  isolate::GrantException granted;
  granted.name = name;
  const auto found = policy::FindException(*core.policy(), lease.request.tenant, name, core.Now());
  if (found.has_value()) {
    granted.host_network = found->host_network;
    granted.host_pid = found->host_pid;
    granted.from = found->from;
    granted.until = found->until;
  }
  return granted;
}

std::string GrantFor(const Core& core, const model::Lease& lease) {
  Timestamp placed = lease.updated;
  for (const model::LeaseStep& step : lease.steps) {
    if (step.state == model::LeaseState::kPreparing) {
      placed = step.time;
    }
  }
  isolate::Grant grant;
  grant.lease = lease.id;
  grant.node = lease.node;
  grant.tenant = lease.request.tenant.text();
  grant.principal = lease.principal;
  grant.gpus = lease.gpus;
  grant.share = lease.request.share;
  grant.runtime = lease.request.runtime;
  grant.command = lease.request.command;
  grant.environment = lease.request.environment;
  grant.memory_bytes_max = lease.request.memory_bytes_max;
  grant.cpu_millis_max = lease.request.cpu_millis_max;
  grant.pids_max = lease.request.pids_max;
  grant.box = BoxOf(lease);
  grant.box.exception = ExceptionOf(core, lease);
  grant.issued = placed;
  grant.start_before = placed + kStartWithin;
  grant.runtime_max = lease.request.timeout;
  if (lease.request.runtime == model::LeaseRuntime::kBox) {
    grant.network = CompileNetwork(*core.policy(), lease);
  }
  return isolate::SealGrant(core.keys().grant, grant);
}

JsonArray ToArray(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

// placed becomes preparing, durably, before the grant leaves the server.
Status HandOut(Core& core, const std::string& node) {
  bool any = false;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const auto leases, store::OpenLeasesOf(db, node));
    any = std::any_of(leases.begin(), leases.end(), [](const model::Lease& lease) {
      return lease.state == model::LeaseState::kPlaced;
    });
    return {};
  }));
  if (!any) {
    return {};
  }
  std::vector<std::string> moved;
  RINGFENCE_FAILPOINT("server.grant");
  RINGFENCE_TRY(core.Change([&](store::Connection& db) -> Status {
    moved.clear();
    RINGFENCE_ASSIGN(auto leases, store::OpenLeasesOf(db, node));
    for (model::Lease& lease : leases) {
      if (lease.state != model::LeaseState::kPlaced) {
        continue;
      }
      RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kPreparing, core.Now()));
      RINGFENCE_TRY(store::UpdateLease(db, lease));
      RINGFENCE_TRY(
          Core::Record(db, core.StepEntry({"ringfence", "system", "", ""}, "lease.grant", lease)));
      moved.push_back(lease.id);
    }
    return {};
  }));
  RINGFENCE_FAILPOINT("server.granted");
  for (const std::string& id : moved) {
    core.NotifyLease(id);
  }
  return {};
}

void AddLeaseOrder(const Core& core, const model::Lease& lease, JsonArray& orders) {
  switch (lease.state) {
    case model::LeaseState::kPreparing:
      orders.emplace_back(JsonObject{{"do", lease.end_requested ? "end" : "start"},
                                     {"lease", lease.id},
                                     {"gpus", ToArray(lease.gpus)},
                                     {"grant", GrantFor(core, lease)}});
      break;
    case model::LeaseState::kEnding:
      orders.emplace_back(
          JsonObject{{"do", "end"}, {"lease", lease.id}, {"gpus", ToArray(lease.gpus)}});
      break;
    case model::LeaseState::kScrubbing:
      orders.emplace_back(
          JsonObject{{"do", "scrub"}, {"lease", lease.id}, {"gpus", ToArray(lease.gpus)}});
      break;
    case model::LeaseState::kRequested:
    case model::LeaseState::kAdmitted:
    case model::LeaseState::kQueued:
    case model::LeaseState::kPlaced:
    case model::LeaseState::kActive:
    case model::LeaseState::kClosed:
    case model::LeaseState::kQuarantined:
      break;
  }
}

Result<JsonObject> OrdersFor(Core& core, const std::string& node) {
  RINGFENCE_TRY(HandOut(core, node));
  JsonArray orders;
  RINGFENCE_ASSIGN(const std::set<std::string> cut, AddMigOrders(core, node, orders));
  model::Node facts;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(facts, core.NodeNamed(db, node));
    RINGFENCE_ASSIGN(const auto leases, store::OpenLeasesOf(db, node));
    for (const model::Lease& lease : leases) {
      AddLeaseOrder(core, lease, orders);
    }
    RINGFENCE_ASSIGN(const store::Strays strays, store::GetStrays(db, node));
    for (const std::string& lease : strays.to_end) {
      orders.emplace_back(JsonObject{{"do", "end"}, {"lease", lease}, {"gpus", JsonArray()}});
    }
    RINGFENCE_ASSIGN(const auto gpus, store::GpusOf(db, node));
    for (const model::Gpu& gpu : gpus) {
      const bool is_cut = cut.contains(gpu.is_slice() ? gpu.parent : gpu.uuid);
      // A box that nobody wants may hold a GPU that looks idle here: scrubs wait until it is gone.
      if (gpu.state == model::GpuState::kDirty && gpu.lease.empty() && !strays.held && !is_cut) {
        orders.emplace_back(JsonObject{{"do", "scrub"},
                                       {"lease", ""},
                                       {"gpus", ToArray({gpu.uuid})},
                                       {"since", FormatTime(gpu.dirty_since)}});
      }
    }
    return {};
  }));
  const Sequencer& log = core.sequencer();
  const auto [head, note] = log.published();
  if (head.size > facts.witnessed_size) {
    JsonArray proof;
    if (facts.witnessed_size > 0) {
      RINGFENCE_ASSIGN(const auto digests,
                       audit::ConsistencyProof(log.folder(), facts.witnessed_size, head.size));
      for (const Digest& digest : digests) {
        proof.emplace_back(Base64(digest));
      }
    }
    orders.emplace_back(JsonObject{{"do", "cosign"},
                                   {"note", note},
                                   {"size", static_cast<std::int64_t>(head.size)},
                                   {"from", static_cast<std::int64_t>(facts.witnessed_size)},
                                   {"proof", std::move(proof)}});
  }
  JsonObject body{{"orders", std::move(orders)}};
  body["version"] = Hex(crypto::Sha256(AsBytes(CanonicalJson(body)))).substr(0, 16);
  return body;
}

// The job is over: ending, then scrubbing, each with its entry.
Status EndJob(const Call& call, store::Connection& db, model::Lease& lease,
              const lease::Ending& ending, const std::optional<model::Denied>& denied = {}) {
  Core& core = call.core;
  const audit::Actor actor = ActorOf(call.caller);
  lease.outcome = ending.outcome;
  lease.exit_code = ending.exit_code;
  if (lease.reason.empty()) {
    lease.reason = ending.reason;
  }
  lease.ended = core.Now();
  lease.denied = denied;
  if (lease.state != model::LeaseState::kEnding) {
    RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kEnding, core.Now(), ending.outcome));
  }
  audit::Entry ended = core.StepEntry(actor, "lease.job_end", lease);
  ended.time = *lease.ended;
  ended.result = ending.outcome == "failed" ? "error" : "ok";
  ended.detail["outcome"] = ending.outcome;
  ended.detail["exit_code"] = ending.exit_code;
  ended.detail["reason"] = ending.reason.substr(0, 1024);
  if (denied.has_value()) {
    ended.detail["denied_packets"] = static_cast<std::int64_t>(denied->packets);
  }
  if (!lease.proof.empty()) {
    ended.detail["proof_digest"] = Hex(crypto::Sha256(AsBytes(lease.proof)));
  }
  RINGFENCE_TRY(Core::Record(db, ended));
  RINGFENCE_TRY(AwaitScrub(db, lease, core.Now()));
  RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kScrubbing, core.Now()));
  RINGFENCE_TRY(Core::Record(db, core.StepEntry(actor, "lease.scrub", lease)));
  if (lease.gpus.empty()) {  // nothing to scrub, so nothing to wait for
    RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kClosed, core.Now()));
    RINGFENCE_TRY(Core::Record(db, core.StepEntry(actor, "lease.close", lease)));
  }
  return store::UpdateLease(db, lease);
}

Result<net::Response> TakeStep(const Call& call) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(const std::string step, reader.String("step", 16));
  RINGFENCE_ASSIGN(const std::string line, reader.StringOr("ending", "", 2048));
  std::optional<model::Denied> denied;
  if (reader.Has("denied")) {
    RINGFENCE_ASSIGN(const Json* const json, reader.Any("denied"));
    RINGFENCE_ASSIGN(denied, wire::DeniedFromJson(*json, "denied"));
  }
  RINGFENCE_ASSIGN(const std::string proof, reader.StringOr("proof", "", 64 * 1024));
  RINGFENCE_TRY(reader.Finish());
  const std::string id = call.params.find("lease")->second;
  RINGFENCE_TRY(call.core.Change([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(model::Lease lease, LeaseOf(call, db, id));
    if (step == "started") {
      if (lease.state != model::LeaseState::kPreparing) {
        return {};  // said before
      }
      RINGFENCE_FAILPOINT("server.start");
      RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kActive, call.core.Now()));
      lease.started = call.core.Now();
      RINGFENCE_TRY(
          Core::Record(db, call.core.StepEntry(ActorOf(call.caller), "lease.start", lease)));
      if (lease.end_requested) {  // while it was being prepared: the node is told again
        RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kEnding, call.core.Now(),
                                  "its end was asked for before it started"));
      }
      return store::UpdateLease(db, lease);
    }
    if (step == "ended") {
      if (lease.ended.has_value()) {
        return {};
      }
      RINGFENCE_FAILPOINT("server.end");
      RINGFENCE_ASSIGN(const lease::Ending ending, lease::ParseEnding(line));
      if (lease.request.probe.has_value()) {
        lease.proof = proof;  // looked at when it is used
      }
      return EndJob(call, db, lease, ending, denied);
    }
    return Error{Code::kInvalidArgument, "step must be started or ended", {}, "step"};
  }));
  if (step == "ended") {
    RINGFENCE_FAILPOINT("server.ended");
  } else {
    RINGFENCE_FAILPOINT("server.started");
  }
  call.core.NotifyLease(id);
  call.core.NotifyWork(call.caller.principal);
  return net::Response::OfJson(200, JsonObject{});
}

Result<net::Response> TakeOutput(const Call& call) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(const std::int64_t first, reader.Int("first", 1, UINT32_MAX));
  RINGFENCE_ASSIGN(const auto chunks, reader.Array("chunks", kChunksMax));
  RINGFENCE_TRY(reader.Finish());
  const std::string id = call.params.find("lease")->second;
  RINGFENCE_FAILPOINT("server.output");
  std::vector<store::OutputChunk> output;
  for (const Json* json : chunks) {
    RINGFENCE_ASSIGN(auto fields, JsonReader::Open(*json, "chunks"));
    RINGFENCE_ASSIGN(const bool is_error, fields.Bool("error"));
    RINGFENCE_ASSIGN(const std::string data,
                     fields.String("data", store::kOutputChunkBytesMax * 2));
    RINGFENCE_TRY(fields.Finish());
    RINGFENCE_ASSIGN(Bytes bytes, FromBase64(data));
    output.push_back({is_error, std::move(bytes)});
  }
  RINGFENCE_TRY(call.core.database().Write([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const model::Lease lease, LeaseOf(call, db, id));
    if (lease.ended.has_value()) {
      return Error{Code::kFailedPrecondition, "lease " + id + " has ended: no output any more"};
    }
    return store::AppendOutput(db, id, first, output, call.core.Now());
  }));
  RINGFENCE_FAILPOINT("server.output_kept");
  call.core.NotifyLease(id);
  return net::Response::OfJson(200, JsonObject{});
}

}  // namespace

Result<model::Lease> LeaseOf(const Call& call, store::Connection& db, const std::string& id) {
  RINGFENCE_ASSIGN(model::Lease lease, store::GetLease(db, id));
  if (lease.node != call.caller.principal) {
    return Error{Code::kPermissionDenied, "lease " + lease.id + " is not on this node"};
  }
  return lease;
}

Status CloseLost(const Call& call, store::Connection& db, const std::vector<std::string>& boxes,
                 std::vector<std::string>& touched) {
  RINGFENCE_ASSIGN(auto leases, store::OpenLeasesOf(db, call.caller.principal));
  for (model::Lease& lease : leases) {
    const bool known = std::find(boxes.begin(), boxes.end(), lease.id) != boxes.end();
    const bool too_late = lease.state == model::LeaseState::kPreparing &&
                          call.core.Now() - lease.updated > kStartWithin * 2;
    const bool running = lease.state == model::LeaseState::kActive ||
                         (lease.state == model::LeaseState::kEnding && !lease.ended.has_value());
    // What changed just now may have crossed the report on its way.
    const bool settled = call.core.Now() - lease.updated > kSettled;
    if (!known && settled && (running || too_late)) {
      RINGFENCE_TRY(EndJob(call, db, lease,
                           {"failed", 125,
                            too_late ? "the node did not start it in time"
                                     : "the node lost it (its jailer or agent was restarted)"}));
      touched.push_back(lease.id);
    }
  }
  return {};
}

void AgentWork(const Call& call, const net::Responder& responder) {
  const auto wait = IntQuery(call.request, "wait_ms", 0, 0, kWaitMsMax);
  if (!wait.has_value()) {
    responder.Send(net::Response::OfError(wait.error()));
    return;
  }
  Core& core = call.core;
  core.waiters().Park("work:" + call.caller.principal, Milliseconds(*wait),
                      [&core, responder, node = call.caller.principal,
                       version = std::string(call.request.Query("version"))](bool last) {
                        auto body = OrdersFor(core, node);
                        if (!body.has_value()) {
                          responder.Send(net::Response::OfError(body.error()));
                          return true;
                        }
                        const auto& found = body.value()["version"].as_string();
                        if (!last && std::string_view(found.data(), found.size()) == version) {
                          return false;
                        }
                        core.SawNode(node);
                        responder.Send(net::Response::OfJson(200, *body));
                        return true;
                      });
}

void AgentLeaseStep(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return TakeStep(call); });
}
void AgentLeaseOutput(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return TakeOutput(call); });
}

}  // namespace ringfence::server
