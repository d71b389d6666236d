// Goal: each wall of a box is there by itself: taken away alone, the attack it stops succeeds.
// Method: real bundles as the jailer builds them, run by the real runtime in this test's own mount
// namespace; the control changes one thing in config.json before the run. The device wall is tried
// on this machine's cgroups and on pure v2, mounted alone in the private mount namespace.

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <functional>

#include "base/json.h"
#include "crypto/random.h"
#include "isolate/box.h"
#include "isolate/capabilities.h"
#include "isolate/runtime.h"
#include "os/cgroup.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/privileges.h"
#include "os/process.h"

namespace ringfence::isolate {
namespace {

using Change = std::function<void(Json&)>;

class WallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string init = std::string(RINGFENCE_BINARY_DIR) + "/ringfence-init";
    const auto missing = MissingForBoxes({init, init});
    if (!missing.empty()) {
      GTEST_SKIP() << "needs root and a machine that can run boxes: " << missing[0];
    }
    ASSERT_TRUE(os::AdoptOrphans().has_value());
    ASSERT_TRUE(os::MakeDirs("/run/ringfence").has_value());
    ASSERT_TRUE(os::EnterNewNamespaces({.mount = true}).has_value());
    ASSERT_TRUE(os::MountTmpfs("/run/ringfence", {64 << 20U, 0711, true, true}).has_value());
    place_.runtime = FindRuntime()->path;
    place_.init = init;
    place_.run_folder = "/run/ringfence";
    place_.node = crypto::RandomId("walls");
    place_.uid_base = 1'000'000'000;
    ASSERT_TRUE(PrepareBoxPlace(place_).has_value());
  }

  void TearDown() override {
    if (over_) {
      EXPECT_EQ(umount2("/sys/fs/cgroup", MNT_DETACH), 0);
    }
    os::RemoveCgroupIfUnused("/ringfence/" + place_.node);
    (void)os::UnmountIfMounted("/run/ringfence");
  }

  static std::string ReadToEnd(int fd) {
    std::string text;
    char chunk[4096];
    for (ssize_t got = 0; (got = read(fd, chunk, sizeof chunk)) > 0;) {
      text.append(chunk, static_cast<std::size_t>(got));
    }
    return text;
  }

  // What `script` prints (both streams) in a box whose configuration went through `change`.
  std::string Run(const std::string& script, const Change& change = nullptr) {
    BoxPlan plan;
    plan.grant.lease = crypto::RandomId("lease");
    plan.grant.tenant = "acme";
    plan.grant.command = {"sh", "-c", "exec 2>&1; " + script};
    plan.grant.memory_bytes_max = std::uint64_t{128} << 20U;
    plan.grant.cpu_millis_max = 1000;
    plan.grant.pids_max = 64;
    plan.files.nodes = {{"/dev/nvidia0", 195, 0}, {"/dev/nvidia7", 195, 7}};
    const auto built = BuildBox(place_, plan);
    EXPECT_TRUE(built.has_value()) << built.error().message;
    const std::string path = BundleFolder(place_, plan.grant.lease) + "/config.json";
    Json config = ParseJson(os::ReadText(path, 1 << 20U).value(), 1 << 20U).value();
    if (change) {
      change(config);
      EXPECT_TRUE(os::WriteFile(path, AsBytes(CanonicalJson(config)), 0600).has_value());
    }
    auto launched = LaunchBox(place_, plan);
    EXPECT_TRUE(launched.has_value()) << launched.error().message;
    std::string text;
    if (os::WaitFor(launched->runtime_pid).code != 0) {
      text = "not started: " + RuntimeComplaint(place_, plan.grant.lease);
    } else {
      text = ReadToEnd(launched->out.get());
      (void)os::WaitFor(BoxPid(place_, plan.grant.lease).value());
    }
    const Status gone = TakeDownBox(place_, plan.grant.lease, plan.files);
    EXPECT_TRUE(gone.has_value()) << gone.error().message;
    return text;
  }

  static void DropRuleOfNvidia7(Json& config) {
    JsonArray& rules = config.at("linux").at("resources").at("devices").as_array();
    for (auto rule = rules.begin(); rule != rules.end(); ++rule) {
      const Json* minor = rule->as_object().if_contains("minor");
      if (minor != nullptr && minor->as_int64() == 7) {
        rules.erase(rule);
        return;
      }
    }
  }

  BoxPlace place_;
  bool over_ = false;  // pure v2 is mounted over this machine's own cgroups
};

// There is no driver for major 195 here: a node that may be opened says "No such device".
constexpr const char* kOpenBoth = "cat /dev/nvidia0; cat /dev/nvidia7";

