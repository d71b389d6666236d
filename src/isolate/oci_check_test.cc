// Goal: a container that asks for a GPU in any of the ways an OCI configuration has is found out,
// one that asks for none is not kept, and nothing in a container's files leads the check elsewhere.
// Method: configurations as podman and Docker write them, changed in one place each; roots full of
// links; a process that swaps folders for links as fast as it can while they are looked at.

#include "isolate/oci_check.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "isolate/oci_look.h"

namespace ringfence::isolate {
namespace {

const std::set<std::uint32_t> kMajors = {195, 226, 238};
constexpr const char* kHook = "/usr/lib/ringfence/ringfence-hook";

// As podman writes it for a container without devices.
std::string Config(const std::string& devices, const std::string& rules,
                   const std::string& hooks = "{}") {
  return R"({"ociVersion":"1.0.2","root":{"path":"/root"},"hooks":)" + hooks +
         R"(,"mounts":[],"linux":{"devices":)" + devices + R"(,"resources":{"devices":)" + rules +
         "}}}";
}

std::string Verdict(const std::string& config, const std::vector<HeldLease>& leases = {}) {
  const auto read = ReadContainerConfig(config, kMajors, kHook);
  if (!read.has_value()) {
    return "unreadable: " + read.error().message;
  }
  const Status covered = CheckCovered(read->asked, leases);
  return covered.has_value() ? "fine" : covered.error().message;
}

constexpr const char* kDeny = R"({"allow":false,"access":"rwm"})";

TEST(OciCheckTest, WithoutGpusNothingIsInTheWay) {
  EXPECT_EQ(Verdict(Config("[]", "[" + std::string(kDeny) + "]")), "fine");
  EXPECT_EQ(Verdict(R"({"root":{"path":"rootfs"}})"), "fine");
  EXPECT_EQ(Verdict(R"({"root":{"path":"rootfs"},"linux":null})"), "fine");
  // Docker's own rules: nodes of any device may be made, few may be used.
  EXPECT_EQ(Verdict(Config(R"([{"path":"/dev/fuse","type":"c","major":10,"minor":229}])",
                           "[" + std::string(kDeny) +
                               R"(,{"allow":true,"type":"c","major":1,"minor":5,"access":"rwm"},)"
                               R"({"allow":true,"type":"b","access":"m"},)"
                               R"({"allow":true,"type":"c","access":"m"},)"
                               R"({"allow":true,"type":"c","major":136,"access":"rwm"}])")),
            "fine");
  // What was allowed before all was denied is not.
  EXPECT_EQ(Verdict(Config("[]", R"([{"allow":true,"access":"rwm"},)" + std::string(kDeny) + "]")),
            "fine");
}

TEST(OciCheckTest, EveryWayToAskIsSeen) {
  const std::string deny = kDeny;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"195:0", Config(R"([{"path":"/dev/nvidia0","type":"c","major":195,"minor":0}])", "[]")},
      {"195:0", Config(R"([{"path":"/dev/harmless","type":"c","major":195,"minor":0}])", "[]")},
      {"195:0", Config(R"([{"path":"/dev/x","type":"u","major":195}])", "[]")},
      {"226:128",
       Config(R"([{"path":"/dev/dri/renderD128","type":"c","major":226,"minor":128}])", "[]")},
      {"195:1", Config("[]", "[" + deny + R"(,{"allow":true,"type":"c","major":195,"minor":1}])")},
      {"195:*", Config("[]", "[" + deny + R"(,{"allow":true,"type":"c","major":195}])")},
      {"195:*", Config("[]", "[" + deny + R"(,{"allow":true,"major":195,"minor":-1}])")},
      {"every device", Config("[]", "[" + deny + R"(,{"allow":true,"access":"rwm"}])")},
      {"every device", Config("[]", "[" + deny + R"(,{"allow":true,"type":"a"}])")},
      {"every device", Config("[]", R"([{"allow":true,"type":"c","minor":0,"access":"r"}])")},
      {"every device", Config("[]", R"([{"allow":true},{"allow":false,"type":"c","major":195}])")},
  };
  for (const auto& [what, config] : cases) {
    const std::string verdict = Verdict(config);
    EXPECT_NE(verdict.find(what), std::string::npos) << config << "\n" << verdict;
  }
}

