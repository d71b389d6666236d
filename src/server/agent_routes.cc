// What agents say: joining, renewing, reporting, and what they witness. Leases and scrubs are in
// agent_lease_routes.cc.

#include <algorithm>

#include "audit/note.h"
#include "base/encoding.h"
#include "crypto/dsse.h"
#include "crypto/sha256.h"
#include "fleet/node_state.h"
#include "isolate/incident.h"
#include "isolate/join_token.h"
#include "lease/life.h"
#include "lease/sharing.h"
#include "server/agent_work.h"
#include "server/routes.h"
#include "store/strays.h"
#include "wire/node_json.h"

namespace ringfence::server {
namespace {

constexpr std::size_t kPemBytesMax = 16 * 1024;
constexpr std::size_t kMissingMax = 32;
constexpr std::size_t kIncidentsMax = 64;
constexpr Milliseconds kLeavingMax = std::chrono::seconds(30);

Result<std::string> Issue(const Core& core, const std::string& node, std::string_view request) {
  return crypto::IssueForRequest(core.keys().ca, request,
                                 {node, {}, {}, {"ringfence://node/" + node}},
                                 crypto::CertificateUse::kClient, core.Now(), kNodeCertificateLife);
}

JsonObject Credentials(Core& core, const std::string& certificate) {
  const Sequencer& log = core.sequencer();
  return {{"certificate", certificate},
          {"ca", core.keys().ca.certificate_pem},
          {"log_vkey", audit::VerifierKey(log.origin(), 1, core.keys().log.public_key())}};
}

// The calling node as it is now; whoever joined anew meanwhile has ended the caller's certificate.
Result<model::Node> StillIs(const Call& call, store::Connection& db) {
  RINGFENCE_ASSIGN(model::Node node, store::GetNode(db, call.caller.principal));
  if (node.certificate_fingerprint != call.caller.via &&
      node.certificate_previous != call.caller.via) {
    return Error{Code::kUnauthenticated, "the node's certificate was replaced meanwhile"};
  }
  return node;
}

Result<net::Response> Join(const Call& call) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(const std::string secret, reader.String("secret", 128));
  RINGFENCE_ASSIGN(const std::string request, reader.String("request", kPemBytesMax));
  RINGFENCE_ASSIGN(const std::string receipt_key, reader.String("receipt_key", 64));
  RINGFENCE_ASSIGN(const std::string key_proof, reader.String("key_proof", 64));
  RINGFENCE_ASSIGN(const std::string witness, reader.String("witness", 256));
  RINGFENCE_TRY(reader.Finish());
  RINGFENCE_ASSIGN(const Bytes half, FromBase64Url(secret));
  RINGFENCE_ASSIGN(const Bytes raw_key, FromBase64(receipt_key));
  RINGFENCE_ASSIGN(const crypto::PublicKey key, crypto::PublicKey::FromRaw(raw_key));
  RINGFENCE_TRY(audit::ParseVerifierKey(witness));
  const std::string id = Hex(crypto::Sha256(half));
  std::string certificate;
  bool forged = false;
  const Error not_vouched{Code::kUnauthenticated,
                          "the jailer's key is not vouched for by its root side",
                          "start the agent as root, with a new token in a file"};
  RINGFENCE_TRY(call.core.Change([&](store::Connection& db) -> Status {
    const Error refused{Code::kUnauthenticated,
                        "the join token is unknown, was used before, or has expired",
                        "make a new one: `ringfence node token create NAME`"};
    const auto token = store::TakeJoinToken(db, id);
    if (!token.has_value() || token->expires <= call.core.Now()) {
      return refused;
    }
    RINGFENCE_ASSIGN(const Bytes jailer_half, FromBase64(token->jailer_half));
    const std::string expected = isolate::JailerKeyProof(SecretBytes(jailer_half), key);
    if (!SecretBytes(AsBytes(expected)).Equals(AsBytes(key_proof))) {
      // Somebody has the agent's half only: the token is spent, and the attempt on record.
      forged = true;
      audit::Entry entry =
          call.core.NewEntry({token->node, "node", "", call.request.remote_address}, "node.join");
      entry.node = token->node;
      entry.decision = "deny";
      entry.decision_reason = not_vouched.message;
      return Core::Record(db, entry);
    }
    RINGFENCE_ASSIGN(certificate, Issue(call.core, token->node, request));
    RINGFENCE_ASSIGN(const auto facts, crypto::ReadCertificate(certificate));
    model::Node node;
    const auto known = store::GetNode(db, token->node);
    if (known.has_value()) {
      node = *known;  // joins again: its GPUs and leases stay what they are
    } else {
      node.name = token->node;
      node.joined = call.core.Now();
    }
    node.last_seen = call.core.Now();
    node.certificate_fingerprint = facts.fingerprint;
    node.certificate_previous.clear();
    node.certificate_expires = facts.not_after;
    node.receipt_key = receipt_key;
    node.witness_vkey = witness;
    node.witness_refusal.clear();
    RINGFENCE_TRY(store::PutNode(db, node));
    audit::Entry entry = call.core.NewEntry(
        {node.name, "node", facts.fingerprint, call.request.remote_address}, "node.join");
    entry.node = node.name;
    entry.result = "ok";
    entry.detail["receipt_key"] = key.Id();
    entry.detail["again"] = known.has_value();
    return Core::Record(db, entry);
  }));
  if (forged) {
    return not_vouched;
  }
  return net::Response::OfJson(201, Credentials(call.core, certificate));
}

Result<net::Response> Renew(const Call& call) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(const std::string request, reader.String("request", kPemBytesMax));
  RINGFENCE_TRY(reader.Finish());
  RINGFENCE_ASSIGN(const std::string certificate, Issue(call.core, call.caller.principal, request));
  RINGFENCE_ASSIGN(const auto facts, crypto::ReadCertificate(certificate));
  RINGFENCE_TRY(call.core.Change([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(model::Node node, StillIs(call, db));
    node.certificate_previous = call.caller.via;
    node.certificate_fingerprint = facts.fingerprint;
    node.certificate_expires = facts.not_after;
    RINGFENCE_TRY(store::PutNode(db, node));
    audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "node.renew");
    entry.node = node.name;
    entry.result = "ok";
    entry.detail["expires"] = FormatTime(facts.not_after);
    return Core::Record(db, entry);
  }));
  return net::Response::OfJson(200, Credentials(call.core, certificate));
}

