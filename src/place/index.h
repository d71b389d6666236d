#pragma once

// The nodes of a fleet, by how much of them is free, so that a decision looks at states and not at
// nodes. For each demand that was asked before, the states that can host it lie in a heap by what
// it would cost there. A change of one node makes one state, which is worked into the heaps a part
// at a time, and into that of a demand before it is next asked. A decision therefore costs the
// logarithm of the fleet, and a change the number of demands known, whatever the fleet's size.
// One thread at a time. Tenants are unknown here: a Fence says where somebody may not go.

#include <bitset>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <unordered_map>
#include <vector>

#include "place/loss.h"

namespace ringfence::place {

inline constexpr std::size_t kNodesMax = 1'000'000;
inline constexpr std::size_t kDemandsMax = 512;  // known at once; the one unused longest goes first

struct Choice {
  std::uint32_t node = 0;
  Form form;
  std::array<std::uint8_t, kGpusPerNodeMax> gpus = {};  // as many as the form has
  std::uint32_t start = 0;                              // MIG: first memory slice
  bool reshapes = false;                                // MIG goes on or off on a GPU
  std::uint32_t cpu_milli = 0;
  std::uint32_t memory_mib = 0;
};

// Where somebody may go.
class Fence {
 public:
  virtual ~Fence() = default;
  virtual bool NodeOpen(std::uint32_t node) const = 0;
  virtual bool GpuOpen(std::uint32_t node, std::uint32_t gpu, const Form& form) const = 0;
};

class NodeIndex {
 public:
  // The workload must outlive it.
  NodeIndex(Workload& workload, Method method, std::uint64_t seed = 1);

  // All of it free. `codes` where it is not: kIdle for a GPU that is free, 0 for one that may not
  // be used.
  std::uint32_t AddNode(std::uint16_t kind);
  std::uint32_t AddNode(std::uint16_t kind, std::vector<GpuCode> codes);
  // Places nobody on a node until it is back; what is there stays there.
  void SetInService(std::uint32_t node, bool in_service);

  // Checked by CheckDemand before. The number stays good until kDemandsMax others were asked.
  std::uint32_t DemandNumber(const Demand& demand);
  // Where it costs least, or nothing where nothing fits. Changes nothing.
  std::optional<Choice> Choose(std::uint32_t demand, const Fence* fence = nullptr);
  void Apply(const Choice& choice);
  void Release(const Choice& choice);

  std::size_t nodes() const { return nodes_.size(); }
  std::size_t states() const { return live_states_; }
  std::uint16_t KindOf(std::uint32_t node) const { return nodes_[node].kind; }
  const std::array<GpuCode, kGpusPerNodeMax>& Codes(std::uint32_t node) const {
    return nodes_[node].codes;
  }
  const std::vector<NodeKind>& kinds() const { return workload_.kinds(); }
  std::uint32_t FreeCpu(std::uint32_t node) const { return nodes_[node].cpu_milli; }
  std::uint32_t FreeMemory(std::uint32_t node) const { return nodes_[node].memory_mib; }

 private:
  struct Node {
    std::uint16_t kind = 0;
    bool in_service = true;
    std::uint32_t state = 0;
    std::uint32_t cpu_milli = 0;
    std::uint32_t memory_mib = 0;
    std::array<GpuCode, kGpusPerNodeMax> codes = {};
    std::array<std::uint16_t, 8> sorts = {};  // how many of each sort; for clustering
  };
  struct State {
    NodeState state;
    Measure measure;
    std::set<std::uint32_t> nodes;
  };
  struct Entry {
    double loss = 0;
    std::uint32_t state = 0;
    std::uint32_t generation = 0;
    bool operator<(const Entry& other) const {  // the cheapest on top of the heap
      return loss != other.loss ? loss > other.loss : state > other.state;
    }
  };
  struct Known {
    Forms forms;
    std::vector<Entry> heap;
    std::uint64_t used = 0;
  };

  struct Pending {  // a new state that not every heap has yet
    std::uint32_t state = 0;
    std::uint32_t generation = 0;
    std::size_t next = 0;             // demands below this have it
    std::bitset<kDemandsMax> learnt;  // and these
  };

  NodeState StateOf(const Node& node) const;
  void Enter(std::uint32_t node);
  void Leave(std::uint32_t node);
  bool Learn(std::uint32_t state, Known& known);  // whether it can be hosted there
  void CatchUp(std::uint32_t demand);
  void LearnSome();
  bool Stale(const Entry& entry) const;
  void DropStale(Known& known);
  void SweepSome();
  std::optional<Choice> Take(const Known& known, const State& state, const Fence* fence);
  std::optional<Choice> OnNode(const Known& known, const Option& option, std::uint32_t node,
                               const Fence* fence) const;
  std::optional<Choice> FirstFit(const Known& known, const Fence* fence) const;
  std::optional<Choice> AtRandom(const Known& known, const Fence* fence);
  std::optional<Choice> InOrder(const Known& known, std::uint32_t node, const Fence* fence) const;
  void Change(const Choice& choice, bool take);

  Workload& workload_;
  Method method_;
  Losses losses_;
  std::mt19937_64 dice_;
  std::vector<Node> nodes_;
  std::vector<State> states_;
  std::vector<std::uint32_t> generations_;  // of states_; apart, as heaps ask for them often
  std::vector<std::uint32_t> free_states_;
  std::unordered_map<NodeState, std::uint32_t, NodeStateHash> by_state_;
  std::size_t live_states_ = 0;
  std::vector<Known> known_;
  std::map<Demand, std::uint32_t> by_demand_;
  std::uint64_t clock_ = 0;
  std::size_t swept_ = 0;
  std::deque<Pending> pending_;
};

}  // namespace ringfence::place