TEST(OciCheckTest, ALeaseCoversItsOwnDevicesAndNoOthers) {
  const HeldLease lease{
      "lease-a", "boot", {{"/dev/nvidia3", 195, 3}, {"/dev/nvidiactl", 195, 255}}, {}};
  const auto with = [&](const std::string& minor) {
    return Verdict(Config(R"([{"path":"/dev/g","type":"c","major":195,"minor":)" + minor + "}]",
                          R"([{"allow":false},{"allow":true,"type":"c","major":195,"minor":)" +
                              minor + R"(,"access":"rw"}])"),
                   {lease});
  };
  EXPECT_EQ(with("3"), "fine");
  EXPECT_EQ(with("255"), "fine");
  EXPECT_NE(with("4"), "fine");
  EXPECT_NE(Verdict(Config("[]", R"([{"allow":true,"type":"c","major":195}])"), {lease}), "fine");
}

TEST(OciCheckTest, OnlyOurOwnHookNamesLeases) {
  const auto leases = [](const std::string& hooks) {
    const auto read = ReadContainerConfig(Config("[]", "[]", hooks), kMajors, kHook);
    return read.has_value() ? read->leases : std::set<std::string>{"unreadable"};
  };
  const std::string args = R"(,"args":["ringfence-hook","--held","/x","--lease","lease-a"]}]})";
  EXPECT_EQ(leases(R"({"createRuntime":[{"path":")" + std::string(kHook) + "\"" + args),
            std::set<std::string>{"lease-a"});
  EXPECT_EQ(leases(R"({"prestart":[{"path":")" + std::string(kHook) + "\"" + args),
            std::set<std::string>{"lease-a"});
  EXPECT_EQ(leases(R"({"createRuntime":[{"path":"/tmp/mine")" + args), std::set<std::string>{});
  EXPECT_EQ(leases(R"({"poststop":[{"path":")" + std::string(kHook) + "\"" + args),
            std::set<std::string>{});
}

TEST(OciCheckTest, WhatMakesNoSenseIsRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"root":{"path":""}})",
        R"({"root":{"path":"r"},"linux":{"devices":{}}})",
        R"({"root":{"path":"r"},"linux":{"devices":[1]}})",
        R"({"root":{"path":"r"},"linux":{"resources":{"devices":[{"major":195}]}}})",
        R"({"root":{"path":"r"},"linux":{"devices":[{"type":"c","major":"195"}]}})",
        R"({"root":{"path":"r"},"linux":{"devices":[{"type":"c","major":99999999}]}})"}) {
    EXPECT_EQ(Verdict(text).substr(0, 10), "unreadable") << text;
  }
  for (const char* text :
       {"", "{}", R"({"id":"a","bundle":"/b"})", R"({"id":"a","pid":1,"bundle":"/b"})",
        R"({"id":"../a","pid":9,"bundle":"/b"})", R"({"id":"a","pid":9,"bundle":"b"})"}) {
    EXPECT_FALSE(ReadContainerState(text).has_value()) << text;
  }
  const auto state = ReadContainerState(
      R"({"ociVersion":"1.0.2","id":"a-1","status":"creating","pid":9,"bundle":"/b","x":{}})");
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->pid, 9);
}

TEST(OciCheckTest, MajorsComeFromTheKernelsTable) {
  EXPECT_EQ(GpuMajors("Character devices:\n  1 mem\n195 nvidia-frontend\n235 nvidia-caps\n"
                      "238 nvidia-uvm\n234 kfd\n\nBlock devices:\n 99 nvidia\n"),
            (std::set<std::uint32_t>{195, 226, 234, 235, 238}));
  EXPECT_EQ(GpuMajors(""), (std::set<std::uint32_t>{195, 226}));
}

