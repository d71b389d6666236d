#pragma once

// The work that is expected, and what room is worth to it. Two measures of a node's free room, both
// in thousandths of a GPU:
//   Usable: how much of it a task drawn at random from the workload could use now (its complement
//     is the fragmentation of "Beware of Fragmentation", USENIX ATC 2023);
//   Worth: how much of it is likely to be used in the end, from the best ways of filling GPUs with
//     this mix of tasks, and from how much CPU and memory these will need.
// One thread at a time: tables fill up as they are asked.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "place/state.h"

namespace ringfence::place {

struct TypicalTask {
  Demand demand;
  double weight = 0;  // relative; those of a workload sum to 1 once in there
};

// Weights of Worth. The defaults were chosen on seeds 101 to 104 of the inflation experiment.
struct WorthWeights {
  double filling = 0.95;  // of filling GPUs well, the rest to Usable
  double need = 0.55;     // CPU and memory to keep for each free GPU, of what the workload takes
  double doubt = 0.30;    // its deviation, of the same
};

// What of a node the tasks that fit its CPU and memory can use.
struct FitRow {
  std::vector<double> share;                             // by rank of the free thousandths
  std::vector<double> mig;                               // by MIG code: media, slices taken
  std::array<double, kGpusPerNodeMax + 1> several = {};  // by idle GPUs
};

class Workload {
 public:
  Workload(std::vector<TypicalTask> tasks, std::vector<NodeKind> kinds, WorthWeights weights = {});

  const std::vector<NodeKind>& kinds() const { return kinds_; }
  const std::vector<TypicalTask>& tasks() const { return tasks_; }
  // The row of a node of `kind` with so much CPU and memory left.
  const FitRow& Row(std::uint16_t kind, std::uint32_t cpu_milli, std::uint32_t memory_mib);
  double UsableShare(const FitRow& row, GpuCode code) const {
    if (!IsMig(code) || (row.mig.empty() && code == kMigFlag)) {
      return row.share[IsMig(code) ? share_steps_.size() : share_rank_[code]];
    }
    return row.mig.empty() ? 0 : row.mig[code & 0x1FFU];
  }
  // Of one GPU, from 0 to 1: what the best filling of the rest is, where 1 is a whole GPU.
  float Filling(std::uint16_t kind, GpuCode code) const {
    const Prices& prices = *prices_[kind];
    if (!IsMig(code) || (prices.mig.empty() && code == kMigFlag)) {
      return prices.share[IsMig(code) ? kIdle : code];
    }
    return prices.mig.empty() ? 0 : prices.mig[code & 0x1FFU];
  }
  // How much of `free_milli` the CPU and memory left will likely do for, from 0 to 1.
  double Sufficiency(std::uint32_t free_milli, std::uint32_t cpu_milli,
                     std::uint32_t memory_mib) const;

  double Usable(const NodeState& state);
  double Worth(const NodeState& state);
  const WorthWeights& weights() const { return weights_; }
  // The largest part of all GPUs that this mix can fill, by the linear bound on packing.
  double FillingBound(std::uint16_t kind) const { return prices_[kind]->bound; }

 private:
  struct Prices {
    std::vector<float> share;  // by free thousandths
    std::vector<float> mig;
    double bound = 1;
  };
  struct Item {  // one GPU's worth of a task, on one kind
    Form form;
    double demand;
  };
  struct Hosts {                     // which GPUs of a kind one task can use
    std::uint16_t share_rank = 0;    // those with at least this rank free; 0: none
    std::uint8_t several = 0;        // that many idle ones
    std::vector<std::uint16_t> mig;  // those of these MIG codes
  };
  Hosts HostsOf(const NodeKind& kind, const Demand& demand, const std::vector<Form>& forms) const;
  std::shared_ptr<const Prices> Price(const NodeKind& kind, const std::vector<Item>& items) const;
  FitRow MakeRow(std::uint16_t kind, std::uint32_t cpu_milli, std::uint32_t memory_mib) const;
  double Shortfall(double have, double per_gpu, double free_gpus, double root) const;

  std::vector<TypicalTask> tasks_;
  std::vector<NodeKind> kinds_;
  WorthWeights weights_;
  std::vector<std::vector<Hosts>> hosts_;                // [kind][task]
  std::vector<std::uint32_t> cpu_steps_, memory_steps_;  // distinct demands, ascending
  std::vector<std::uint16_t> share_rank_;                // of 0 to 1000
  std::vector<std::uint32_t> share_steps_;
  std::vector<std::vector<std::unique_ptr<FitRow>>> rows_;  // [kind][cpu rank, memory rank]
  std::vector<std::shared_ptr<const Prices>> prices_;       // [kind]
  double cpu_per_gpu_ = 0, memory_per_gpu_ = 0;
  std::vector<float> loss_;  // the normal loss function
  std::vector<float> root_;  // of free GPUs, by 10 thousandths
};

}  // namespace ringfence::place
