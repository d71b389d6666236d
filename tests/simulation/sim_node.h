#pragma once

// One machine: its GPUs and boxes are simulated; its jailer decides with the real desk over the
// real records, and its agent is the real one. What the machine really did (which box ran on which
// card, what was left in a card's memory) is kept here and judged against what is promised.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "jailer/desk.h"
#include "judge.h"
#include "network.h"
#include "scheduler.h"

namespace ringfence::simulation {

struct SimGpu {
  std::string uuid;
  std::uint32_t minor = 0;
  bool present = true;
  bool bad = false;           // does not keep what is written
  std::string residue = "?";  // whose data its memory may hold; empty: it was scrubbed
};

struct NodeFaults {
  int start_fails_in_1000 = 0;
  int worker_fails_in_1000 = 0;
  int take_down_fails_in_1000 = 0;
};

class SimNode final : private jailer::Hands {
 public:
  struct Place {
    Scheduler& scheduler;
    Network& network;
    Judge& judge;
    std::string folder;
  };
  SimNode(Place place, std::string name, std::size_t gpus);
  ~SimNode() override;

  const std::string& name() const { return name_; }
  std::vector<SimGpu>& gpus() { return gpus_; }
  SimClock& clock() { return clock_; }
  std::string fingerprint();

  // What joining needs, and what it gives.
  std::string ReceiptKey() const;
  std::string KeyProof(const SecretBytes& jailer_half) const;
  std::string WitnessVkey() const;
  void Joined(const crypto::PublicKey& grant_key, const agent::Credentials& credentials);

  void PowerOn();
  void CrashAgent();
  void CrashJailer();
  void Reboot();
  bool BoxRuns(const std::string& lease) const;
  std::size_t boxes() const { return boxes_.size(); }
  // Leases that the jailer still has a record of; -1: it is down.
  int Records() const;

  NodeFaults faults;

 private:
  friend class SimJailerClient;
  friend class SimSurroundings;
  friend class SimLine;

  struct Box {
    isolate::Grant grant;
    bool running = false;
    bool end_asked = false;
    bool timed_out = false;
    std::string exit_line;       // once it has ended
    Milliseconds give_up_at{0};  // of taking it down, when the agent is told
    os::UniqueFd out;            // write ends
    os::UniqueFd err;
    os::UniqueFd exit;
  };
  struct Call {
    Scheduler::Ticket ticket;
    bool answered = false;
    isolate::Reply reply;
    std::vector<os::UniqueFd> fds;
  };
  struct Jailer {
    Jailer(std::uint64_t number, jailer::Records opened)
        : epoch(number), records(std::move(opened)) {}
    std::uint64_t epoch;
    jailer::Records records;
    std::unique_ptr<jailer::Desk> desk;
    bool pair_open = true;
    std::map<std::uint32_t, std::shared_ptr<Call>> calls;
  };

  // The jailer's hands.
  bool full() const override { return workers_.size() >= 64; }
  void ReadInventory(Text done) override;
  void ScrubCards(const std::vector<gpu::WantedGpu>& gpus, Text done) override;
  Result<gpu::DriverFiles> FilesFor(const std::vector<gpu::WantedGpu>& gpus) const override;
  void StartBox(isolate::BoxPlan plan, Started started) override;
  void EndBox(const std::string& lease) override;

  void StartWorker(Milliseconds time, std::function<Result<std::string>()> work, Text done);
  Result<std::string> Inventory();
  Result<std::string> Scrub(const std::vector<gpu::WantedGpu>& gpus);
  void RunBox(const std::string& lease, const Started& started);
  void PlanEnd(const std::string& lease);
  void Terminate(const std::string& lease);
  void BoxEnds(const std::string& lease, const std::string& line);
  void TakeDown(const std::string& lease);

  // Runs later, if this jailer is still there then.
  void Post(Milliseconds delay, std::function<void()> work);
  void StartJailer();
  void StartAgent();
  void AgentMain(std::uint64_t epoch);
  void AgentGone(std::uint64_t epoch);
  void LeaveIfIdle();
  void DropJailer();
  void EndCalls(Jailer& jailer);
  void WakePollers();
  jailer::Identity Identity() const;

  Place place_;
  Scheduler& scheduler_;
  const std::string name_;
  SimClock clock_;
  std::vector<SimGpu> gpus_;
  Bytes receipt_seed_;
  Bytes witness_seed_;
  std::optional<crypto::PublicKey> grant_key_;
  std::uint64_t boot_ = 1;
  std::uint64_t epoch_ = 0;
  bool start_due_ = false;
  std::unique_ptr<Jailer> jailer_;
  Scheduler::Group agent_ = 0;
  std::map<std::string, Box> boxes_;
  std::map<std::uint64_t, Text> workers_;
  std::uint64_t next_worker_ = 1;
  std::vector<Scheduler::Ticket> pollers_;
  std::string certificate_;  // of fingerprint_
  std::string fingerprint_;
};

}  // namespace ringfence::simulation
