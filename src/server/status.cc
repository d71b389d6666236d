// Health, at a glance and for machines.

#include <algorithm>
#include <set>

#include "fleet/node_state.h"
#include "gpu/readings.h"
#include "os/file.h"
#include "server/alert_webhook.h"
#include "server/routes.h"
#include "store/telemetry_records.h"

namespace ringfence::server {
namespace {

constexpr std::uint64_t kDiskBytesLeast = std::uint64_t{256} << 20U;
constexpr std::size_t kProblemsMax = 64;
constexpr std::int64_t kBehindMax = 20'000;
constexpr std::size_t kReadingsBytesMax = std::size_t{8} << 20U;
constexpr Milliseconds kSeenWithin = std::chrono::seconds(15);

struct Glance {
  std::vector<std::pair<std::string, std::string>> problems;  // what, fix
  std::vector<model::Node> nodes;
  std::vector<model::Gpu> gpus;
  std::vector<model::Lease> leases;  // open
  std::int64_t entries = 0;
  audit::TreeHead head;
  std::size_t witnesses = 0;
  std::string restored;  // when, if the server was ever restored from a backup
  bool detects = false;
  Detector::Health detection;
  store::Detection detected;
  std::int64_t alerts = 0;  // open
  std::vector<store::NodeTelemetry> telemetry;
};

// How much of what the GPUs do is not seen.
struct Sight {
  std::int64_t gpus = 0;
  std::int64_t blind = 0;    // without a reading of the last seconds
  std::int64_t waiting = 0;  // records that nodes have and we have not
  std::int64_t dropped = 0;  // that nodes said they had to drop
  std::int64_t missing = 0;  // that never came
  std::int64_t gaps = 0;
  std::int64_t percent() const { return gpus == 0 ? 0 : (blind * 100 + gpus - 1) / gpus; }
};

Sight SightOf(const Glance& glance, Timestamp now) {
  Sight sight;
  std::set<std::string> seen;
  for (const store::NodeTelemetry& node : glance.telemetry) {
    sight.waiting += node.waiting;
    sight.dropped += node.dropped;
    sight.missing += std::max<std::int64_t>(0, node.missing - node.dropped);  // not told of
    sight.gaps += node.gaps;
    const auto readings = ParseJson(node.readings, kReadingsBytesMax);
    if (now - node.heard > kSeenWithin || !node.blind.empty() || !readings.has_value()) {
      continue;
    }
    for (const Json& one : readings->get_array()) {
      if (const auto reading = gpu::ReadingFromJson(one); reading.has_value()) {
        seen.insert(reading->uuid);
      }
    }
  }
  for (const model::Gpu& gpu : glance.gpus) {
    if (gpu.state != model::GpuState::kLost && !gpu.is_slice()) {
      ++sight.gpus;
      sight.blind += seen.contains(gpu.uuid) ? 0 : 1;
    }
  }
  return sight;
}

// Entries and events that rules have not seen yet. A moment's worth is always under way.
std::int64_t Behind(const Glance& glance) {
  if (!glance.detects) {
    return 0;
  }
  return glance.entries - glance.detected.audit + glance.detected.next -
         std::max(glance.detected.evaluated, glance.detection.evaluated);
}

std::size_t CountState(const Glance& glance, model::GpuState state) {
  return static_cast<std::size_t>(
      std::count_if(glance.gpus.begin(), glance.gpus.end(),
                    [&](const model::Gpu& gpu) { return gpu.state == state; }));
}

std::size_t CountActive(const Glance& glance) {
  return static_cast<std::size_t>(std::count_if(
      glance.leases.begin(), glance.leases.end(),
      [](const model::Lease& lease) { return lease.state == model::LeaseState::kActive; }));
}

std::size_t CountReady(const Glance& glance, Timestamp now) {
  return static_cast<std::size_t>(
      std::count_if(glance.nodes.begin(), glance.nodes.end(), [&](const model::Node& node) {
        return fleet::StateOf(node, now) == fleet::NodeState::kReady;
      }));
}

std::size_t CountSilent(const Glance& glance, Timestamp now) {
  return static_cast<std::size_t>(
      std::count_if(glance.nodes.begin(), glance.nodes.end(), [&](const model::Node& node) {
        return fleet::StateOf(node, now) == fleet::NodeState::kSilent;
      }));
}

std::string RefusalFix(const Glance& glance) {
  if (glance.restored.empty()) {
    return "treat it as tampering until explained: `ringfence audit verify`";
  }
  return "the server was restored from a backup at " + glance.restored +
         ": what this node saw after the backup was made is lost. If that explains it, keep the "
         "node's witness.state as evidence and let it begin anew (docs/operations/backup.md); if "
         "not, treat it as tampering";
}

void FindProblems(Core& core, Glance& glance) {
  const Timestamp now = core.Now();
  auto& problems = glance.problems;
  if (glance.nodes.empty()) {
    problems.emplace_back("no node has joined",
                          "`ringfence node token create NAME`, then start the agent with it");
  }
  for (const model::Node& node : glance.nodes) {
    const fleet::NodeState state = fleet::StateOf(node, now);
    if (state == fleet::NodeState::kSilent) {
      problems.emplace_back(
          "node " + node.name + " was last heard of at " + FormatTime(node.last_seen),
          "look at its agent (log in STATE/logs/node.log)");
    }
    if (state == fleet::NodeState::kIncapable) {
      for (const std::string& what : node.missing) {
        problems.emplace_back("node " + node.name + " cannot run boxes: " + what, "");
      }
    }
    if (!node.witness_refusal.empty()) {
      problems.emplace_back("node " + node.name + " refuses the audit log: " + node.witness_refusal,
                            RefusalFix(glance));
    }
  }
  for (const model::Gpu& gpu : glance.gpus) {
    if (gpu.state == model::GpuState::kQuarantined) {
      problems.emplace_back(gpu.uuid + " on " + gpu.node + " is quarantined: " + gpu.reason,
                            "find the cause, then `ringfence gpu scrub " + gpu.uuid + "`");
    }
    if (gpu.state == model::GpuState::kLost) {
      problems.emplace_back(gpu.uuid + " on " + gpu.node + " is lost: " + gpu.reason, "");
    }
  }
  if (const std::string stuck = core.sequencer().problem(); !stuck.empty()) {
    problems.emplace_back("the audit log does not grow: " + stuck,
                          "make room on its disk; entries are kept in the database meanwhile");
  }
  if (const std::string stale = core.policy_problem(); !stale.empty()) {
    problems.emplace_back("this server does not have the policy in force: " + stale,
                          "bring it to the version of the others, or mend its database connection");
  }
  if (!glance.detection.stuck.empty()) {
    problems.emplace_back("detection stands still: " + glance.detection.stuck,
                          "events are not lost: it goes on where it was");
  }
  for (const std::string& problem : glance.detection.rule_problems) {
    problems.emplace_back("detection rules: " + problem,
                          "`ringfence rule check` shows all; mended files are read by themselves");
    if (problems.size() >= kProblemsMax) {
      break;
    }
  }
  if (Behind(glance) > kBehindMax) {
    problems.emplace_back(
        "detection is " + std::to_string(Behind(glance)) + " entries and events behind", "");
  }
  const auto room = os::FreeBytes(core.sequencer().folder());
  if (room.has_value() && *room < kDiskBytesLeast) {
    problems.emplace_back("the server's disk has " + std::to_string(*room >> 20U) + " MiB left",
                          "make room: when it is full, changes are refused");
  }
}

Result<std::string> LastRestore(store::Connection& db) {
  store::AuditFilter filter;
  filter.action = "server.restored";
  filter.newest_first = true;
  filter.limit = 1;
  RINGFENCE_ASSIGN(const auto rows, store::ListAudit(db, filter));
  if (rows.empty()) {
    return std::string();
  }
  RINGFENCE_ASSIGN(const audit::Entry entry, audit::Entry::Parse(rows[0].entry));
  return FormatTime(entry.time);
}

Result<Glance> Look(Core& core) {
  Glance glance;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(glance.nodes, core.Nodes(db));
    RINGFENCE_ASSIGN(glance.gpus, store::ListGpus(db));
    RINGFENCE_ASSIGN(glance.leases, store::OpenLeases(db));
    RINGFENCE_ASSIGN(glance.entries, store::AuditSize(db));
    RINGFENCE_ASSIGN(glance.telemetry, store::ListTelemetry(db));
    if (core.detector() != nullptr) {
      RINGFENCE_ASSIGN(glance.detected, store::GetDetection(db));
      RINGFENCE_ASSIGN(glance.alerts, store::CountAlerts(db, "open"));
      glance.detection = core.detector()->health();
      glance.detects = true;
    }
    const bool refused =
        std::any_of(glance.nodes.begin(), glance.nodes.end(),
                    [](const model::Node& node) { return !node.witness_refusal.empty(); });
    if (refused) {
      RINGFENCE_ASSIGN(glance.restored, LastRestore(db));
    }
    return {};
  }));
  for (store::NodeTelemetry& node : glance.telemetry) {
    core.telemetry().Improve(node);
  }
  glance.head = core.sequencer().head();
  for (const model::Node& node : glance.nodes) {
    glance.witnesses += node.witnessed_size >= glance.head.size && glance.head.size > 0;
  }
  FindProblems(core, glance);
  return glance;
}

