// Goal: a reshape touches as little as it can and never a slice that somebody holds.
// Method: cases by hand, and every pair of maximal layouts of a board, with some slices held.

#include "gpu/mig_reshape.h"

#include <gtest/gtest.h>

#include <set>

namespace ringfence::gpu {
namespace {

const MigBoard& Board() { return **FindMigBoard("H200-141"); }

std::vector<PresentSlice> There(const std::string& layout, const std::set<std::uint32_t>& held) {
  std::vector<PresentSlice> there;
  const std::vector<MigWish> wishes = *ParseMigLayout(layout);
  for (const MigWish& wish : wishes) {
    there.push_back({"MIG-" + std::to_string(*wish.start), wish.profile, *wish.start,
                     held.contains(*wish.start) ? "lease-1" : ""});
  }
  return there;
}

TEST(MigReshape, KeepsWhatTheAimHasAUseFor) {
  const auto there = There("1g.18gb@0, 1g.18gb@3, 3g.71gb@4", {3});
  const auto same = PlanReshape(Board(), there, *ParseMigAim("on 1g.18gb x2, 3g.71gb"));
  ASSERT_TRUE(same.has_value()) << same.error().message;
  EXPECT_TRUE(same->removed.empty());
  EXPECT_EQ(FormatMigTarget(same->target), "on 1g.18gb@0, 1g.18gb@3, 3g.71gb@4");
  const auto fewer = PlanReshape(Board(), there, *ParseMigAim("on 1g.18gb, 2g.35gb"));
  ASSERT_TRUE(fewer.has_value());
  EXPECT_EQ(fewer->removed, (std::vector<std::string>{"MIG-0", "MIG-4"}));
  EXPECT_EQ(FormatMigTarget(fewer->target), "on 2g.35gb@0, 1g.18gb@3");
}

TEST(MigReshape, WhatCouldStayGoesWhereItIsInTheWay) {
  const auto there = There("1g.18gb@1", {});
  const auto plan = PlanReshape(Board(), there, *ParseMigAim("on 1g.18gb, 4g.71gb"));
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->removed, std::vector<std::string>{"MIG-1"});
}

TEST(MigReshape, AHeldSliceIsNeverInTheWayQuietly) {
  const auto there = There("1g.18gb@1, 3g.71gb@4", {1});
  for (const char* aim : {"off", "on", "on 3g.71gb x2", "on 1g.18gb, 4g.71gb"}) {
    const auto plan = PlanReshape(Board(), there, *ParseMigAim(aim));
    ASSERT_FALSE(plan.has_value()) << aim;
    EXPECT_TRUE(plan.error().message.find("held") != std::string::npos) << plan.error().message;
  }
  EXPECT_TRUE(PlanReshape(Board(), There("1g.18gb@1", {}), *ParseMigAim("off")).has_value());
}

TEST(MigReshape, BetweenAnyTwoLayoutsOnlyFreeSlicesGo) {
  const auto layouts = MaximalMigLayouts(Board());
  int refused = 0;
  for (std::size_t i = 0; i < layouts.size(); i += 3) {
    std::vector<PresentSlice> there;
    for (const MigInstance& one : layouts[i]) {
      there.push_back({"MIG-" + std::to_string(one.start), Board().profiles[one.profile].name,
                       one.start, there.size() % 2 == 0 ? "lease" : ""});
    }
    for (const auto& wanted : layouts) {
      MigAim aim;
      aim.enabled = true;
      for (const MigInstance& one : wanted) {
        aim.wishes.push_back({Board().profiles[one.profile].name, 1, {}});
      }
      const auto plan = PlanReshape(Board(), there, aim);
      if (!plan.has_value()) {
        ++refused;
        continue;
      }
      EXPECT_EQ(plan->target.instances.size(), wanted.size());
      for (const PresentSlice& slice : there) {
        const bool removed = std::find(plan->removed.begin(), plan->removed.end(), slice.uuid) !=
                             plan->removed.end();
        EXPECT_FALSE(removed && !slice.holder.empty());
        const MigWish same{slice.profile, 1, slice.start};
        const auto& in = plan->target.instances;
        EXPECT_TRUE(removed || std::find(in.begin(), in.end(), same) != in.end());
      }
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace ringfence::gpu
