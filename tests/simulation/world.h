#pragma once

// One world from one seed: a server, some nodes, people and misfortune; then everything heals, and
// everything must come to a good end.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "judge.h"
#include "network.h"
#include "scheduler.h"
#include "sim_node.h"
#include "sim_server.h"
#include "users.h"

namespace ringfence::simulation {

struct WorldReport {
  std::uint64_t seed = 0;
  std::string verdict;  // empty: all held
  std::uint64_t steps = 0;
  std::uint64_t trace_hash = 0;
  std::vector<std::string> trace;  // the last lines
  Judge::Tally tally;
  std::uint64_t faults = 0;
  std::uint64_t requests = 0;
  std::uint64_t server_crashes = 0;
  Milliseconds time{0};
};

class World {
 public:
  World(std::uint64_t seed, std::string folder, std::size_t trace_kept);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  WorldReport Run();

 private:
  enum class Fault : std::uint8_t {
    kServerDies,
    kServerDiesAtWrites,
    kAgentDies,
    kJailerDies,
    kReboot,
    kPartition,
    kBadNetwork,
    kDiskFull,
    kServerClock,
    kNodeClock,
    kBadMemory,
    kGpuVanishes,
    kBadMachine,
    kLie,
    kCount,
  };

  void Begin();
  void Join(SimNode& node);
  void RunUntil(Milliseconds time);
  void PlanFault();
  void PlanUser();
  void Strike();
  void StrikeNode(Fault fault, SimNode& node);
  void StrikeServer(Fault fault);
  // Runs `undo` after a while, unless the world has healed by then.
  void For(Milliseconds time, std::function<void()> undo);
  Fault ChooseFault();
  void Heal();
  bool IsQuiet() const;
  std::string ResidueOn(const std::string& uuid) const;
  void Finish();

  const std::string folder_;
  Scheduler scheduler_;
  std::unique_ptr<policy::Policy> policy_;
  Judge judge_;
  SimServer server_;
  Network network_;
  Users users_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  WorldReport report_;
  bool healed_ = false;
  std::vector<int> weights_;
  Milliseconds fault_every_{0};
  Milliseconds user_every_{0};
  std::size_t gpus_max_ = 1;
};

}  // namespace ringfence::simulation