void Metric(std::string& out, std::string_view name, std::string_view kind, std::string_view help,
            std::uint64_t value) {
  out.append("# HELP ").append(name).append(" ").append(help).append("\n");
  out.append("# TYPE ").append(name).append(" ").append(kind).append("\n");
  out.append(name).append(" ").append(std::to_string(value)).append("\n");
}

}  // namespace

void GetHealth(const Call& /*call*/, const net::Responder& responder) {
  responder.Send(net::Response::OfText(200, "ok\n"));
}

void GetReady(const Call& call, const net::Responder& responder) {
  const std::string stuck = call.core.sequencer().problem();
  const Status reads = call.core.database().Read([](store::Connection& db) -> Status {
    RINGFENCE_TRY(store::AuditSize(db));
    return {};
  });
  if (!reads.has_value() || !stuck.empty() || !call.core.policy_problem().empty()) {
    responder.Send(
        net::Response::OfError({Code::kUnavailable, !reads.has_value() ? "no database"
                                                    : !stuck.empty() ? "the audit log does not grow"
                                                                     : "not the policy in force"}));
    return;
  }
  responder.Send(net::Response::OfText(200, "ready\n"));
}

void GetMetrics(const Call& call, const net::Responder& responder) {
  const auto glance = Look(call.core);
  if (!glance.has_value()) {
    responder.Send(net::Response::OfError(glance.error()));
    return;
  }
  std::string out;
  Counters& counters = call.core.counters();
  const net::ServerStats stats = call.http->stats();
  Metric(out, "ringfence_http_requests_total", "counter", "Requests served.", stats.requests);
  Metric(out, "ringfence_http_refused_busy_total", "counter", "Requests answered 429.",
         stats.refused_busy);
  Metric(out, "ringfence_http_refused_malformed_total", "counter", "Requests that were not HTTP.",
         stats.refused_malformed);
  Metric(out, "ringfence_tls_handshakes_failed_total", "counter", "TLS handshakes that failed.",
         stats.handshakes_failed);
  Metric(out, "ringfence_http_evicted_total", "counter",
         "Waiting connections closed to let others in.", stats.evicted);
  Metric(out, "ringfence_http_connections", "gauge", "Open connections.", stats.connections_open);
  Metric(out, "ringfence_http_requests_queued", "gauge", "Requests waiting for a thread.",
         stats.requests_queued);
  Metric(out, "ringfence_decisions_allowed_total", "counter", "Allowed by policy.",
         counters.allowed);
  Metric(out, "ringfence_decisions_denied_total", "counter", "Denied by policy.", counters.denied);
  Metric(out, "ringfence_unauthenticated_total", "counter", "Callers that could not be let in.",
         counters.unauthenticated);
  Metric(out, "ringfence_leases_requested_total", "counter", "Leases asked for.",
         counters.leases_requested);
  Metric(out, "ringfence_scrubs_total", "counter", "Receipts accepted.", counters.scrubs);
  Metric(out, "ringfence_scrubs_failed_total", "counter", "Scrubs that failed.",
         counters.scrubs_failed);
  Metric(out, "ringfence_node_incidents_total", "counter", "Incidents told by jailers.",
         counters.incidents);
  Metric(out, "ringfence_leases_open", "gauge", "Leases not closed.", glance->leases.size());
  Metric(out, "ringfence_gpus_free", "gauge", "GPUs that may be leased.",
         CountState(*glance, model::GpuState::kFree));
  Metric(out, "ringfence_gpus_quarantined", "gauge", "GPUs in quarantine.",
         CountState(*glance, model::GpuState::kQuarantined));
  Metric(out, "ringfence_nodes_ready", "gauge", "Nodes that can run boxes now.",
         CountReady(*glance, call.core.Now()));
  Metric(out, "ringfence_audit_entries", "gauge", "Audit entries acknowledged.",
         static_cast<std::uint64_t>(glance->entries));
  Metric(out, "ringfence_audit_proven", "gauge", "Audit entries under a signed checkpoint.",
         glance->head.size);
  const Sight sight = SightOf(*glance, call.core.Now());
  Metric(out, "ringfence_gpus_blind", "gauge", "GPUs without a reading of the last seconds.",
         static_cast<std::uint64_t>(sight.blind));
  Metric(out, "ringfence_telemetry_lost_total", "counter",
         "Telemetry records that nodes dropped or that never came.",
         static_cast<std::uint64_t>(sight.dropped + sight.missing));
  Metric(out, "ringfence_events", "counter", "Events stored.",
         static_cast<std::uint64_t>(glance->detected.next));
  Metric(out, "ringfence_events_bytes", "gauge", "Bytes of the events that are kept.",
         static_cast<std::uint64_t>(glance->detected.bytes));
  Metric(out, "ringfence_detection_behind", "gauge", "Entries and events that rules did not see.",
         static_cast<std::uint64_t>(std::max<std::int64_t>(0, Behind(*glance))));
  Metric(out, "ringfence_detection_not_kept_total", "counter",
         "Failed sign-ins that were only counted.", glance->detection.not_kept);
  Metric(out, "ringfence_alerts_open", "gauge", "Alerts that nobody has seen to.",
         static_cast<std::uint64_t>(glance->alerts));
  net::Response response = net::Response::OfText(200, std::move(out));
  response.content_type = "text/plain; version=0.0.4";
  responder.Send(std::move(response));
}

