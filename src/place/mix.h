#pragma once

// A made-up cluster and workload of MIG slices, for comparing methods where no public trace is.

#include <cstdint>

#include "place/trace.h"

namespace ringfence::place {

struct Mix {
  TraceNodes nodes;
  std::vector<TracePod> pods;
};

// `nodes` machines: six of ten with eight H200, three with eight A100 of 80 GB, one with four A30.
// Pods come in random order until they ask for 130 % of the GPUs. In a hundred: on the H200 22 of
// 1g.18gb, 8 of 1g.35gb, 12 of 2g.35gb, 10 of 3g.71gb, 4 of 4g.71gb; on the A100 10 of 1g.10gb, 6
// of 2g.20gb, 6 of 3g.40gb; on the A30 4 of 1g.6gb, 2 of 2g.12gb; anywhere 8 of one whole GPU, 2 of
// two, 2 of four, 4 without GPU. CPU and memory follow the slice: 1.5 CPUs and 12 GiB for each of
// its memory slices, of an eighth of a GPU, half as much or twice as much in one of four each.
Mix MakeMigMix(std::uint64_t seed, std::uint32_t nodes);

}  // namespace ringfence::place
