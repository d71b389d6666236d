#pragma once

// Nodes and pods of a cluster as CSV, in the form of the public GPU-sharing trace of 2023:
//   sn,cpu_milli,memory_mib,gpu,model
//   name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,...
// Columns are found by the names in the first line; others are passed over.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "place/state.h"
#include "place/workload.h"

namespace ringfence::place {

inline constexpr std::size_t kTraceBytesMax = std::size_t{256} << 20U;
inline constexpr std::size_t kTraceRowsMax = 2'000'000;
inline constexpr std::size_t kTypicalMax = 512;  // tasks of a workload; rarer ones are left out

struct TraceNodes {
  std::vector<NodeKind> kinds;
  std::vector<std::uint16_t> nodes;  // the kind of each
  std::uint64_t gpus() const;
};
struct TracePod {
  Demand demand;
  std::int64_t created = 0;  // seconds
};

// Errors say "nodes.csv:7:3: ..." with line and column of the field, both from 1.
Result<TraceNodes> ParseTraceNodes(std::string_view text, const std::string& file);
// In order of creation_time, those of the same second as they stand. `gpu_spec` lists models with
// "|" between; `num_gpu` above 1 takes whole GPUs. A column `profile`, where there is one, names a
// MIG profile instead of num_gpu and gpu_milli.
Result<std::vector<TracePod>> ParseTracePods(std::string_view text, const std::string& file);

// The workload as its pods are: each demand with how often it is there.
std::vector<TypicalTask> TypicalOf(const std::vector<TracePod>& pods);
// Thousandths of GPUs that a demand takes. A MIG profile counts by its memory slices.
std::uint64_t MilliOf(const Demand& demand, const std::vector<NodeKind>& kinds);

}  // namespace ringfence::place