TEST(OciCheckTest, AContainersOwnCgroups) {
  using Groups = std::vector<std::string>;
  EXPECT_EQ(OwnCgroups("5:devices:/p/libpod-abc\n0::/p/libpod-abc/container\n", "abc"),
            (Groups{"/p/libpod-abc"}));
  EXPECT_EQ(OwnCgroups("0::/system.slice/docker-abc.scope\n", "abc"),
            (Groups{"/system.slice/docker-abc.scope"}));
  EXPECT_EQ(OwnCgroups("0::/default/abc\n", "abc"), (Groups{"/default/abc"}));
  EXPECT_EQ(OwnCgroups("0::/user.slice/session-1.scope\n", "abc"), Groups{});
  EXPECT_EQ(OwnCgroups("0::/\n", "abc"), Groups{});
  EXPECT_EQ(OwnCgroups("0::/../abc/..\n", "abc"), Groups{});
  EXPECT_EQ(OwnCgroups("0::/xabc\nnonsense\n", "abc"), Groups{});
}

TEST(OciCheckTest, MountsOfARoot) {
  const auto mounts = MountsBeneath(
      "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
      "2 1 8:1 / /r rw - ext4 /dev/sda rw\n"
      "3 2 0:5 / /r/host\\040dev rw,nosuid shared:1 - devtmpfs dev rw\n"
      "4 2 0:6 / /r/dev/shm rw,nodev - tmpfs shm rw\n"
      "5 2 0:6 / /rest rw - tmpfs x rw\n",
      "/r");
  ASSERT_TRUE(mounts.has_value());
  ASSERT_EQ(mounts->size(), 2U);
  EXPECT_EQ(mounts->at(0).path, ".");
  EXPECT_EQ(mounts->at(1).path, "host dev");
  EXPECT_TRUE(mounts->at(1).devices);
  EXPECT_FALSE(MountsBeneath("nonsense\n", "/r").has_value());
}

class OciLookTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root, to make device nodes";
    }
    char name[] = "/tmp/ringfence-look-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    top_ = name;
    std::filesystem::create_directories(top_ + "/root/dev/inner");
    std::filesystem::create_directories(top_ + "/host");
    Node(top_ + "/host/nvidia0", 195, 0);
  }
  void TearDown() override {
    if (!top_.empty()) {
      std::filesystem::remove_all(top_);
    }
  }
  static void Node(const std::string& path, unsigned node_major, unsigned node_minor) {
    ASSERT_EQ(mknod(path.c_str(), S_IFCHR | 0600, makedev(node_major, node_minor)), 0) << path;
  }
  std::vector<std::string> Look() {
    const auto asked = LookInside(getpid(), top_ + "/root", kMajors);
    std::vector<std::string> found;
    if (!asked.has_value()) {
      return {"error: " + asked.error().message};
    }
    for (const AskedDevice& device : *asked) {
      found.push_back(device.where + " " + std::to_string(device.major) + ":" +
                      std::to_string(*device.minor));
    }
    return found;
  }

  using Found = std::vector<std::string>;
  std::string top_;
};

TEST_F(OciLookTest, FindsNodesWhereverTheyAreInDev) {
  Node(top_ + "/root/dev/null", 1, 3);
  EXPECT_EQ(Look(), Found{});
  Node(top_ + "/root/dev/inner/harmless", 195, 7);
  Node(top_ + "/root/dev/card", 226, 0);
  EXPECT_EQ(Look(), (Found{"/dev/card 226:0", "/dev/inner/harmless 195:7"}));
}

