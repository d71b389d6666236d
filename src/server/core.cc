#include "server/core.h"

#include <algorithm>
#include <optional>

#include "crypto/random.h"
#include "lease/life.h"
#include "os/log.h"
#include "server/queue.h"
#include "server/shared_gpus.h"
#include "store/shared_records.h"

namespace ringfence::server {
namespace {

SecretBytes CopyOf(const SecretBytes& secret) { return SecretBytes(secret.Reveal()); }

// A lease that no node fetched within this time is given up.
constexpr Milliseconds kPlacedMax = std::chrono::minutes(2);
// Fetching the files of the log within this time is one reading.
constexpr Milliseconds kLogCopyMax = std::chrono::minutes(10);
// How often a server that hears of a node says so to the others; less than a node's silence.
constexpr Milliseconds kPulseEvery = std::chrono::seconds(2);
// What servers announce to each other besides the topics that requests wait for.
constexpr std::string_view kLogTopic = "log";

}  // namespace

audit::Actor ActorOf(const Caller& caller) {
  return {caller.principal, caller.kind, caller.via, caller.address};
}

Core::Core(Parts parts, const Clock& clock)
    : clock_(clock),
      started_(clock.Now()),
      database_(std::move(parts.database)),
      keys_(std::move(parts.keys)),
      mint_(CopyOf(keys_.token)),
      policy_folder_(std::move(parts.policy_folder)),
      shared_(parts.shared),
      keep_output_(parts.keep_output),
      local_principal_(std::move(parts.local_principal)),
      policy_(std::move(parts.policy)),
      policy_version_(parts.policy_version),
      policy_loaded_(clock.Now()) {}

// Other servers' announcements would reach what goes away first.
Core::~Core() { database_->Listen({}); }

audit::Entry Core::NewEntry(const audit::Actor& actor, std::string_view action) const {
  audit::Entry entry;
  entry.time = Now();
  entry.id = crypto::RandomId("a");
  entry.actor = actor;
  entry.action = action;
  entry.policy = policy()->digest();
  return entry;
}

Status Core::Record(store::Connection& db, const audit::Entry& entry) {
  RINGFENCE_ASSIGN(const Bytes bytes, entry.ToBytes());
  return store::AppendAudit(db, entry.action, entry.lease, bytes);
}

Status Core::Change(const std::function<Status(store::Connection&)>& work) {
  const bool has_place = changes_.fetch_add(1) < kChangesAtOnceMax;
  const Status written =
      has_place ? database_->Write(work)
                : Status(Error{Code::kExhausted, "too many changes are waiting for the disk",
                               "wait as long as Retry-After says"});
  changes_.fetch_sub(1);
  RINGFENCE_TRY(written);
  if (sequencer_ != nullptr) {
    sequencer_->Wake();
  }
  if (detector_ != nullptr) {
    detector_->Wake();
  }
  database_->Announce(std::string(kLogTopic));
  return {};
}

Status Core::RecordAlone(const audit::Entry& entry) {
  return Change([&](store::Connection& db) { return Record(db, entry); });
}

audit::Entry Core::StepEntry(const audit::Actor& actor, std::string_view action,
                             const model::Lease& lease) const {
  audit::Entry entry = NewEntry(actor, action);
  entry.tenant = lease.request.tenant.text();
  entry.lease = lease.id;
  entry.node = lease.node;
  entry.gpus = lease.gpus;
  entry.result = "ok";
  entry.detail["state"] = std::string(Name(lease.state));
  return entry;
}

bool Core::BeginsLogCopy(const std::string& token) {
  const std::lock_guard lock(mutex_);
  const Timestamp now = Now();
  std::erase_if(log_copies_, [&](const auto& copy) { return now - copy.second > kLogCopyMax; });
  return log_copies_.emplace(token, now).second;
}

void Core::SawNode(const std::string& node) {
  const std::lock_guard lock(mutex_);
  pulses_[node].last_seen = Now();
}

void Core::SetWitnessed(const std::string& node, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  pulses_[node].witnessed_size = size;
}

Status Core::KeepPulses() {
  std::map<std::string, store::Pulse> news;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [node, pulse] : pulses_) {
      if (shared_ && pulse.last_seen - pulse.stored >= kPulseEvery) {
        news[node] = {pulse.last_seen, pulse.witnessed_size};
        pulse.stored = pulse.last_seen;
      }
    }
  }
  if (news.empty()) {
    return {};
  }
  return database_->Write([&](store::Connection& db) -> Status {
    for (const auto& [node, pulse] : news) {
      RINGFENCE_TRY(store::PutPulse(db, node, pulse));
    }
    return {};
  });
}

