#pragma once

// What a placement costs, by method: the choice is the one that costs least.

#include <cstdint>
#include <string_view>
#include <vector>

#include "place/workload.h"

namespace ringfence::place {

enum class Method {
  kFirstFit,    // the first node, and on it the first GPU
  kBestFit,     // the node with least left: GPUs, and with a tenth of their weight CPU
  kRandom,      // any that fits
  kDotProduct,  // the node whose free room points least the way of the task's demand
  kPacking,     // GPUs in use first, then idle ones of nodes in use, then idle nodes
  kClustering,  // nodes with the same sort of task first
  kFgd,         // fragmentation gradient descent
  kRingfence,   // least loss of Workload::Worth
};
std::string_view Name(Method method);
Result<Method> ParseMethod(std::string_view text);
inline constexpr Method kMethods[] = {Method::kFirstFit,   Method::kBestFit,  Method::kRandom,
                                      Method::kDotProduct, Method::kPacking,  Method::kClustering,
                                      Method::kFgd,        Method::kRingfence};

// One way to put a form on a node of some state.
struct Option {
  double loss = 0;
  Form form;
  GpuCode code = 0;  // of the GPU to take, for one GPU
  std::uint32_t start = 0;
};

// What one demand can do on each kind of node.
struct Forms {
  Demand demand;
  std::vector<std::vector<Form>> on;  // by kind
};

// A sort of task: no GPU, a share, one GPU, two, ... as a bit of NodeState::sorts.
std::uint8_t SortOf(const Form& form);

// Of a node as it is: what every option on it starts from. Kept by the caller.
struct Measure {
  double potential = 0;
  double filling = 0;
  std::uint32_t free_milli = 0;
  std::uint32_t idle = 0;  // GPUs
};

class Losses {
 public:
  // The workload must outlive it.
  Losses(Workload& workload, Method method);

  Measure MeasureOf(const NodeState& state);
  // The best option on a node of this state. False: none.
  bool Best(const NodeState& state, const Measure& measure, const Forms& forms, Option& best);
  // All of them, cheapest first.
  std::vector<Option> All(const NodeState& state, const Measure& measure, const Forms& forms);

 private:
  struct Left;  // what a node has after its CPU and memory are taken
  template <typename Visit>
  void ForEach(const NodeState& state, const Measure& measure, const Forms& forms, Visit&& visit);
  double Loss(const NodeState& state, const Measure& measure, const Demand& demand,
              const Form& form, Left& left, GpuCode before, GpuCode after);

  Workload& workload_;
  Method method_;
  double cpu_most_ = 1, memory_most_ = 1, gpus_most_ = 1;
  double cpu_tie_ = 0, gpu_tie_ = 0;
};

}  // namespace ringfence::place