TEST_F(OciLookTest, LinksLeadNowhere) {
  ASSERT_EQ(symlink("../../host", (top_ + "/root/dev/out").c_str()), 0);
  ASSERT_EQ(symlink((top_ + "/host/nvidia0").c_str(), (top_ + "/root/dev/nvidia0").c_str()), 0);
  ASSERT_EQ(symlink("/proc/self/root", (top_ + "/root/dev/root").c_str()), 0);
  EXPECT_EQ(Look(), Found{});
  std::filesystem::remove_all(top_ + "/root/dev");
  ASSERT_EQ(symlink("../host", (top_ + "/root/dev").c_str()), 0);
  EXPECT_EQ(Look(), Found{}) << "a link for a /dev is not followed on the host";
}

// In a mount namespace of its own, as a container's process 1 has one.
TEST_F(OciLookTest, FindsWhatIsMounted) {
  std::filesystem::create_directories(top_ + "/root/deep/er");
  std::ofstream(top_ + "/root/data");
  std::ofstream(top_ + "/root/blind");
  std::filesystem::create_directories(top_ + "/root/dev/shm");
  const int child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto bind = [&](const std::string& from, const std::string& to, unsigned long more) {
      return mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
             (more == 0 ||
              mount(nullptr, to.c_str(), nullptr, MS_BIND | MS_REMOUNT | more, nullptr) == 0);
    };
    const std::string node = top_ + "/host/nvidia0";
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        !bind(node, top_ + "/root/data", 0) || !bind(node, top_ + "/root/blind", MS_NODEV) ||
        mount("tmpfs", (top_ + "/root/dev/shm").c_str(), "tmpfs", 0, nullptr) != 0) {
      _exit(2);
    }
    Node(top_ + "/root/dev/shm/other", 195, 9);
    const Found wanted = {"/data 195:0", "/dev/shm/other 195:9"};
    _exit(Look() == wanted ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "2: could not mount; 1: something else was found";
}

TEST_F(OciLookTest, TooMuchToLookAtIsRefused) {
  std::string deep = top_ + "/root/dev";
  for (int i = 0; i < 12; ++i) {
    deep += "/d";
  }
  std::filesystem::create_directories(deep);
  ASSERT_EQ(Look().size(), 1U);
  EXPECT_EQ(Look()[0].substr(0, 5), "error");
}

// What CVE-2024-0132 was: between a check and a use, a folder of the container became a link to one
// of the host. Here the host's folder holds a GPU, and must never be seen; the container's own
// holds another, which must be seen whenever it is there for the whole look.
TEST_F(OciLookTest, SwappedLinksAreNeverFollowed) {
  std::filesystem::create_directories(top_ + "/root/dev/swap");
  Node(top_ + "/root/dev/swap/own", 195, 7);
  ASSERT_EQ(symlink((top_ + "/host").c_str(), (top_ + "/root/dev/other").c_str()), 0);
  const int swapper = fork();
  ASSERT_GE(swapper, 0);
  if (swapper == 0) {
    for (;;) {
      (void)syscall(SYS_renameat2, AT_FDCWD, (top_ + "/root/dev/swap").c_str(), AT_FDCWD,
                    (top_ + "/root/dev/other").c_str(), RENAME_EXCHANGE);
    }
  }
  // Undisturbed, a look sees the container's own GPU once. Until some were disturbed: on a busy
  // machine the swapper may not run for a while.
  int seen = 0;
  int disturbed = 0;
  std::string wrong;
  for (int i = 0; (i < 10'000 || disturbed == 0 || seen == 0) && wrong.empty(); ++i) {
    const Found found = Look();
    for (const std::string& line : found) {
      if (line.find("195:7") == std::string::npos) {
        wrong = line;
      }
      ++seen;
    }
    disturbed += found.size() == 1 ? 0 : 1;
  }
  ASSERT_EQ(kill(swapper, SIGKILL), 0);
  ASSERT_EQ(waitpid(swapper, nullptr, 0), swapper);
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace ringfence::isolate