struct Report {
  std::string version;
  std::vector<std::string> missing;
  std::vector<std::string> boxes;  // leases that the node knows of, in any state
  const Json* inventory = nullptr;
  std::uint64_t witnessed = 0;
  std::vector<model::NodeImage> images;
  bool starting = false;  // its first report: the node, or at least its agent, has just started
};

Result<Report> ReadReport(const Json& body) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  Report report;
  RINGFENCE_ASSIGN(report.version, reader.String("version", 64));
  RINGFENCE_ASSIGN(report.missing, reader.Strings("missing", kMissingMax, 512));
  RINGFENCE_ASSIGN(report.boxes, reader.Strings("boxes", 4096, 64));
  RINGFENCE_ASSIGN(const std::int64_t witnessed, reader.Int("witnessed", 0, 1LL << 53U));
  report.witnessed = static_cast<std::uint64_t>(witnessed);
  RINGFENCE_ASSIGN(report.starting, reader.BoolOr("starting", false));
  if (reader.Has("inventory")) {
    RINGFENCE_ASSIGN(report.inventory, reader.Any("inventory"));
  }
  RINGFENCE_ASSIGN(report.images, wire::NodeImagesFromJson(reader));
  RINGFENCE_TRY(reader.Finish());
  return report;
}

// What the inventory changes, each change that matters with its entry.
Status TakeInventory(const Call& call, store::Connection& db, const Json& json, model::Node& node) {
  RINGFENCE_ASSIGN(const fleet::NodeInventory inventory, fleet::InventoryOf(json, node.name));
  RINGFENCE_ASSIGN(const auto known, store::ListGpus(db));
  RINGFENCE_ASSIGN(const auto changes,
                   fleet::Reconcile(known, inventory, node.name, call.core.Now()));
  std::vector<std::string> what;
  if (node.library_digest != inventory.library_digest && !node.library_digest.empty()) {
    what.push_back("driver library changed");
  }
  if (node.driver_version != inventory.driver_version && !node.driver_version.empty()) {
    what.push_back("driver changed from " + node.driver_version + " to " +
                   inventory.driver_version);
  }
  node.simulated = inventory.simulated;
  node.driver_version = inventory.driver_version;
  node.kernel_driver = inventory.kernel_driver;
  node.library_digest = inventory.library_digest;
  node.scrub_on_free = inventory.scrub_on_free;
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "node.inventory");
  entry.node = node.name;
  entry.result = "ok";
  RINGFENCE_ASSIGN(const auto open, store::OpenLeasesOf(db, node.name));
  for (fleet::GpuChange change : changes) {
    if (change.gpu.state == model::GpuState::kDirty &&
        !lease::SharersOf(change.gpu.uuid, open, lease::Sharers::kAll).empty()) {
      change.gpu.state = model::GpuState::kShared;  // it came back: scrubbed with its last share
    }
    if (change.gpu.state == model::GpuState::kLeased) {  // of one that is quarantined: so is this
      RINGFENCE_ASSIGN(const model::Lease lease, store::GetLease(db, change.gpu.lease));
      if (lease.state == model::LeaseState::kQuarantined) {
        lease::Quarantine(change.gpu, lease.reason);
      }
    }
    RINGFENCE_TRY(change.dropped ? store::DropGpu(db, change.gpu.uuid)
                                 : store::PutGpu(db, change.gpu));
    if (!change.what.empty()) {
      what.push_back(change.what + ": " + change.gpu.uuid);
      entry.gpus.push_back(change.gpu.uuid);
    }
  }
  if (what.empty()) {
    return {};
  }
  JsonArray list;
  for (const std::string& text : what) {
    list.emplace_back(text);
  }
  entry.detail["changes"] = std::move(list);
  entry.detail["driver"] = inventory.driver_version;
  entry.detail["library"] = inventory.library_digest;
  entry.detail["simulated"] = inventory.simulated;
  return Core::Record(db, entry);
}

