// Goal: a container is written down before its lease can end without it, or it is refused.
// Method: the folder as jailer and hook use it; a thread that joins and one that closes, thousands
// of times: each container that was let in is in the list that the closer reads.

#include "isolate/held.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

namespace ringfence::isolate {
namespace {

class HeldTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root, whose folder it is";
    }
    char name[] = "/dev/shm/ringfence-held-test-XXXXXX";  // syncs are free there
    ASSERT_NE(mkdtemp(name), nullptr);
    path_ = name;
  }
  void TearDown() override {
    if (!path_.empty()) {
      std::filesystem::remove_all(path_);
    }
  }

  HeldFolder Open() { return std::move(HeldFolder::Open(path_)).value(); }
  static HeldLease Lease(const std::string& name) {
    return {name, "boot", {{"/dev/nvidia3", 195, 3}}, {{77, 12345, ""}}};
  }

  std::string path_;
};

TEST_F(HeldTest, FromAddToRemove) {
  HeldFolder folder = Open();
  ASSERT_TRUE(folder.SetMajors({195, 238}).has_value());
  EXPECT_EQ(*folder.Majors(), (std::set<std::uint32_t>{195, 238}));
  EXPECT_EQ(folder.Find("lease-a").error().code, Code::kNotFound);
  ASSERT_TRUE(folder.Add(Lease("lease-a"), "document").has_value());
  EXPECT_EQ(*folder.Names(), std::vector<std::string>{"lease-a"});
  EXPECT_EQ(folder.Find("lease-a")->nodes[0].minor, 3U);
  EXPECT_EQ(folder.Find("lease-a")->before[0].started, 12345U);
  EXPECT_EQ(*folder.Spec("lease-a"), "document");
  ASSERT_TRUE(folder.Join("lease-a", {"c1", 100, 5, {"/a", "/b"}}).has_value());
  ASSERT_TRUE(folder.Join("lease-a", {"c1", 101, 6, {"/a"}}).has_value());
  const auto containers = folder.Containers("lease-a");
  ASSERT_EQ(containers->size(), 1U);
  EXPECT_EQ(containers->at(0).pid, 101);
  ASSERT_TRUE(folder.Close("lease-a").has_value());
  ASSERT_TRUE(folder.Close("lease-a").has_value());
  EXPECT_EQ(folder.Find("lease-a").error().code, Code::kNotFound);
  EXPECT_EQ(folder.FindEnded("lease-a")->boot, "boot");
  const auto late = folder.Join("lease-a", {"c2", 100, 5, {"/a"}});
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(folder.Containers("lease-a")->size(), 1U);
  ASSERT_TRUE(folder.Drop("lease-a", "c1").has_value());
  EXPECT_TRUE(folder.Containers("lease-a")->empty());
  ASSERT_TRUE(folder.Remove("lease-a").has_value());
  ASSERT_TRUE(folder.Remove("lease-a").has_value());
  EXPECT_TRUE(folder.Names()->empty());
}

TEST_F(HeldTest, NamesThatLeadElsewhereAreRefused) {
  HeldFolder folder = Open();
  ASSERT_TRUE(folder.Add(Lease("lease-a"), "document").has_value());
  for (const char* name : {"..", "../x", "/etc", "", ".x", "-x"}) {
    EXPECT_FALSE(folder.Find(name).has_value()) << name;
    EXPECT_FALSE(folder.Add(Lease(name), "document").has_value()) << name;
    EXPECT_FALSE(folder.Remove(name).has_value()) << name;
    EXPECT_FALSE(folder.Join("lease-a", {name, 100, 5, {"/a"}}).has_value()) << name;
  }
  std::filesystem::create_symlink("/etc", path_ + "/lease-b");
  EXPECT_FALSE(folder.Find("lease-b").has_value());
  std::ofstream(path_ + "/lease-a/lease.json") << "{}";
  EXPECT_FALSE(folder.Find("lease-a").has_value());
}

TEST_F(HeldTest, AFolderThatOthersCanChangeIsRefused) {
  ASSERT_EQ(chmod(path_.c_str(), 0777), 0);
  EXPECT_EQ(HeldFolder::Open(path_).error().code, Code::kFailedPrecondition);
  ASSERT_EQ(chmod(path_.c_str(), 0700), 0);
  EXPECT_EQ(HeldFolder::Open(path_ + "/none").error().code, Code::kNotFound);
}

TEST_F(HeldTest, WhoIsLetInIsSeenByWhoCloses) {
  int let_in = 0;
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::string lease = "lease-" + std::to_string(round);
    HeldFolder closer = Open();
    HeldFolder joiner = Open();
    ASSERT_TRUE(closer.Add(Lease(lease), "document").has_value());
    std::atomic<bool> go = false;
    bool joined = false;
    std::thread thread([&] {
      while (!go) {
      }
      joined = joiner.Join(lease, {"c", 100, 5, {"/a"}}).has_value();
    });
    go = true;
    for (int i = 0; i < (round % 100) * 100; ++i) {  // where the two meet, not a wait
      go = true;
    }
    ASSERT_TRUE(closer.Close(lease).has_value());
    const auto seen = closer.Containers(lease);
    thread.join();
    ASSERT_TRUE(seen.has_value());
    if (joined) {
      ASSERT_EQ(seen->size(), 1U) << "let in, and nobody knows";
    }
    ++(joined ? let_in : refused);
    ASSERT_TRUE(closer.Remove(lease).has_value());
  }
  RecordProperty("let_in", let_in);
  RecordProperty("refused", refused);
  EXPECT_GT(let_in + refused, 0);
}

}  // namespace
}  // namespace ringfence::isolate
