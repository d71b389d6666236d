#pragma once

// MIG of one simulated GPU: its mode and its instances, in <root>/mig/<uuid>/state, so that every
// process sees the same. Both stand-ins read it; NVML's writes it.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu/mig_board.h"
#include "gpu/scenario.h"

namespace ringfence::sim {

struct MigCompute {
  std::uint32_t id = 0;
  std::uint32_t profile = 0;  // its compute slices give it
};

struct MigInstance {
  std::uint32_t id = 0;  // follows from the place, as on real boards
  std::uint32_t profile = 0;
  std::uint32_t start = 0;
  std::vector<MigCompute> computes;
};

struct MigState {
  bool enabled = false;
  std::vector<MigInstance> instances;  // by id

  MigInstance* Find(std::uint32_t id);
};

// Null where the GPU cannot be cut.
const gpu::MigBoard* BoardOf(const gpu::SimulatedGpu& gpu);
const gpu::MigProfile* ProfileOf(const gpu::MigBoard& board, std::uint32_t id);
// Whether one more may lie at `start`: the board's own rules.
bool MayPlace(const gpu::MigBoard& board, const MigState& state, const gpu::MigProfile& profile,
              std::uint32_t start);

MigState ReadMigState(const std::string& root, const gpu::SimulatedGpu& gpu);
// Changes the state under a lock of all processes. What `change` answers other than 0 changes
// nothing and is handed on. 999: the state could not be written.
int ChangeMigState(const std::string& root, const gpu::SimulatedGpu& gpu,
                   const std::function<int(MigState&)>& change);
// The files of one instance: who holds what of its memory, and the memory, as its last user left
// it. False: they could not be made.
bool MakeInstanceFiles(const std::string& root, const gpu::SimulatedGpu& gpu,
                       const MigInstance& instance);

// The MIG device, as the GPU that it is to CUDA.
gpu::SimulatedGpu SliceOf(const gpu::SimulatedGpu& gpu, const MigInstance& instance,
                          const MigCompute& compute);

// Capability nodes beneath `devices`; see Driver.
std::string CapPath(const std::string& devices, std::uint32_t minor);
bool MayUse(const std::string& devices, const gpu::SimulatedGpu& gpu, const MigInstance& instance,
            const MigCompute& compute);

}  // namespace ringfence::sim
