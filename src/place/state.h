#pragma once

// What placement looks at: how much of a node is free, and in which form somebody may get some of
// it. Nodes whose free resources are the same are one state; nothing here knows a node's name.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/mig_layout.h"
#include "model/isolation.h"

namespace ringfence::place {

inline constexpr std::size_t kGpusPerNodeMax = 16;
inline constexpr std::size_t kKindsMax = 4096;

// One GPU: how many thousandths of it are free; or, cut by MIG, which memory slices are taken.
using GpuCode = std::uint16_t;
inline constexpr GpuCode kIdle = 1000;
inline constexpr GpuCode kMigFlag = 0x8000;
inline constexpr GpuCode kMediaFlag = 0x0100;  // with MIG: the media extension is taken
inline constexpr bool IsMig(GpuCode code) { return (code & kMigFlag) != 0; }
inline constexpr gpu::MigMask MaskOf(GpuCode code) { return static_cast<gpu::MigMask>(code); }

// Machines of one build. What is absent is unlimited only where it says so.
struct NodeKind {
  std::string model;
  std::uint32_t cpu_milli = 0;
  std::uint32_t memory_mib = 0;
  std::uint32_t gpus = 0;
  std::uint32_t gpu_memory_mib = 0;      // of one GPU; 0: not known
  const gpu::MigBoard* board = nullptr;  // null: it cannot be cut
  auto operator<=>(const NodeKind&) const = default;
};

struct NodeState {
  std::uint16_t kind = 0;
  std::uint8_t gpus = 0;
  std::uint8_t sorts = 0;  // which sorts of work it has; kept for one method only
  std::uint32_t cpu_milli = 0;
  std::uint32_t memory_mib = 0;
  std::array<GpuCode, kGpusPerNodeMax> codes = {};  // descending; which GPU is which is elsewhere

  bool operator==(const NodeState&) const = default;
  void Sort() { std::sort(codes.begin(), codes.begin() + gpus, std::greater<>()); }
};
struct NodeStateHash {
  std::size_t operator()(const NodeState& state) const {
    std::uint64_t hash =
        (std::uint64_t{state.kind} << 16U | std::uint64_t{state.gpus} << 8U | state.sorts) *
        0x9E3779B97F4A7C15ULL;
    const auto mix = [&hash](std::uint64_t value) {
      hash = (hash ^ value) * 0xBF58476D1CE4E5B9ULL;
      hash ^= hash >> 29U;
    };
    mix(std::uint64_t{state.cpu_milli} << 32U | state.memory_mib);
    for (std::size_t i = 0; i < kGpusPerNodeMax; i += 4) {
      mix(std::uint64_t{state.codes[i]} << 48U | std::uint64_t{state.codes[i + 1]} << 32U |
          std::uint64_t{state.codes[i + 2]} << 16U | state.codes[i + 3]);
    }
    return hash;
  }
};

// How many thousandths of a GPU are free.
inline std::uint32_t FreeMilli(const NodeKind& kind, GpuCode code) {
  if (!IsMig(code)) {
    return code;
  }
  const auto taken = static_cast<std::uint32_t>(__builtin_popcount(MaskOf(code)));
  return (kind.board->slices - taken) * kIdle / kind.board->slices;
}

// What somebody wants on one node.
enum class What : std::uint8_t { kNoGpu, kWhole, kShare, kProfile, kGpuMemory };
struct Demand {
  What what = What::kNoGpu;
  std::uint32_t gpus = 0;            // kWhole: how many
  std::uint32_t milli = 0;           // kShare: thousandths of one GPU, 1 to 1000
  std::string profile = {};          // kProfile: "1g.18gb"
  std::uint32_t gpu_memory_mib = 0;  // kGpuMemory: so much of one GPU's memory
  std::uint32_t cpu_milli = 0;
  std::uint32_t memory_mib = 0;
  std::vector<std::string> models = {};  // any of these; empty: any
  model::IsolationClass least = model::IsolationClass::kMps;
  bool reshape = true;  // may turn MIG on or off on an idle GPU
  bool spread = false;  // on the emptiest nodes, not the fullest

  auto operator<=>(const Demand&) const = default;
};
Status CheckDemand(const Demand& demand);

// How a kind of node can satisfy a demand.
struct Form {
  enum class Kind : std::uint8_t { kNoGpu, kWhole, kShare, kMig };
  Kind kind = Kind::kNoGpu;
  std::uint8_t gpus = 0;
  std::uint8_t profile = 0;  // kMig: in the board's list
  std::uint16_t milli = 0;   // kShare
  bool operator==(const Form&) const = default;
};
// The class of a slice of this form: a whole GPU is `gpu`, a MIG instance `mig`, a share `time`.
model::IsolationClass ClassOf(const Form& form);
// All of them; none: this kind can never do it.
std::vector<Form> FormsOn(const Demand& demand, const NodeKind& kind);

// The GPU after `form` was put on it, at `start` where the form is MIG; it must fit.
GpuCode Take(const NodeKind& kind, const Form& form, GpuCode code, std::uint32_t start);
GpuCode GiveBack(const NodeKind& kind, const Form& form, GpuCode code, std::uint32_t start);
// Whether one GPU of `code` can host it. For a whole GPU: this one.
bool Fits(const NodeKind& kind, const Form& form, GpuCode code, std::uint32_t start, bool reshape);
// Where a MIG form may begin at all; {0} for the others.
const std::vector<std::uint32_t>& StartsOf(const NodeKind& kind, const Form& form);

}  // namespace ringfence::place