// After a start nobody knows what was done to the cards meanwhile (the machine may have been
// rebooted, or another system run on it): none counts as clean before it is scrubbed again.
Status DistrustGpus(const Call& call, store::Connection& db, const std::string& node) {
  RINGFENCE_ASSIGN(auto gpus, store::GpusOf(db, node));
  for (model::Gpu& gpu : gpus) {
    if (gpu.state == model::GpuState::kFree) {
      lease::Dirty(gpu, call.core.Now(), "its node has started");
      RINGFENCE_TRY(store::PutGpu(db, gpu));
    }
  }
  return {};
}

// Said once, and kept where everybody sees it: the log contradicts what a witness saw.
Status RecordRefusal(const Call& call, store::Connection& db, const std::string& refusal) {
  RINGFENCE_ASSIGN(model::Node node, StillIs(call, db));
  if (!node.witness_refusal.empty()) {
    return {};  // its words differ with each head, and each entry makes a new head
  }
  node.witness_refusal = refusal;
  RINGFENCE_TRY(store::PutNode(db, node));
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "audit.witness_refused");
  entry.node = node.name;
  entry.result = "error";
  entry.detail["why"] = refusal;
  return Core::Record(db, entry);
}

// The node was made to begin anew with this log, by somebody who has power over it: also on record.
Status RecordResumed(const Call& call, store::Connection& db) {
  RINGFENCE_ASSIGN(model::Node node, StillIs(call, db));
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "audit.witness_resumed");
  entry.node = node.name;
  entry.result = "ok";
  entry.detail["refused_before"] = node.witness_refusal;
  node.witness_refusal.clear();
  RINGFENCE_TRY(store::PutNode(db, node));
  return Core::Record(db, entry);
}

