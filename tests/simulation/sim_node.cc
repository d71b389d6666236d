#include "sim_node.h"

#include "audit/note.h"
#include "base/check.h"
#include "base/encoding.h"
#include "crypto/random.h"
#include "os/file.h"
#include "sim_agent.h"

namespace ringfence::simulation {

SimNode::SimNode(Place place, std::string name, std::size_t gpus)
    : place_(std::move(place)),
      scheduler_(place_.scheduler),
      name_(std::move(name)),
      clock_(scheduler_),
      receipt_seed_(crypto::RandomBytes(32)),
      witness_seed_(crypto::RandomBytes(32)) {
  for (std::size_t i = 0; i < gpus; ++i) {
    SimGpu gpu;
    gpu.uuid = "GPU-" + name_ + "-" + std::to_string(i);
    gpu.minor = static_cast<std::uint32_t>(i);
    gpus_.push_back(std::move(gpu));
  }
  RINGFENCE_CHECK(os::MakeDirs(place_.folder + "/jailer", 0700).has_value());
  RINGFENCE_CHECK(os::MakeDirs(place_.folder + "/agent", 0700).has_value());
}

SimNode::~SimNode() = default;

jailer::Identity SimNode::Identity() const {
  auto key = crypto::SigningKey::FromSeed(SecretBytes(ByteView(receipt_seed_)));
  RINGFENCE_CHECK(key.has_value());
  return {std::move(*key), grant_key_, "", std::nullopt};
}

std::string SimNode::ReceiptKey() const { return Base64(Identity().key.public_key().raw()); }

std::string SimNode::KeyProof(const SecretBytes& jailer_half) const {
  return isolate::JailerKeyProof(jailer_half, Identity().key.public_key());
}

std::string SimNode::WitnessVkey() const {
  const auto key = crypto::SigningKey::FromSeed(SecretBytes(ByteView(witness_seed_)));
  return audit::VerifierKey("ringfence.dev/node/" + name_, 4, key->public_key());
}

void SimNode::Joined(const crypto::PublicKey& grant_key, const agent::Credentials& credentials) {
  grant_key_ = grant_key;
  RINGFENCE_CHECK(
      agent::SaveCredentials(place_.folder + "/agent/credentials.json", credentials).has_value());
}

std::string SimNode::fingerprint() {
  const auto credentials = agent::LoadCredentials(place_.folder + "/agent/credentials.json");
  return crypto::ReadCertificate(credentials->certificate_pem)->fingerprint;
}

void SimNode::Post(Milliseconds delay, std::function<void()> work) {
  scheduler_.After(delay, [this, epoch = jailer_->epoch, work = std::move(work)] {
    if (jailer_ != nullptr && jailer_->epoch == epoch) {
      work();
    }
  });
}

void SimNode::PowerOn() {
  if (!start_due_ && jailer_ == nullptr) {
    start_due_ = true;
    scheduler_.After(scheduler_.chance().Time(50, 3000), [this] {
      start_due_ = false;
      StartJailer();
    });
  }
}

// As the jailer's main does: the records, what an earlier one left running, then the agent.
void SimNode::StartJailer() {
  if (jailer_ != nullptr || scheduler_.HasTasks(agent_)) {
    PowerOn();  // an agent of before still holds on
    return;
  }
  auto records = jailer::Records::Open(place_.folder + "/jailer", "boot-" + std::to_string(boot_),
                                       clock_.Now());
  if (!records.has_value()) {
    place_.judge.Condemn("the jailer of " + name_ + " does not start: " + records.error().message);
    return;
  }
  jailer_ = std::make_unique<Jailer>(++epoch_, std::move(*records));
  std::vector<std::string> unfinished;
  for (const auto& [lease, record] : jailer_->records.leases()) {
    if (record.state == isolate::BoxState::kPreparing ||
        record.state == isolate::BoxState::kRunning) {
      unfinished.push_back(lease);
    }
  }
  for (const std::string& lease : unfinished) {
    boxes_.erase(lease);
    jailer_->records.SetState(lease, isolate::BoxState::kEnded, clock_.Now());
  }
  jailer::Hands& hands = *this;
  jailer_->desk = std::make_unique<jailer::Desk>(
      jailer::Desk::Parts{
          name_,
          Identity(),
          {},
          [this, epoch = epoch_](isolate::Reply reply, std::vector<os::UniqueFd> fds) {
            if (jailer_ == nullptr || jailer_->epoch != epoch) {
              return;
            }
            auto call = jailer_->calls.extract(reply.id);
            if (call.empty()) {
              return;  // the agent is gone
            }
            call.mapped()->answered = true;
            call.mapped()->reply = std::move(reply);
            call.mapped()->fds = std::move(fds);
            scheduler_.Wake(call.mapped()->ticket);
          }},
      jailer_->records, hands, clock_);
  scheduler_.Trace(name_ + " jailer starts");
  StartAgent();
}

void SimNode::StartAgent() {
  agent_ = scheduler_.NewGroup();
  scheduler_.Launch(agent_, [this, epoch = epoch_] {
    const auto gone = [this, epoch] {
      scheduler_.After(Milliseconds(0), [this, epoch] { AgentGone(epoch); });
    };
    try {
      AgentMain(epoch);
    } catch (const Killed&) {
      gone();
      throw;
    }
    gone();
  });
}

void SimNode::AgentMain(std::uint64_t epoch) {
  SimJailerClient client(*this, epoch);
  auto credentials = agent::LoadCredentials(place_.folder + "/agent/credentials.json");
  RINGFENCE_CHECK(credentials.has_value());
  const auto log_key = audit::ParseVerifierKey(credentials->log_vkey);
  auto key = crypto::SigningKey::FromSeed(SecretBytes(ByteView(witness_seed_)));
  auto witness = audit::Witness::Open(place_.folder + "/agent/witness.state",
                                      "ringfence.dev/node/" + name_, std::move(*key), *log_key);
  RINGFENCE_CHECK(witness.has_value());
  agent::CredentialHolder holder(*credentials);
  SimSurroundings surroundings(*this, holder);
  const Status ended = agent::Tend(
      {name_, place_.folder + "/agent/credentials.json", client, holder, *witness, surroundings});
  scheduler_.Trace(name_ + " agent could not begin: " + ended.error().message);
}

// Calls that still wait never return: whoever made them is gone, or about to be.
void SimNode::EndCalls(Jailer& jailer) {
  jailer.pair_open = false;
  jailer.calls.clear();
}

// The jailer sees its agent's end: it ends every box and worker, then itself.
void SimNode::AgentGone(std::uint64_t epoch) {
  if (jailer_ == nullptr || jailer_->epoch != epoch) {
    return;
  }
  scheduler_.Trace(name_ + " agent is gone");
  EndCalls(*jailer_);
  jailer_->desk->Close();
  for (const auto& [lease, box] : boxes_) {
    Post(scheduler_.chance().Time(5, 500),
         [this, lease = lease] { BoxEnds(lease, "signalled 9\n"); });
  }
  auto workers = std::move(workers_);
  workers_.clear();
  for (auto& [number, done] : workers) {
    done(Error{Code::kUnavailable, "the worker was ended by signal 9"});
  }
  LeaveIfIdle();
}

void SimNode::LeaveIfIdle() {
  if (jailer_ == nullptr || jailer_->pair_open) {
    return;
  }
  if (!boxes_.empty()) {
    Post(Milliseconds(100), [this] { LeaveIfIdle(); });
    return;
  }
  DropJailer();
  PowerOn();
}

void SimNode::DropJailer() {
  EndCalls(*jailer_);
  workers_.clear();
  jailer_ = nullptr;
  scheduler_.Trace(name_ + " jailer is gone");
}

void SimNode::CrashAgent() {
  scheduler_.Trace(name_ + " agent is killed");
  scheduler_.Kill(agent_);
}

// Killed without a word. Its agent ends when it sees the end of the pair, before any call on it
// returns; its boxes follow when they see its end of their pipes closed.
void SimNode::CrashJailer() {
  if (jailer_ == nullptr) {
    return;
  }
  scheduler_.Trace(name_ + " jailer is killed");
  DropJailer();
  scheduler_.After(scheduler_.chance().Time(0, 20),
                   [this, agent = agent_] { scheduler_.Kill(agent); });
  for (auto& [lease, box] : boxes_) {
    box.exit.Reset();
    scheduler_.After(scheduler_.chance().Time(0, 3000), [this, lease = lease, boot = boot_] {
      const auto found = boxes_.find(lease);
      if (boot == boot_ && found != boxes_.end() && !found->second.exit.valid()) {
        boxes_.erase(found);
        WakePollers();
      }
    });
  }
  WakePollers();
  PowerOn();
}

void SimNode::Reboot() {
  scheduler_.Trace(name_ + " reboots");
  if (jailer_ != nullptr) {
    DropJailer();
  }
  scheduler_.Kill(agent_);
  boxes_.clear();
  ++boot_;
  for (SimGpu& gpu : gpus_) {
    gpu.residue = "?";
  }
  WakePollers();
  PowerOn();
}

int SimNode::Records() const {
  return jailer_ == nullptr ? -1 : static_cast<int>(jailer_->records.leases().size());
}

bool SimNode::BoxRuns(const std::string& lease) const {
  const auto found = boxes_.find(lease);
  return found != boxes_.end() && found->second.running;
}

void SimNode::WakePollers() {
  auto pollers = std::move(pollers_);
  pollers_.clear();
  for (const Scheduler::Ticket& ticket : pollers) {
    scheduler_.Wake(ticket);
  }
}

}  // namespace ringfence::simulation
