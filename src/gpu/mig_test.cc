// Goal: the boards' geometry is that of the hardware, and a layout is planned if and only if the
// board can have it.
// Method: the H200's own dump, field by field; layouts known to be possible and impossible with
// their reasons; the planner against a search that shares no code with it, for every multiset of
// profiles on every board.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <set>

#include "gpu/mig_layout.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

const MigBoard& Board(std::string_view name) {
  const auto board = FindMigBoard(name);
  EXPECT_TRUE(board.has_value()) << name;
  return **board;
}

Result<std::vector<MigInstance>> Plan(std::string_view board, std::string_view layout) {
  RINGFENCE_ASSIGN(const auto wishes, ParseMigLayout(layout));
  return PlanMigLayout(Board(board), wishes);
}

std::string WhyNot(std::string_view board, std::string_view layout) {
  const auto plan = Plan(board, layout);
  return plan.has_value() ? "possible" : plan.error().message;
}

TEST(MigBoards, H200IsWhatTheDriverSaid) {
  const auto text = os::ReadText(RINGFENCE_SOURCE_DIR "/tests/vectors/h200/nvml.txt", 1 << 16);
  ASSERT_TRUE(text.has_value());
  const std::regex line(
      R"(index \d+ id (\d+)  slices (\d+) inst (\d+) SM (\d+) CE \d+ memMB (\d+) cap \d+ placements rc 0 \[(.*)\])");
  const std::regex place(R"(\((\d+), (\d+)\))");
  const MigBoard& board = Board("H200-141");
  std::size_t seen = 0;
  for (std::sregex_iterator it(text->begin(), text->end(), line), end; it != end; ++it) {
    const auto number = [&](std::size_t i) {
      return static_cast<std::uint32_t>(std::stoul((*it)[i].str()));
    };
    const auto found =
        std::find_if(board.profiles.begin(), board.profiles.end(),
                     [&](const MigProfile& profile) { return profile.id == number(1); });
    ASSERT_NE(found, board.profiles.end()) << (*it)[0];
    EXPECT_EQ(found->compute_slices, number(2)) << found->name;
    EXPECT_EQ(found->count_max, number(3)) << found->name;
    EXPECT_EQ(found->processors, number(4)) << found->name;
    EXPECT_EQ(found->memory_mib, number(5)) << found->name;
    std::vector<std::uint32_t> starts;
    const std::string places = (*it)[6].str();
    for (std::sregex_iterator p(places.begin(), places.end(), place); p != end; ++p) {
      starts.push_back(static_cast<std::uint32_t>(std::stoul((*p)[1].str())));
      EXPECT_EQ(found->slices, std::stoul((*p)[2].str())) << found->name;
    }
    EXPECT_EQ(found->starts, starts) << found->name;
    ++seen;
  }
  EXPECT_EQ(seen, board.profiles.size());
}

TEST(MigBoards, H200NamesAreThoseOfNvidiaSmi) {
  const auto text = os::ReadText(RINGFENCE_SOURCE_DIR "/tests/vectors/h200/mig.txt", 1 << 16);
  ASSERT_TRUE(text.has_value());
  const std::regex line(R"(MIG (\S+)\s+(\d+)\s+\d+/(\d+)\s+([\d.]+))");
  const MigBoard& board = Board("h200-141");
  std::size_t index = 0;
  for (std::sregex_iterator it(text->begin(), text->end(), line), end; it != end; ++it, ++index) {
    ASSERT_LT(index, board.profiles.size());
    const MigProfile& profile = board.profiles[index];
    EXPECT_EQ(profile.name, (*it)[1].str());
    EXPECT_EQ(profile.id, std::stoul((*it)[2].str()));
    EXPECT_EQ(profile.count_max, std::stoul((*it)[3].str()));
    EXPECT_NEAR(profile.memory_mib / 1024.0, std::stod((*it)[4].str()), 0.01);
  }
  EXPECT_EQ(index, board.profiles.size());
}

