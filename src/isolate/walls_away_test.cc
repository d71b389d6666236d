// Goal: a box with a wall taken away is expressed by the token alone, the token is made for our own
// probe alone, and everything else about a box stays as it is. Method: every wall by itself against
// the whole configuration, and commands that are nearly the probe.

#include "isolate/walls_away.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "isolate/box_config.h"
#include "isolate/probe_table.h"

namespace ringfence::isolate {
namespace {

BoxSpec ProbeSpec() {
  BoxSpec spec;
  spec.grant.lease = "lease-1";
  spec.grant.command = {kBoxProbePath, "mount", "attack"};
  spec.grant.memory_bytes_max = 1 << 28U;
  spec.first_uid = 1'000'000;
  spec.cgroup = "/ringfence/n/lease-1";
  spec.root_folder = "/r";
  spec.init_host_path = "/i";
  spec.probe_host_path = "/p";
  spec.system_files = {{"/usr", "/usr"}};
  spec.foreign_nodes = {{"/n/0", {"/dev/nvidia7", 195, 7}}};
  spec.shared_folder = "/s";
  spec.mps_folder = "/m";
  spec.host_variables = {"HOST"};
  return spec;
}

WallsAway Token(const std::vector<std::string>& names) {
  return WallsAway::ForProbe({kBoxProbePath}, names).value();
}

TEST(WallsAway, IsForOurProbeAlone) {
  const std::vector<std::string> wall = {"seccomp"};
  EXPECT_TRUE(WallsAway::ForProbe({kBoxProbePath}, wall).has_value());
  const std::vector<std::vector<std::string>> others = {
      {},
      {""},
      {"sh"},
      {"probe"},
      {"/run/ringfence/probe "},
      {"/run/ringfence/../ringfence/probe"},
      {"//run/ringfence/probe"},
      {"sh", kBoxProbePath},
      {"/run/ringfence/prob"},
      {std::string(kBoxProbePath) + std::string(1, '\0')}};
  for (const auto& command : others) {
    const auto token = WallsAway::ForProbe(command, wall);
    ASSERT_FALSE(token.has_value());
    EXPECT_EQ(token.error().code, Code::kPermissionDenied);
  }
}

TEST(WallsAway, TakesKnownNamesOnce) {
  const std::vector<std::vector<std::string>> wrong = {
      {}, {"walls"}, {""}, {"seccomp", "seccomp"}, {"seccomp", "Seccomp"}, {"seccomp "}};
  for (const auto& names : wrong) {
    const auto token = WallsAway::ForProbe({kBoxProbePath}, names);
    ASSERT_FALSE(token.has_value());
    EXPECT_EQ(token.error().code, Code::kInvalidArgument);
  }
  std::set<std::string_view> names;
  for (const Wall wall : AllWalls()) {
    EXPECT_EQ(ParseWall(Name(wall)), wall);
    EXPECT_FALSE(WithoutIt(wall).empty());
    EXPECT_TRUE(names.insert(Name(wall)).second);
  }
}

TEST(WallsAway, ATokenInAnotherCommandsPlanChangesNothing) {
  BoxSpec spec = ProbeSpec();
  spec.grant.command = {"sh", "-c", "true"};
  const std::string before = CanonicalJson(BoxConfig(spec));
  for (const Wall wall : AllWalls()) {
    spec.walls_away = Token({std::string(Name(wall))});
    EXPECT_EQ(CanonicalJson(BoxConfig(spec)), before) << Name(wall);
  }
  EXPECT_EQ(before.find("unconfined"), std::string::npos);
  EXPECT_EQ(before.find(kBoxProbePath), std::string::npos);
}

TEST(WallsAway, EveryWallOfTheConfigurationChangesIt) {
  // These two are not in the configuration: the one is a descriptor, the other the jailer's to do.
  // User ids are the plan's, which makes the mapping.
  const std::set<Wall> elsewhere = {Wall::kDescriptors, Wall::kScrub, Wall::kUserIds,
                                    Wall::kDeviceNodes};
  BoxSpec spec = ProbeSpec();
  const std::string standing = CanonicalJson(BoxConfig(spec));
  for (const Wall wall : AllWalls()) {
    spec.walls_away = Token({std::string(Name(wall))});
    EXPECT_EQ(CanonicalJson(BoxConfig(spec)) == standing, elsewhere.contains(wall)) << Name(wall);
  }
}

TEST(ProbeTable, IsWholeAndDocumented) {
  std::set<std::string> names;
  std::ifstream file(std::string(RINGFENCE_SOURCE_DIR) + "/docs/probes.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const Probe& probe : Probes()) {
    EXPECT_TRUE(names.insert(probe.name).second) << probe.name;
    EXPECT_FALSE(probe.title.empty() || probe.what.empty() || probe.classes.empty()) << probe.name;
    EXPECT_FALSE(probe.control.empty()) << probe.name;
    EXPECT_TRUE(probe.victim || probe.victim_ends_before.empty()) << probe.name;
    EXPECT_EQ(std::set<Wall>(probe.control.begin(), probe.control.end()).size(),
              probe.control.size());
    EXPECT_NE(page.str().find("| `" + probe.name + "` |"), std::string::npos)
        << probe.name << " is not in docs/probes.md";
  }
  EXPECT_GE(names.size(), 30U);
  for (const Wall wall : AllWalls()) {
    EXPECT_NE(page.str().find("| `" + std::string(Name(wall)) + "` |"), std::string::npos)
        << Name(wall) << " is not in docs/probes.md";
  }
}

}  // namespace
}  // namespace ringfence::isolate
