#include "gpu/mig_layout.h"

#include <algorithm>

#include "base/check.h"
#include "base/closest.h"

namespace ringfence::gpu {
namespace {

Error Impossible(const MigBoard& board, const std::string& why, std::string hint = {}) {
  return Error{Code::kInvalidArgument, board.name + " cannot have this layout: " + why,
               std::move(hint), "layout"};
}

std::string Profiles(const MigBoard& board) {
  std::string text;
  for (const MigProfile& profile : board.profiles) {
    text += (text.empty() ? "" : ", ") + profile.name;
  }
  return text;
}

std::string Starts(const MigProfile& profile) {
  std::string text;
  for (const std::uint32_t start : profile.starts) {
    text += (text.empty() ? "" : ", ") + std::to_string(start);
  }
  return text;
}

bool MayStart(const MigProfile& profile, std::uint32_t start) {
  return std::find(profile.starts.begin(), profile.starts.end(), start) != profile.starts.end();
}

// What is used up by instances: slices, and how many there are of each profile.
struct Used {
  MigMask mask = 0;
  bool media = false;
  std::vector<std::uint32_t> counts;

  explicit Used(const MigBoard& board) : counts(board.profiles.size(), 0) {}
  bool Takes(const MigBoard& board, const MigInstance& one) const {
    const MigProfile& profile = board.profiles[one.profile];
    return (mask & MaskOf(profile, one.start)) == 0 && counts[one.profile] < profile.count_max &&
           !(media && profile.media);
  }
  void Add(const MigBoard& board, const MigInstance& one) {
    const MigProfile& profile = board.profiles[one.profile];
    mask = static_cast<MigMask>(mask | MaskOf(profile, one.start));
    media = media || profile.media;
    ++counts[one.profile];
  }
  void Remove(const MigBoard& board, const MigInstance& one) {
    const MigProfile& profile = board.profiles[one.profile];
    mask = static_cast<MigMask>(mask & ~MaskOf(profile, one.start));
    media = profile.media ? false : media;
    --counts[one.profile];
  }
};

struct Wanted {
  std::size_t profile;
  std::optional<std::uint32_t> start;
};

// Tries every place for each, so it finds some if there are any. Eight slices bound the depth.
bool Fill(const MigBoard& board, std::span<const Wanted> wanted, Used& used,
          std::vector<MigInstance>& placed) {
  if (wanted.empty()) {
    return true;
  }
  for (const std::uint32_t start : board.profiles[wanted.front().profile].starts) {
    const MigInstance one{wanted.front().profile, start};
    if ((wanted.front().start && *wanted.front().start != start) || !used.Takes(board, one)) {
      continue;
    }
    used.Add(board, one);
    placed.push_back(one);
    if (Fill(board, wanted.subspan(1), used, placed)) {
      return true;
    }
    placed.pop_back();
    used.Remove(board, one);
  }
  return false;
}

Result<std::vector<Wanted>> Resolve(const MigBoard& board, std::span<const MigWish> wishes) {
  std::vector<Wanted> wanted;
  for (const MigWish& wish : wishes) {
    const std::size_t found = board.Find(wish.profile);
    if (found == MigBoard::npos) {
      std::vector<std::string_view> names;
      for (const MigProfile& profile : board.profiles) {
        names.emplace_back(profile.name);
      }
      const auto near = Closest(wish.profile, names);
      return Error{Code::kInvalidArgument,
                   board.name + " has no profile \"" + wish.profile + "\"" +
                       (near ? " (did you mean " + *near + "?)" : ""),
                   "it has " + Profiles(board), "layout"};
    }
    const MigProfile& profile = board.profiles[found];
    if (wish.start && !MayStart(profile, *wish.start)) {
      return Impossible(
          board, profile.name + " cannot begin at memory slice " + std::to_string(*wish.start),
          "it may begin at " + Starts(profile));
    }
    if (wish.count > profile.count_max) {
      return Impossible(board, std::to_string(wish.count) + " of " + profile.name +
                                   ", and there can be " + std::to_string(profile.count_max));
    }
    for (std::uint32_t i = 0; i < wish.count; ++i) {
      wanted.push_back({found, wish.start});
    }
  }
  std::stable_sort(wanted.begin(), wanted.end(), [&](const Wanted& a, const Wanted& b) {
    const MigProfile& one = board.profiles[a.profile];
    const MigProfile& two = board.profiles[b.profile];
    if (a.start.has_value() != b.start.has_value()) {
      return a.start.has_value();  // what has no choice goes first
    }
    return one.slices != two.slices ? one.slices > two.slices
                                    : one.compute_slices > two.compute_slices;
  });
  return wanted;
}

// The rule that stands in the way, simplest first.
Error WhyNot(const MigBoard& board, const std::vector<Wanted>& wanted,
             std::span<const MigInstance> there) {
  std::uint32_t memory = 0;
  std::uint32_t compute = 0;
  std::uint32_t media = 0;
  std::vector<std::uint32_t> counts(board.profiles.size(), 0);
  const auto count = [&](std::size_t index) {
    memory += board.profiles[index].slices;
    compute += board.profiles[index].compute_slices;
    media += board.profiles[index].media ? 1 : 0;
    ++counts[index];
  };
  for (const MigInstance& one : there) {
    count(one.profile);
  }
  for (const Wanted& one : wanted) {
    count(one.profile);
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const MigProfile& profile = board.profiles[i];
    if (counts[i] > profile.count_max) {
      return Impossible(board, std::to_string(counts[i]) + " of " + profile.name +
                                   ", and there can be " + std::to_string(profile.count_max));
    }
  }
  if (media > 1) {
    return Impossible(board, "two instances with the media extension (+me), and it has one");
  }
  if (memory > board.slices) {
    return Impossible(board, "it takes " + std::to_string(memory) + " memory slices of " +
                                 std::to_string(board.slices));
  }
  if (compute > board.compute_slices) {
    return Impossible(board, "it takes " + std::to_string(compute) + " compute slices of " +
                                 std::to_string(board.compute_slices));
  }
  // The slices would do, their places do not: name the first that finds none.
  Used used(board);
  for (const MigInstance& one : there) {
    used.Add(board, one);
  }
  std::vector<MigInstance> placed;
  std::size_t fits = wanted.size();
  while (fits > 0) {
    Used trial = used;
    placed.clear();
    if (Fill(board, std::span(wanted).first(fits), trial, placed)) {
      break;
    }
    --fits;
  }
  const MigProfile& profile = board.profiles[wanted[fits].profile];
  return Impossible(board,
                    profile.name + " takes " + std::to_string(profile.slices) +
                        (profile.slices == 1 ? " memory slice" : " memory slices in a row") +
                        " beginning at one of " + Starts(profile) +
                        ", and beside the others none of these places is free",
                    "`ringfence mig boards " + board.name + "` shows the places of each profile");
}

void Extend(const MigBoard& board, Used& used, std::vector<MigInstance>& layout, std::uint32_t from,
            std::vector<std::vector<MigInstance>>& found) {
  for (std::uint32_t start = from; start < board.slices; ++start) {
    for (std::size_t i = 0; i < board.profiles.size(); ++i) {
      const MigInstance one{i, start};
      if (MayStart(board.profiles[i], start) && used.Takes(board, one)) {
        used.Add(board, one);
        layout.push_back(one);
        Extend(board, used, layout, start + board.profiles[i].slices, found);
        layout.pop_back();
        used.Remove(board, one);
      }
    }
  }
  for (std::size_t i = 0; i < board.profiles.size(); ++i) {
    for (const std::uint32_t start : board.profiles[i].starts) {
      if (used.Takes(board, {i, start})) {
        return;  // something can still be added
      }
    }
  }
  found.push_back(layout);
}

}  // namespace

Status CheckMigInstances(const MigBoard& board, std::span<const MigInstance> instances) {
  Used used(board);
  for (const MigInstance& one : instances) {
    if (one.profile >= board.profiles.size()) {
      return Impossible(board, "it has no profile number " + std::to_string(one.profile));
    }
    const MigProfile& profile = board.profiles[one.profile];
    if (!MayStart(profile, one.start)) {
      return Impossible(board,
                        profile.name + " cannot begin at memory slice " + std::to_string(one.start),
                        "it may begin at " + Starts(profile));
    }
    if ((used.mask & MaskOf(profile, one.start)) != 0) {
      return Impossible(board, profile.name + " at memory slice " + std::to_string(one.start) +
                                   " would lie over another instance");
    }
    if (used.counts[one.profile] >= profile.count_max) {
      return Impossible(
          board, "there can be " + std::to_string(profile.count_max) + " of " + profile.name);
    }
    if (used.media && profile.media) {
      return Impossible(board, "two instances with the media extension (+me), and it has one");
    }
    used.Add(board, one);
  }
  return {};
}

Result<std::vector<MigInstance>> PlanMigLayout(const MigBoard& board,
                                               std::span<const MigWish> wishes,
                                               std::span<const MigInstance> there) {
  RINGFENCE_TRY(CheckMigInstances(board, there));
  RINGFENCE_ASSIGN(const std::vector<Wanted> wanted, Resolve(board, wishes));
  Used used(board);
  for (const MigInstance& one : there) {
    used.Add(board, one);
  }
  std::vector<MigInstance> placed;
  // More wishes than slices can never fit, and would make the search long.
  if (wanted.size() > board.slices || !Fill(board, wanted, used, placed)) {
    if (wanted.size() > board.slices) {
      return Impossible(board, std::to_string(wanted.size()) + " instances on " +
                                   std::to_string(board.slices) + " memory slices");
    }
    return WhyNot(board, wanted, there);
  }
  std::sort(placed.begin(), placed.end(),
            [](const MigInstance& a, const MigInstance& b) { return a.start < b.start; });
  return placed;
}

std::optional<std::uint32_t> FirstMigPlacement(const MigBoard& board, std::size_t profile,
                                               std::span<const MigInstance> there) {
  RINGFENCE_CHECK(profile < board.profiles.size());
  Used used(board);
  for (const MigInstance& one : there) {
    used.Add(board, one);
  }
  for (const std::uint32_t start : board.profiles[profile].starts) {
    if (used.Takes(board, {profile, start})) {
      return start;
    }
  }
  return std::nullopt;
}

std::vector<std::vector<MigInstance>> MaximalMigLayouts(const MigBoard& board) {
  std::vector<std::vector<MigInstance>> found;
  Used used(board);
  std::vector<MigInstance> layout;
  Extend(board, used, layout, 0, found);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace ringfence::gpu