Status Core::KeepUses() {
  const std::vector<store::AccessUse> uses = uses_.Take();
  if (uses.empty()) {
    return {};
  }
  const Status kept = database_->Write([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const bool has_records, store::HasAccessRecords(db));
    if (!has_records) {
      return {};
    }
    RINGFENCE_TRY(store::SettleFact(db, kUsesSinceFact, FormatTime(uses.front().first)));
    return store::AddAccessUses(db, uses);
  });
  if (!kept.has_value()) {
    uses_.Return(uses);
  }
  return kept;
}

void Core::Notify(const std::string& topic) {
  waiters_.Notify(topic);
  database_->Announce(topic);
}

void Core::Heard(const std::string& topic) {
  if (topic.empty() || topic == kLogTopic) {
    if (sequencer_ != nullptr) {
      sequencer_->Wake();
    }
    if (detector_ != nullptr) {
      detector_->Wake();
    }
  }
  if (topic.empty() || topic == kPolicyTopic) {
    FollowPolicy();
  }
  if (topic.empty()) {
    waiters_.NotifyAll();
  } else {
    waiters_.Notify(topic);
  }
}

void Core::NotifyAllWork() {
  std::vector<std::string> nodes;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, pulse] : pulses_) {
      nodes.push_back(name);
    }
  }
  for (const std::string& node : nodes) {
    waiters_.Notify("work:" + node);  // other servers tell their own nodes
  }
}

Status Core::AddPulses(store::Connection& db, std::vector<model::Node>& nodes) const {
  std::map<std::string, store::Pulse> pulses;
  if (shared_) {
    RINGFENCE_ASSIGN(pulses, store::ListPulses(db));
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [name, pulse] : pulses_) {
    store::Pulse& known = pulses[name];
    if (pulse.last_seen >= known.seen) {
      known = {pulse.last_seen, pulse.witnessed_size};
    }
  }
  for (model::Node& node : nodes) {
    const auto found = pulses.find(node.name);
    node.heard = found != pulses.end();
    if (node.heard) {
      node.last_seen = std::max(node.last_seen, found->second.seen);
      node.witnessed_size = found->second.witnessed;
    }
  }
  return {};
}

Result<std::vector<model::Node>> Core::Nodes(store::Connection& db) const {
  RINGFENCE_ASSIGN(std::vector<model::Node> nodes, store::ListNodes(db));
  RINGFENCE_TRY(AddPulses(db, nodes));
  return nodes;
}

Result<model::Node> Core::NodeNamed(store::Connection& db, const std::string& name) const {
  std::vector<model::Node> nodes(1);
  RINGFENCE_ASSIGN(nodes[0], store::GetNode(db, name));
  RINGFENCE_TRY(AddPulses(db, nodes));
  return nodes[0];
}

Status Sweep(Core& core) {
  std::vector<std::string> overdue;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const auto leases, store::OpenLeases(db));
    for (const model::Lease& lease : leases) {
      if (lease.state == model::LeaseState::kPlaced && core.Now() - lease.updated > kPlacedMax) {
        overdue.push_back(lease.id);
      }
    }
    return {};
  }));
  for (const std::string& id : overdue) {
    RINGFENCE_TRY(core.Change([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(model::Lease lease, store::GetLease(db, id));
      if (lease.state != model::LeaseState::kPlaced) {
        return {};  // fetched meanwhile
      }
      // Its grant never left the server, so its GPUs were not touched and stay clean.
      RINGFENCE_TRY(ReleaseUntouched(db, lease));
      lease.outcome = "failed";
      lease.reason = "node " + lease.node + " did not fetch it in time";
      RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kClosed, core.Now(), lease.reason));
      lease.ended = core.Now();
      RINGFENCE_TRY(store::UpdateLease(db, lease));
      audit::Entry entry = core.StepEntry({"ringfence", "system", "", ""}, "lease.close", lease);
      entry.time = *lease.ended;
      entry.detail["reason"] = lease.reason;
      return Core::Record(db, entry);
    }));
    core.NotifyLease(id);
  }
  RINGFENCE_TRY(ServeQueue(core));
  return core.database().Write([&](store::Connection& db) -> Status {
    RINGFENCE_TRY(store::ForgetOutput(db, core.Now() - core.keep_output()));
    return store::ForgetAnswers(db, core.Now());
  });
}

}  // namespace ringfence::server
