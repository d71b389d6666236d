#include "server/core.h"

#include "crypto/random.h"
#include "lease/life.h"

namespace ringfence::server {
namespace {

SecretBytes CopyOf(const SecretBytes& secret) { return SecretBytes(secret.Reveal()); }

// A lease that no node fetched within this time is given up.
constexpr Milliseconds kPlacedMax = std::chrono::minutes(2);
// Fetching the files of the log within this time is one reading.
constexpr Milliseconds kLogCopyMax = std::chrono::minutes(10);

}  // namespace

audit::Actor ActorOf(const Caller& caller) {
  return {caller.principal, caller.kind, caller.via, caller.address};
}

Core::Core(Parts parts, const Clock& clock)
    : clock_(clock),
      database_(std::move(parts.database)),
      keys_(std::move(parts.keys)),
      mint_(CopyOf(keys_.token)),
      policy_folder_(std::move(parts.policy_folder)),
      output_(std::move(parts.output_folder)),
      policy_(std::move(parts.policy)),
      policy_loaded_(clock.Now()) {}

Timestamp Core::policy_loaded() const { return policy_loaded_; }

Result<std::shared_ptr<const policy::Policy>> Core::LoadPolicy() const {
  RINGFENCE_ASSIGN(std::unique_ptr<policy::Policy> loaded, policy::Policy::Load(policy_folder_));
  return std::shared_ptr<const policy::Policy>(std::move(loaded));
}

void Core::SetPolicy(std::shared_ptr<const policy::Policy> policy) {
  std::atomic_store(&policy_, std::move(policy));
  policy_loaded_ = Now();
}

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
  RINGFENCE_TRY(database_->Write(work));
  if (sequencer_ != nullptr) {
    sequencer_->Wake();
  }
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

std::uint64_t Core::Witnessed(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  const auto found = pulses_.find(node);
  return found == pulses_.end() ? 0 : found->second.witnessed_size;
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
    NotifyWork(node);
  }
}

void Core::AddPulse(model::Node& node) const {
  const std::lock_guard lock(mutex_);
  const auto found = pulses_.find(node.name);
  node.heard = found != pulses_.end();
  if (node.heard) {
    node.last_seen = std::max(node.last_seen, found->second.last_seen);
    node.witnessed_size = found->second.witnessed_size;
  }
}

Result<std::vector<model::Node>> Core::Nodes(store::Connection& db) const {
  RINGFENCE_ASSIGN(std::vector<model::Node> nodes, store::ListNodes(db));
  for (model::Node& node : nodes) {
    AddPulse(node);
  }
  return nodes;
}

Result<model::Node> Core::NodeNamed(store::Connection& db, const std::string& name) const {
  RINGFENCE_ASSIGN(model::Node node, store::GetNode(db, name));
  AddPulse(node);
  return node;
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
      for (const std::string& uuid : lease.gpus) {
        RINGFENCE_ASSIGN(model::Gpu gpu, store::GetGpu(db, uuid));
        lease::Free(gpu, gpu.last_receipt);
        RINGFENCE_TRY(store::PutGpu(db, gpu));
      }
      lease.outcome = "failed";
      lease.reason = "node " + lease.node + " did not fetch it in time";
      RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kClosed, core.Now(), lease.reason));
      lease.ended = core.Now();
      RINGFENCE_TRY(store::UpdateLease(db, lease));
      audit::Entry entry = core.StepEntry({"ringfence", "system", "", ""}, "lease.close", lease);
      entry.detail["reason"] = lease.reason;
      return Core::Record(db, entry);
    }));
    core.NotifyLease(id);
  }
  return core.database().Write(
      [&](store::Connection& db) { return store::ForgetAnswers(db, core.Now()); });
}

}  // namespace ringfence::server
