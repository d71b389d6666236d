// Goal: each control says which kernel it needs, and without it there is no way on.
// Method: a kernel that has everything, made of values; from it each thing is taken away alone, and
// exactly the controls that need it refuse. This machine's own kernel is asked too.

#include "isolate/controls.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "os/file.h"

namespace ringfence::isolate {
namespace {

KernelFacts Everything() {
  KernelFacts facts;
  facts.release = "6.12.0";
  facts.landlock_abi = 6;
  facts.seccomp = facts.pidfd = facts.close_range = facts.openat2 = facts.tmpfs = true;
  facts.tried = facts.cgroup_kill = facts.device_program = true;
  facts.cgroups = {{"/sys/fs/cgroup", true, {"cpu", "memory", "pids", "io"}}};
  return facts;
}

KernelFacts V1() {
  KernelFacts facts = Everything();
  facts.cgroups = {{"/sys/fs/cgroup/devices", false, {"devices"}},
                   {"/sys/fs/cgroup/memory", false, {"memory"}},
                   {"/sys/fs/cgroup/cpu", false, {"cpu", "cpuacct"}},
                   {"/sys/fs/cgroup/pids", false, {"pids"}}};
  facts.device_program = false;  // not needed there
  return facts;
}

std::set<std::string> Refusing(const KernelFacts& facts, bool required = true) {
  std::set<std::string> ids;
  for (const Control& control : Controls()) {
    if (control.required == required && control.missing(facts).has_value()) {
      ids.insert(std::string(control.id));
    }
  }
  return ids;
}

TEST(ControlsTest, AKernelWithEverythingLacksNothing) {
  EXPECT_TRUE(Refusing(Everything()).empty());
  EXPECT_TRUE(Refusing(Everything(), false).empty());
  EXPECT_TRUE(Refusing(V1()).empty());
  for (const Wearer wearer : {Wearer::kAgent, Wearer::kJailer, Wearer::kBox}) {
    EXPECT_TRUE(Require(wearer, Everything()).has_value());
  }
}

TEST(ControlsTest, WithoutOneThingExactlyItsControlsRefuse) {
  struct Case {
    const char* what;
    std::function<void(KernelFacts&)> take_away;
    std::set<std::string> refusing;
  };
  const std::vector<Case> cases = {
      {"Landlock", [](auto& f) { f.landlock_abi = 0; }, {"agent.landlock", "box.landlock"}},
      {"seccomp", [](auto& f) { f.seccomp = false; }, {"agent.seccomp", "box.seccomp"}},
      {"close_range", [](auto& f) { f.close_range = false; }, {"jailer.descriptors"}},
      {"pidfd", [](auto& f) { f.pidfd = false; }, {"jailer.pidfd"}},
      {"tmpfs", [](auto& f) { f.tmpfs = false; }, {"jailer.tmpfs"}},
      {"namespaces", [](auto& f) { f.namespaces = "EPERM"; }, {"box.namespaces"}},
      {"user namespaces", [](auto& f) { f.user_namespaces = "ENOSPC"; }, {"box.user_namespace"}},
      {"cgroups", [](auto& f) { f.cgroups.clear(); }, {"box.cgroups"}},
      {"device programs", [](auto& f) { f.device_program = false; }, {"box.devices"}},
      {"memory", [](auto& f) { f.cgroups[0].controllers = {"cpu", "pids"}; }, {"box.memory"}},
      {"cpu", [](auto& f) { f.cgroups[0].controllers = {"memory", "pids"}; }, {"box.cpu"}},
      {"pids", [](auto& f) { f.cgroups[0].controllers = {"memory", "cpu"}; }, {"box.pids"}},
      {"v1 devices",
       [](auto& f) {
         f = V1();
         f.cgroups.erase(f.cgroups.begin());
       },
       {"box.devices"}},
  };
  std::set<std::string> seen;
  for (const Case& one : cases) {
    KernelFacts facts = Everything();
    one.take_away(facts);
    EXPECT_EQ(Refusing(facts), one.refusing) << one.what;
    seen.insert(one.refusing.begin(), one.refusing.end());
    for (const Control& control : Controls()) {
      if (one.refusing.contains(std::string(control.id))) {
        const Status refused = Require(control.wearer, facts);
        ASSERT_FALSE(refused.has_value()) << control.id;
        EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
        EXPECT_NE(refused.error().message.find(control.needs), std::string::npos)
            << refused.error().message;
        EXPECT_NE(refused.error().message.find(control.mend), std::string::npos);
      }
    }
  }
  for (const Control& control : Controls()) {
    EXPECT_TRUE(!control.required || seen.contains(std::string(control.id)))
        << control.id << " was never seen to refuse";
  }
}

TEST(ControlsTest, OlderKernelsLackTheFurtherWallsAndNoOther) {
  KernelFacts facts = Everything();
  facts.landlock_abi = 3;  // Linux 6.2
  facts.cgroup_kill = false;
  EXPECT_TRUE(Refusing(facts).empty());
  EXPECT_EQ(Refusing(facts, false),
            (std::set<std::string>{"agent.landlock.ports", "agent.landlock.scope",
                                   "box.landlock.ioctl", "box.kill"}));
}

TEST(ControlsTest, EachSaysAllOfIt) {
  std::set<std::string_view> ids;
  for (const Control& control : Controls()) {
    EXPECT_TRUE(ids.insert(control.id).second) << control.id;
    EXPECT_TRUE(control.id.starts_with(Name(control.wearer))) << control.id;
    for (const std::string_view text : {control.what, control.needs, control.probe, control.mend}) {
      EXPECT_FALSE(text.empty()) << control.id;
    }
  }
}

TEST(ControlsTest, TheDocumentHasEachOfThem) {
  const std::string page =
      os::ReadText(RINGFENCE_SOURCE_DIR "/docs/operations/doctor.md", 1 << 20).value();
  for (const Control& control : Controls()) {
    const std::string line = "| `" + std::string(control.id) + "` | " +
                             (control.required ? "required" : "further") + " | " +
                             std::string(control.what) + " | " + std::string(control.needs) + " |";
    EXPECT_NE(page.find(line), std::string::npos) << line;
  }
}

TEST(ControlsTest, ThisKernelIsAsked) {
  const KernelFacts facts = ProbeCalls();
  EXPECT_FALSE(facts.release.empty());
  EXPECT_TRUE(facts.pidfd);  // no machine that builds this has an older kernel
  EXPECT_TRUE(facts.close_range);
  EXPECT_TRUE(facts.tmpfs);
}

}  // namespace
}  // namespace ringfence::isolate