TEST_F(WallsTest, DeviceCgroup) {
  const std::string allowed = Run(kOpenBoth);
  EXPECT_NE(allowed.find("/dev/nvidia7: No such device or address"), std::string::npos) << allowed;
  const std::string denied = Run(kOpenBoth, DropRuleOfNvidia7);
  EXPECT_NE(denied.find("/dev/nvidia0: No such device or address"), std::string::npos) << denied;
  EXPECT_NE(denied.find("/dev/nvidia7: Operation not permitted"), std::string::npos) << denied;
}

TEST_F(WallsTest, DeviceRulesOnPureV2) {
  ASSERT_EQ(mount("none", "/sys/fs/cgroup", "cgroup2", 0, nullptr), 0);  // over all others
  over_ = true;
  const auto hierarchies = os::CgroupHierarchies();
  ASSERT_TRUE(hierarchies.has_value());
  ASSERT_EQ(hierarchies->size(), 1U);
  EXPECT_TRUE((*hierarchies)[0].unified);
  EXPECT_TRUE(os::HasDeviceControl(*hierarchies));
  // Controllers that a hybrid machine has given to v1 are not there; only those are left out.
  const auto without_absent = [&](Json& config) {
    JsonObject& resources = config.at("linux").at("resources").as_object();
    for (const char* controller : {"memory", "cpu", "pids"}) {
      if (!os::HasController(*hierarchies, controller)) {
        resources.erase(controller);
      }
    }
  };
  const std::string allowed = Run(kOpenBoth, without_absent);
  EXPECT_NE(allowed.find("/dev/nvidia7: No such device or address"), std::string::npos) << allowed;
  const std::string denied = Run(kOpenBoth, [&](Json& config) {
    without_absent(config);
    DropRuleOfNvidia7(config);
  });
  EXPECT_NE(denied.find("/dev/nvidia0: No such device or address"), std::string::npos) << denied;
  EXPECT_NE(denied.find("/dev/nvidia7: Operation not permitted"), std::string::npos) << denied;
}

TEST_F(WallsTest, Landlock) {
  // /dev belongs to the box's own root, who may make files there by every other rule.
  const auto as_root = [](Json& config) {
    config.at("process").at("user").at("uid") = 0;
    config.at("process").at("user").at("gid") = 0;
  };
  const std::string attack = "touch /dev/x && echo done";
  EXPECT_NE(Run(attack, as_root).find("Permission denied"), std::string::npos);
  EXPECT_EQ(Run(attack,
                [&](Json& config) {
                  as_root(config);
                  JsonArray& words = config.at("process").at("args").as_array();
                  words.insert(words.begin() + 1, "/dev");
                  words.insert(words.begin() + 1, "--rw");
                }),
            "done\n");
}

TEST_F(WallsTest, AThreadCanBeNamed) {  // CUDA does not start otherwise
  EXPECT_EQ(Run("echo renamed > /proc/self/comm && echo done"), "done\n");
}

TEST_F(WallsTest, Seccomp) {
  const std::string attack = "unshare --user true && echo done";
  EXPECT_NE(Run(attack).find("Operation not permitted"), std::string::npos);
  EXPECT_EQ(Run(attack, [](Json& config) { config.at("linux").as_object().erase("seccomp"); }),
            "done\n");
}

TEST_F(WallsTest, ReadOnlyRoot) {
  // /etc/passwd belongs to the box's own root; as that root, without Landlock, only the mount
  // stands between.
  const auto as_root = [](Json& config) {
    config.at("process").at("user").at("uid") = 0;
    config.at("process").at("user").at("gid") = 0;
    JsonArray& words = config.at("process").at("args").as_array();
    words.insert(words.begin() + 1, "/");
    words.insert(words.begin() + 1, "--rw");
  };
  const std::string attack = "touch /var/tmp/x && echo done";
  EXPECT_NE(Run(attack, as_root).find("Read-only file system"), std::string::npos);
  EXPECT_EQ(Run(attack,
                [&](Json& config) {
                  as_root(config);
                  config.at("root").at("readonly") = false;
                }),
            "done\n");
}

TEST_F(WallsTest, PidNamespaceHidesTheHost) {
  const std::string attack = "[ -d /proc/" + std::to_string(getpid()) + "/ns ] && echo seen";
  EXPECT_EQ(Run(attack), "");
}

TEST_F(WallsTest, InitFailsClosedWithoutItsDescriptor) {
  os::SpawnOptions spawn;
  spawn.path = place_.init;
  spawn.arguments = {"init", "--", "true"};
  const auto pid = os::Spawn(spawn);
  ASSERT_TRUE(pid.has_value());
  EXPECT_EQ(os::WaitFor(*pid).code, 125);
}

}  // namespace
}  // namespace ringfence::isolate
