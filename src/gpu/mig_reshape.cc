#include "gpu/mig_reshape.h"

#include <algorithm>

namespace ringfence::gpu {
namespace {

Error Held(const PresentSlice& slice, const std::string& what) {
  return Error{Code::kFailedPrecondition,
               slice.profile + "@" + std::to_string(slice.start) + " (" + slice.uuid +
                   ") is held by lease " + slice.holder + what,
               "wait for that lease to end, or end it: `ringfence lease end " + slice.holder + "`"};
}

// One wish for each instance, those with a place first.
std::vector<MigWish> Singles(const std::vector<MigWish>& wishes) {
  std::vector<MigWish> singles;
  for (const MigWish& wish : wishes) {
    for (std::uint32_t i = 0; i < wish.count && singles.size() <= kMigSlicesMax; ++i) {
      singles.push_back({wish.profile, 1, wish.start});
    }
  }
  std::stable_sort(singles.begin(), singles.end(), [](const MigWish& a, const MigWish& b) {
    return a.start.has_value() && !b.start.has_value();
  });
  return singles;
}

// Which of `there` fulfil a wish, held ones before others; the wishes that are left.
struct Matched {
  std::vector<const PresentSlice*> kept;
  std::vector<MigWish> left;
};

Matched Match(std::span<const PresentSlice> there, const std::vector<MigWish>& wishes,
              bool held_only) {
  Matched matched;
  const auto taken = [&](const PresentSlice& slice) {
    return std::find(matched.kept.begin(), matched.kept.end(), &slice) != matched.kept.end();
  };
  for (const MigWish& wish : wishes) {
    const PresentSlice* found = nullptr;
    for (const PresentSlice& slice : there) {
      const bool fits = slice.profile == wish.profile && !taken(slice) &&
                        (!wish.start.has_value() || *wish.start == slice.start) &&
                        !(held_only && slice.holder.empty());
      if (fits && (found == nullptr || (found->holder.empty() && !slice.holder.empty()))) {
        found = &slice;
      }
    }
    if (found == nullptr) {
      matched.left.push_back(wish);
    } else {
      matched.kept.push_back(found);
    }
  }
  return matched;
}

Result<MigTarget> Complete(const MigBoard& board, const Matched& matched) {
  std::vector<MigInstance> instances;
  for (const PresentSlice* slice : matched.kept) {
    const std::size_t profile = board.Find(slice->profile);
    if (profile == MigBoard::npos) {
      return Error{Code::kCorrupt, board.name + " has no profile " + slice->profile};
    }
    instances.push_back({profile, slice->start});
  }
  RINGFENCE_ASSIGN(const auto placed, PlanMigLayout(board, matched.left, instances));
  instances.insert(instances.end(), placed.begin(), placed.end());
  std::sort(instances.begin(), instances.end(),
            [](const MigInstance& a, const MigInstance& b) { return a.start < b.start; });
  MigTarget target;
  target.enabled = true;
  for (const MigInstance& one : instances) {
    target.instances.push_back({board.profiles[one.profile].name, 1, one.start});
  }
  return target;
}

}  // namespace

Result<MigAim> ParseMigAim(std::string_view text) {
  MigAim aim;
  if (text == "off") {
    return aim;
  }
  aim.enabled = true;
  if (text == "on") {
    return aim;
  }
  if (!text.starts_with("on ")) {
    return Error{Code::kInvalidArgument, "what a GPU shall be is off, on, or on with a layout"};
  }
  RINGFENCE_ASSIGN(aim.wishes, ParseMigLayout(text.substr(3)));
  return aim;
}

std::string FormatMigAim(const MigAim& aim) {
  return !aim.enabled ? "off" : aim.wishes.empty() ? "on" : "on " + FormatMigLayout(aim.wishes);
}

Result<MigReshape> PlanReshape(const MigBoard& board, std::span<const PresentSlice> there,
                               const MigAim& aim) {
  // By itself first: its errors are about the layout alone.
  RINGFENCE_TRY(PlanMigLayout(board, aim.wishes));
  const std::vector<MigWish> wishes = Singles(aim.wishes);
  Matched matched = Match(there, wishes, false);
  Result<MigTarget> target = Complete(board, matched);
  if (!target.has_value()) {  // what could stay is in the way: only what must stay
    matched = Match(there, wishes, true);
    target = Complete(board, matched);
  }
  for (const PresentSlice& slice : there) {
    const bool kept =
        std::find(matched.kept.begin(), matched.kept.end(), &slice) != matched.kept.end();
    if (!slice.holder.empty() && !kept) {
      return Held(slice, !aim.enabled ? ": MIG mode changes only on a GPU that nobody uses"
                                      : ", and the layout has no such slice there");
    }
  }
  if (!target.has_value()) {
    Error error = target.error();
    error.message += " (slices that are held stay where they are)";
    return error;
  }
  MigReshape reshape;
  reshape.target = std::move(*target);
  reshape.target.enabled = aim.enabled;
  for (const PresentSlice& slice : there) {
    if (std::find(matched.kept.begin(), matched.kept.end(), &slice) == matched.kept.end()) {
      reshape.removed.push_back(slice.uuid);
    }
  }
  return reshape;
}

}  // namespace ringfence::gpu