TEST(MigBoards, AreConsistent) {
  std::set<std::string> pci;
  for (const MigBoard& board : MigBoards()) {
    std::set<std::uint32_t> ids;
    for (const MigProfile& profile : board.profiles) {
      EXPECT_TRUE(ids.insert(profile.id).second) << board.name << " " << profile.name;
      EXPECT_LE(profile.compute_slices, board.compute_slices);
      for (const std::uint32_t start : profile.starts) {
        EXPECT_LE(start + profile.slices, board.slices) << board.name << " " << profile.name;
      }
    }
    for (const std::string& id : board.pci_ids) {
      EXPECT_TRUE(pci.insert(id).second) << id;
      EXPECT_EQ(MigBoardOfPci(id), &board);
    }
    EXPECT_EQ(FindMigBoard(board.name).value(), &board);
  }
  EXPECT_EQ(MigBoardOfPci("0x000010DE"), nullptr);
  EXPECT_NE(FindMigBoard("H20-141").error().message.find("did you mean H200-141?"),
            std::string::npos);
}

TEST(MigLayout, KnownOnes) {
  EXPECT_EQ(WhyNot("H200-141", "1g.18gb x7"), "possible");
  EXPECT_EQ(WhyNot("H200-141", "4g.71gb, 3g.71gb"), "possible");
  EXPECT_EQ(WhyNot("H200-141", "1g.18gb x3, 4g.71gb"), "possible");
  EXPECT_EQ(WhyNot("H200-141", "2g.35gb x3, 1g.35gb"), "possible");
  EXPECT_EQ(WhyNot("A30-24", "2g.12gb, 1g.6gb x2"), "possible");
  // 3g takes four memory slices: no room beside two of them, though six of seven are computed on.
  EXPECT_EQ(WhyNot("H200-141", "3g.71gb x2, 1g.18gb"),
            "H200-141 cannot have this layout: it takes 9 memory slices of 8");
  EXPECT_EQ(WhyNot("H200-141", "1g.18gb x8"),
            "H200-141 cannot have this layout: 8 of 1g.18gb, and there can be 7");
  EXPECT_EQ(WhyNot("H200-141", "4g.71gb@4"),
            "H200-141 cannot have this layout: 4g.71gb cannot begin at memory slice 4");
  EXPECT_EQ(WhyNot("H200-141", "3g.71gb@0, 4g.71gb"),
            "H200-141 cannot have this layout: 4g.71gb takes 4 memory slices in a row beginning at "
            "one of 0, and beside the others none of these places is free");
  EXPECT_EQ(WhyNot("A30-24", "1g.6gb+me, 2g.12gb+me"),
            "A30-24 cannot have this layout: two instances with the media extension (+me), and it "
            "has one");
  EXPECT_EQ(WhyNot("H200-141", "1g.10gb"),
            "H200-141 has no profile \"1g.10gb\" (did you mean 1g.18gb?)");
  EXPECT_EQ(WhyNot("H200-141", "4g.71gb, 1g.18gb x4"),
            "H200-141 cannot have this layout: it takes 8 compute slices of 7");
}

TEST(MigLayout, TextHasColumns) {
  EXPECT_EQ(ParseMigLayout("").error().message,
            "layout: column 1: a profile is missing at the end");
  EXPECT_EQ(ParseMigLayout("1g.18gb,").error().message,
            "layout: column 9: a profile is missing at the end");
  EXPECT_EQ(ParseMigLayout("1g.18gb x0").error().message,
            "layout: column 10: expected how many, from 1 to 64");
  EXPECT_EQ(ParseMigLayout("1g.18gb ; 2g").error().message, "layout: column 9: expected a comma");
  EXPECT_EQ(ParseMigLayout("1g.18gb x2@3").error().message,
            "layout: column 11: only one instance can be at a fixed place");
  const std::vector<MigWish> want = {{"1g.18gb", 3, {}}, {"4g.71gb", 1, 0}};
  EXPECT_EQ(ParseMigLayout(" 1g.18gb  x 3 ,4g.71gb @0 ").value(), want);
  EXPECT_EQ(FormatMigLayout(want), "1g.18gb x3, 4g.71gb@0");
}

// Every multiset of at most `board.slices` instances, by a plain search over slices: at each slice
// either nothing begins or one of the profiles that may.
std::set<std::vector<std::uint32_t>> AllPossible(const MigBoard& board) {
  std::set<std::vector<std::uint32_t>> possible;
  std::vector<std::uint32_t> counts(board.profiles.size(), 0);
  const std::function<void(std::uint32_t, std::uint32_t)> walk = [&](std::uint32_t slice,
                                                                     std::uint32_t media) {
    if (slice >= board.slices) {
      possible.insert(counts);
      return;
    }
    walk(slice + 1, media);
    for (std::size_t i = 0; i < board.profiles.size(); ++i) {
      const MigProfile& profile = board.profiles[i];
      const bool starts = std::count(profile.starts.begin(), profile.starts.end(), slice) == 1;
      if (starts && media + (profile.media ? 1 : 0) <= 1) {
        ++counts[i];
        walk(slice + profile.slices, media + (profile.media ? 1 : 0));
        --counts[i];
      }
    }
  };
  walk(0, 0);
  return possible;
}