// What boxes can be made of is part of what a node is: a new or lost image is on record.
Status RecordImages(const Call& call, store::Connection& db, model::Node& node,
                    const std::vector<model::NodeImage>& images) {
  constexpr std::size_t kNamedMax = 16;
  const auto missing_in = [](const std::vector<model::NodeImage>& from,
                             const std::vector<model::NodeImage>& in) {
    JsonArray digests;
    for (const model::NodeImage& image : from) {
      const bool there = std::any_of(in.begin(), in.end(), [&](const model::NodeImage& other) {
        return other.digest == image.digest;
      });
      if (!there && digests.size() < kNamedMax) {
        digests.emplace_back(image.digest);
      }
    }
    return digests;
  };
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "node.images");
  entry.node = node.name;
  entry.result = "ok";
  entry.detail["added"] = missing_in(images, node.images);
  entry.detail["removed"] = missing_in(node.images, images);
  entry.detail["count"] = static_cast<std::int64_t>(images.size());
  node.images = images;
  return Core::Record(db, entry);
}

// Boxes that the node holds and the records do not want: of leases that are closed, or that nobody
// knows since the records were restored from a backup. Those of a lease that closed just now are on
// their way out by themselves.
Status NoteStrays(const Call& call, store::Connection& db, const std::vector<std::string>& boxes) {
  store::Strays strays;
  for (const std::string& box : boxes) {
    const auto lease = store::GetLease(db, box);
    if (!lease.has_value() && lease.error().code != Code::kNotFound) {
      return lease.error();
    }
    if (lease.has_value() && lease->state != model::LeaseState::kClosed) {
      continue;
    }
    strays.held = true;
    if (!lease.has_value() || call.core.Now() - lease->updated > kLeavingMax) {
      strays.to_end.push_back(box);
    }
  }
  return store::SetStrays(db, call.caller.principal, strays);
}

Result<net::Response> TakeReport(const Call& call) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(const Report report, ReadReport(body));
  const std::string& name = call.caller.principal;
  std::vector<std::string> touched;
  bool is_rollback = false;
  RINGFENCE_TRY(call.core.Change([&](store::Connection& db) -> Status {
    touched.clear();
    RINGFENCE_TRY(NoteStrays(call, db, report.boxes));
    RINGFENCE_ASSIGN(model::Node node, store::GetNode(db, name));
    const bool changed = node.missing != report.missing || node.version != report.version ||
                         node.images != report.images;
    if (node.images != report.images) {
      RINGFENCE_TRY(RecordImages(call, db, node, report.images));
    }
    node.missing = report.missing;
    node.version = report.version;
    node.last_seen = call.core.Now();
    if (report.inventory != nullptr) {
      RINGFENCE_TRY(TakeInventory(call, db, *report.inventory, node));
    }
    if (changed || report.inventory != nullptr) {
      RINGFENCE_TRY(store::PutNode(db, node));
    }
    if (report.starting) {
      RINGFENCE_TRY(DistrustGpus(call, db, name));
    }
    // Nobody is shown a checkpoint before the database has it, whichever server showed it.
    RINGFENCE_ASSIGN(const store::LogHead published, store::GetLogHead(db));
    is_rollback = report.witnessed > static_cast<std::uint64_t>(published.size);
    if (is_rollback) {
      RINGFENCE_TRY(RecordRefusal(call, db,
                                  "it has seen " + std::to_string(report.witnessed) +
                                      " entries, and the log has fewer: a rollback"));
    }
    return CloseLost(call, db, report.boxes, touched);
  }));
  call.core.SawNode(name);
  if (!is_rollback) {
    call.core.SetWitnessed(name, report.witnessed);
  }
  for (const std::string& lease : touched) {
    call.core.NotifyLease(lease);
  }
  call.core.NotifyWork(name);
  return net::Response::OfJson(200, JsonObject{});
}

