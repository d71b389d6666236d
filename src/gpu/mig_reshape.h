#pragma once

// From what a GPU is cut into and what is wished to what must go and what must come. Pure: the
// server asks before it orders, the jailer before it obeys.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/mig_live.h"

namespace ringfence::gpu {

// "off"; "on" without a slice; "on 1g.18gb x3, 4g.71gb": a layout that need not name places.
struct MigAim {
  bool enabled = false;
  std::vector<MigWish> wishes;
};
Result<MigAim> ParseMigAim(std::string_view text);
std::string FormatMigAim(const MigAim& aim);

struct PresentSlice {
  std::string uuid;
  std::string profile;
  std::uint32_t start = 0;
  std::string holder;  // a lease; empty: nobody
};

struct MigReshape {
  MigTarget target;
  std::vector<std::string> removed;  // UUIDs
};

// Keeps every slice that the aim has a use for, and every slice that is held; kFailedPrecondition
// names a held one that the aim has no place for. With what is there already nothing is removed
// and the target is what is there.
Result<MigReshape> PlanReshape(const MigBoard& board, std::span<const PresentSlice> there,
                               const MigAim& aim);

}  // namespace ringfence::gpu