void GetStatus(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const Glance glance, Look(call.core));
    JsonArray problems;
    for (const auto& [what, fix] : glance.problems) {
      problems.emplace_back(JsonObject{{"what", what}, {"fix", fix}});
    }
    const auto policy = call.core.policy();
    JsonArray exceptions;
    for (const policy::BoxException& one : policy::ExceptionsInForce(*policy, call.core.Now())) {
      exceptions.emplace_back(one.Warning());
    }
    const Sight sight = SightOf(glance, call.core.Now());
    const bool simulated = std::any_of(glance.nodes.begin(), glance.nodes.end(),
                                       [](const model::Node& node) { return node.simulated; });
    return net::Response::OfJson(
        200,
        JsonObject{
            {"healthy", glance.problems.empty()},
            {"version", RINGFENCE_VERSION},
            {"simulated", simulated},
            {"problems", std::move(problems)},
            {"exceptions", std::move(exceptions)},
            {"nodes", JsonObject{{"total", glance.nodes.size()},
                                 {"ready", CountReady(glance, call.core.Now())}}},
            {"gpus",
             JsonObject{{"total", glance.gpus.size()},
                        {"free", CountState(glance, model::GpuState::kFree)},
                        {"leased", CountState(glance, model::GpuState::kLeased) +
                                       CountState(glance, model::GpuState::kShared)},
                        {"dirty", CountState(glance, model::GpuState::kDirty)},
                        {"quarantined", CountState(glance, model::GpuState::kQuarantined)}}},
            {"leases", JsonObject{{"open", glance.leases.size()}, {"active", CountActive(glance)}}},
            {"audit", JsonObject{{"entries", glance.entries},
                                 {"proven", static_cast<std::int64_t>(glance.head.size)},
                                 {"witnesses", glance.witnesses},
                                 {"published_here", call.core.sequencer().leads()}}},
            {"detection", JsonObject{{"rules", glance.detection.rules},
                                     {"alerts_open", glance.alerts},
                                     {"events", glance.detected.next},
                                     {"events_bytes", glance.detected.bytes},
                                     {"behind", std::max<std::int64_t>(0, Behind(glance))},
                                     {"not_kept", glance.detection.not_kept},
                                     {"not_related", glance.detection.not_related},
                                     {"silent_nodes", CountSilent(glance, call.core.Now())},
                                     {"webhook_key", WebhookPublicKey(call.core.keys())}}},
            {"telemetry", JsonObject{{"gpus", sight.gpus},
                                     {"blind", sight.blind},
                                     {"blind_percent", sight.percent()},
                                     {"waiting", sight.waiting},
                                     {"dropped", sight.dropped},
                                     {"missing", sight.missing},
                                     {"gaps", sight.gaps}}},
            {"policy", JsonObject{{"digest", policy->digest()},
                                  {"tenants", policy->tenants().size()},
                                  {"principals", policy->principals().size()},
                                  {"bindings", policy->bindings().size()},
                                  {"loaded", FormatTime(call.core.policy_loaded())}}}});
  });
}

void GetWhoAmI(const Call& call, const net::Responder& responder) {
  JsonArray bindings;
  for (const policy::Binding& binding : call.core.policy()->bindings()) {
    if (binding.principal == call.caller.principal) {
      bindings.emplace_back(JsonObject{{"role", binding.role}, {"tenant", binding.tenant.text()}});
    }
  }
  responder.Send(
      net::Response::OfJson(200, JsonObject{{"principal", call.caller.principal},
                                            {"kind", call.caller.kind},
                                            {"bindings", std::move(bindings)},
                                            {"token", call.caller.via},
                                            {"expires", FormatTime(call.caller.expires)}}));
}

}  // namespace ringfence::server
