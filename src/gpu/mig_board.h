#pragma once

// How each board can be cut: MIG profiles and their placements, and AMD's partition modes. Data
// only; what a driver reports at run time wins where the two differ.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::gpu {

inline constexpr std::size_t kMigSlicesMax = 8;  // of memory, on every board with MIG so far

struct MigProfile {
  std::uint32_t id = 0;  // what the driver's calls take
  std::string name;      // "1g.18gb", "1g.18gb+me"
  std::uint32_t compute_slices = 0;
  std::uint32_t slices = 0;  // of memory: the size of its placements
  std::uint32_t memory_mib = 0;
  std::uint32_t processors = 0;  // streaming multiprocessors; 0: not known
  std::uint32_t count_max = 0;
  bool media = false;                 // has the board's one media extension
  std::vector<std::uint32_t> starts;  // memory slices where an instance may begin, ascending
};

// Where numbers come from: seen on the hardware by us; printed by the vendor's tools or code; or
// inferred (memory: its share of the board; placements: those of the other boards of seven slices).
enum class Known { kMeasured, kReported, kInferred };
std::string_view Name(Known known);

struct MigBoard {
  std::string name;     // "H200-141"
  std::string product;  // "NVIDIA H200 141 GB"
  std::uint32_t compute_slices = 0;
  std::uint32_t slices = 0;  // of memory
  Known placements_known = Known::kInferred;
  Known memory_known = Known::kInferred;
  std::vector<std::string> pci_ids;  // device and vendor as mig-parted writes them: "0x233510DE"
  std::vector<MigProfile> profiles;  // as nvidia-smi lists them

  // Its place in `profiles`, or npos.
  std::size_t Find(std::string_view profile) const;
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
};

// The boards that Ringfence knows, oldest first.
std::span<const MigBoard> MigBoards();
// kNotFound, with the nearest name, where there is none.
Result<const MigBoard*> FindMigBoard(std::string_view name);
// The board of a PCI identifier such as "0x233510DE"; null where Ringfence knows none.
const MigBoard* MigBoardOfPci(std::string_view pci_id);

// AMD cuts a whole GPU at once, into equal parts.
struct PartitionMode {
  std::string name;                   // "CPX"
  std::uint32_t partitions = 0;       // logical GPUs
  std::uint32_t compute_dies = 0;     // in each
  std::vector<std::uint32_t> memory;  // NPS modes that go with it: 1, 4
};
struct PartitionBoard {
  std::string name;  // "MI300X-192"
  std::string product;
  std::uint32_t compute_dies = 0;
  std::uint32_t memory_mib = 0;
  std::vector<PartitionMode> modes;
};
std::span<const PartitionBoard> PartitionBoards();

struct PartitionPlan {
  const PartitionMode* mode = nullptr;
  std::uint32_t memory_domains = 0;  // the N of NPSN
  std::uint32_t memory_mib = 0;      // that one partition can address
  bool memory_shared = false;        // with other partitions of the same GPU
};
// "CPX/NPS4", "cpx" (NPS1). Errors say which modes there are.
Result<PartitionPlan> PlanPartition(const PartitionBoard& board, std::string_view text);

}  // namespace ringfence::gpu
