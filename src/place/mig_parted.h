#pragma once

// The file format of mig-parted: named layouts, each a list of which devices get which instances.
// One of its files can be used as it is.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/mig_layout.h"

namespace ringfence::place {

inline constexpr std::size_t kMigConfigsMax = 1024;

struct MigEntry {
  int line = 0;
  std::vector<std::string> device_filter;             // PCI identifiers; empty: any board
  std::optional<std::vector<std::uint32_t>> devices;  // by index; none: all
  bool enabled = false;
  std::vector<gpu::MigWish> wishes;
};
struct MigConfig {
  std::string name;
  int line = 0;
  std::vector<MigEntry> entries;
};
struct MigPartedFile {
  std::string file;
  std::vector<MigConfig> configs;  // as they stand

  // kNotFound with the nearest name where there is none.
  Result<const MigConfig*> Find(std::string_view name) const;
};

// Errors list every problem with file and line.
Result<MigPartedFile> ParseMigParted(std::string_view text, const std::string& file);

// What becomes of one entry on one board.
struct MigVerdict {
  int line = 0;
  std::string board;  // its name; for a board that is not known here, its PCI identifier or ""
  enum class Kind { kPossible, kImpossible, kUnknownBoard } kind = Kind::kUnknownBoard;
  std::string reason;                            // of kImpossible and kUnknownBoard
  std::vector<gpu::MigInstance> instances = {};  // of kPossible
};
// Each entry against the boards that it names, or, where it names none, those that have all of its
// profiles.
std::vector<MigVerdict> CheckMigConfig(const MigConfig& config);

// What `config` does to a board: the entry for it. kFailedPrecondition where it turns MIG off,
// kInvalidArgument where no entry is for this board.
Result<std::vector<gpu::MigWish>> WishesFor(const MigConfig& config, const gpu::MigBoard& board,
                                            const std::string& file);

}  // namespace ringfence::place
