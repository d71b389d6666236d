#pragma once

// Runs pods against a cluster and counts what was placed, for comparing methods.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "place/index.h"
#include "place/trace.h"

namespace ringfence::place {

// trace: the pods in their order, none leaving. inflate: pods drawn at random from them, with
// repetition, until their demand is `arrival_percent` of the GPUs, none leaving.
enum class Experiment { kTrace, kInflate };

struct ReplayOptions {
  Method method = Method::kRingfence;
  Experiment experiment = Experiment::kTrace;
  std::uint64_t seed = 1;
  std::uint32_t arrival_percent = 130;
  WorthWeights weights = {};
};

struct ReplayPoint {     // how it stood when so much had been asked for
  double arrived = 0;    // of the GPUs, 1 is all
  double allocated = 0;  // of the GPUs
};

struct ReplayReport {
  std::uint64_t nodes = 0, gpus = 0;
  std::uint64_t pods = 0, placed = 0, gpu_pods = 0, gpu_pods_placed = 0;
  double demanded = 0, allocated = 0;  // of the GPUs
  double idle = 0, fragments = 0;      // of the GPUs: whole ones left, and parts of shared ones
  std::uint64_t violations = 0;        // found by counting again, on books of its own
  std::uint64_t states = 0;            // distinct states of nodes at the end
  double filling_bound = 0;            // what this mix can fill at most, of the commonest kind
  std::vector<ReplayPoint> points;     // at each tenth from 80 % on
  std::vector<double> decision_us;     // of each decision, with the change it makes; ascending
};

// `now_us` is a clock in microseconds, as this library has none.
ReplayReport Replay(const TraceNodes& nodes, const std::vector<TracePod>& pods,
                    const ReplayOptions& options, const std::function<double()>& now_us);
double Percentile(const std::vector<double>& ascending, double percent);

}  // namespace ringfence::place