Result<net::Response> TakeCosignature(const Call& call) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(const std::string line, reader.StringOr("line", "", 1024));
  RINGFENCE_ASSIGN(const std::string refusal, reader.StringOr("refusal", "", 1024));
  RINGFENCE_TRY(reader.Int("size", 0, 1LL << 53U));  // what it was asked; the note itself counts
  RINGFENCE_TRY(reader.Finish());
  if (!refusal.empty()) {
    RINGFENCE_TRY(
        call.core.Change([&](store::Connection& db) { return RecordRefusal(call, db, refusal); }));
    return net::Response::OfJson(200, JsonObject{});
  }
  model::Node node;
  RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(node, StillIs(call, db));
    return {};
  }));
  Sequencer& log = call.core.sequencer();
  RINGFENCE_ASSIGN(const audit::NamedKey key, audit::ParseVerifierKey(node.witness_vkey));
  const auto [head, note] = log.published();
  if (!audit::VerifyCosignature(note + line, key).has_value()) {
    // Most often of a head that has been followed by another meanwhile; the node is asked again.
    return Error{Code::kConflict, "not a cosignature of the newest checkpoint"};
  }
  if (const Status added = log.AddCosignature(head, key.name, line);
      !added.has_value() && added.error().code != Code::kInvalidArgument) {
    return added.error();
  }
  call.core.SetWitnessed(node.name, head.size);
  if (!node.witness_refusal.empty()) {
    RINGFENCE_TRY(call.core.Change([&](store::Connection& db) { return RecordResumed(call, db); }));
  }
  return net::Response::OfJson(200, JsonObject{});
}

Result<net::Response> TakeIncidents(const Call& call) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(const auto envelopes,
                   reader.Strings("incidents", kIncidentsMax, crypto::kEnvelopeBytesMax));
  RINGFENCE_TRY(reader.Finish());
  RINGFENCE_TRY(call.core.Change([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const model::Node node, store::GetNode(db, call.caller.principal));
    RINGFENCE_ASSIGN(const Bytes raw, FromBase64(node.receipt_key));
    RINGFENCE_ASSIGN(const crypto::PublicKey key, crypto::PublicKey::FromRaw(raw));
    for (const std::string& envelope : envelopes) {
      audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "node.incident");
      entry.node = node.name;
      entry.result = "error";
      const auto incident = isolate::OpenIncident(key, envelope);
      if (incident.has_value()) {
        entry.detail["what"] = incident->what.substr(0, 1024);
        entry.detail["detail"] = incident->detail.substr(0, 1024);
        entry.detail["dropped"] = static_cast<std::int64_t>(incident->dropped);
        entry.detail["at"] = FormatTime(incident->time);
        entry.detail["digest"] = Hex(crypto::Sha256(AsBytes(envelope)));
      } else {
        entry.detail["what"] = "the agent delivered an incident that its jailer did not sign";
      }
      RINGFENCE_TRY(Core::Record(db, entry));
    }
    return {};
  }));
  call.core.counters().incidents += envelopes.size();
  return net::Response::OfJson(200,
                               JsonObject{{"taken", static_cast<std::int64_t>(envelopes.size())}});
}

}  // namespace

void AgentJoin(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return Join(call); });
}
void AgentRenew(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return Renew(call); });
}
void AgentReport(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return TakeReport(call); });
}
void AgentCosign(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return TakeCosignature(call); });
}
void AgentIncidents(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return TakeIncidents(call); });
}

}  // namespace ringfence::server