TEST(MigLayout, PlansExactlyWhatIsPossible) {
  for (const std::string_view name : {"A30-24", "H200-141"}) {
    const MigBoard& board = Board(name);
    const auto possible = AllPossible(board);
    std::vector<std::uint32_t> counts(board.profiles.size(), 0);
    std::size_t tried = 0;
    const std::function<void(std::size_t)> each = [&](std::size_t i) {
      if (i == counts.size()) {
        std::vector<MigWish> wishes;
        for (std::size_t p = 0; p < counts.size(); ++p) {
          if (counts[p] > 0) {
            wishes.push_back({board.profiles[p].name, counts[p], {}});
          }
        }
        const auto plan = PlanMigLayout(board, wishes);
        ASSERT_EQ(plan.has_value(), possible.contains(counts)) << name << FormatMigLayout(wishes);
        if (plan.has_value()) {
          EXPECT_TRUE(CheckMigInstances(board, *plan).has_value());
        }
        ++tried;
        return;
      }
      for (counts[i] = 0; counts[i] <= board.profiles[i].count_max; ++counts[i]) {
        each(i + 1);
      }
      counts[i] = 0;
    };
    each(0);
    EXPECT_GT(tried, 100U);
  }
}

TEST(MigLayout, MaximalOnesAreMaximalAndStrategiesAmongThem) {
  for (const MigBoard& board : MigBoards()) {
    const auto layouts = MaximalMigLayouts(board);
    EXPECT_GT(layouts.size(), 5U);
    for (const auto& layout : layouts) {
      ASSERT_TRUE(CheckMigInstances(board, layout).has_value());
      for (std::size_t i = 0; i < board.profiles.size(); ++i) {
        EXPECT_FALSE(FirstMigPlacement(board, i, layout).has_value());
      }
    }
    for (const std::string_view name : {"development", "inference", "multi-tenant"}) {
      const auto strategy = ParseMigStrategy(name);
      ASSERT_TRUE(strategy.has_value());
      const auto plan = PlanMigLayout(board, WishesOf(*strategy, board));
      ASSERT_TRUE(plan.has_value()) << board.name << ": " << plan.error().message;
      std::uint32_t compute = 0;
      for (const MigInstance& one : *plan) {
        compute += board.profiles[one.profile].compute_slices;
      }
      EXPECT_EQ(compute, board.compute_slices) << board.name << " " << name;
    }
  }
  EXPECT_FALSE(ParseMigStrategy("big").has_value());
}

TEST(MigLayout, BesideWhatIsThere) {
  const MigBoard& board = Board("H200-141");
  const std::vector<MigInstance> there = {{board.Find("1g.18gb"), 1}};
  EXPECT_EQ(FirstMigPlacement(board, board.Find("1g.18gb"), there), 0U);
  EXPECT_EQ(FirstMigPlacement(board, board.Find("2g.35gb"), there), 2U);
  EXPECT_EQ(FirstMigPlacement(board, board.Find("3g.71gb"), there), 4U);
  EXPECT_EQ(FirstMigPlacement(board, board.Find("4g.71gb"), there), std::nullopt);
  const auto plan = PlanMigLayout(board, std::vector<MigWish>{{"3g.71gb", 1, {}}}, there);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->front().start, 4U);
  const std::vector<MigInstance> broken = {{board.Find("1g.18gb"), 7}};
  EXPECT_FALSE(PlanMigLayout(board, std::vector<MigWish>{}, broken).has_value());
}

TEST(PartitionModes, OfTheMi300x) {
  const PartitionBoard& board = PartitionBoards().front();
  const auto plan = PlanPartition(board, "cpx/nps4");
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->mode->partitions, 8U);
  EXPECT_EQ(plan->memory_mib, 49152U);
  EXPECT_TRUE(plan->memory_shared);
  EXPECT_FALSE(PlanPartition(board, "SPX")->memory_shared);
  EXPECT_EQ(PlanPartition(board, "SPX/NPS4").error().message,
            "SPX does not go with NPS4 on MI300X-192");
  EXPECT_FALSE(PlanPartition(board, "TPX").has_value());
}

}  // namespace
}  // namespace ringfence::gpu
