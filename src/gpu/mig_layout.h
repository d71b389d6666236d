#pragma once

// Layouts of MIG instances: reading one, whether a board can have it and why not, where its
// instances go.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/mig_board.h"

namespace ringfence::gpu {

inline constexpr std::size_t kMigLayoutBytesMax = 1024;

// One bit for each memory slice, the lowest for slice 0.
using MigMask = std::uint8_t;

struct MigInstance {
  std::size_t profile = 0;  // in board.profiles
  std::uint32_t start = 0;  // first memory slice
  auto operator<=>(const MigInstance&) const = default;
};
inline MigMask MaskOf(const MigProfile& profile, std::uint32_t start) {
  return static_cast<MigMask>(((1U << profile.slices) - 1U) << start);
}

// What somebody asks for: some of a profile, one of them at a fixed place where `start` is given.
struct MigWish {
  std::string profile;
  std::uint32_t count = 1;
  std::optional<std::uint32_t> start = {};
  auto operator<=>(const MigWish&) const = default;
};

// "1g.18gb x3, 4g.71gb@0": profiles with commas between; "x3" three of them, "@0" at slice 0.
// Errors name the column. Says nothing about what a board can do.
Result<std::vector<MigWish>> ParseMigLayout(std::string_view text);
std::string FormatMigLayout(std::span<const MigWish> wishes);

// Places for all wishes beside what is there already, the largest first; finds some whenever there
// are any. Errors say which rule stands in the way.
Result<std::vector<MigInstance>> PlanMigLayout(const MigBoard& board,
                                               std::span<const MigWish> wishes,
                                               std::span<const MigInstance> there = {});

// The rules of the board, for instances that exist or shall: each at a place of its profile, none
// over another, no more of one than the board has, one media extension.
Status CheckMigInstances(const MigBoard& board, std::span<const MigInstance> instances);

// The lowest place where one more `profile` may go, or nothing.
std::optional<std::uint32_t> FirstMigPlacement(const MigBoard& board, std::size_t profile,
                                               std::span<const MigInstance> there);

// Every layout to which nothing can be added, each once, as instances in order of their place.
std::vector<std::vector<MigInstance>> MaximalMigLayouts(const MigBoard& board);

// Named strategies: development (many small), inference (few large), multi-tenant (balanced).
enum class MigStrategy { kDevelopment, kInference, kMultiTenant };
std::string_view Name(MigStrategy strategy);
Result<MigStrategy> ParseMigStrategy(std::string_view text);
std::vector<MigWish> WishesOf(MigStrategy strategy, const MigBoard& board);

}  // namespace ringfence::gpu
