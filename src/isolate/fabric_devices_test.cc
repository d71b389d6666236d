// Goal: of a fabric's devices a box gets the verbs and the connection manager of the node, or its
// IMEX channel, and nothing by which the fabric is administered; a strange sysfs gives none.
// Method: files of sysfs and /proc in a root of the test's own.

#include "isolate/fabric_devices.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ringfence::isolate {
namespace {

class FabricDevicesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ringfence-fabric-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root_ + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  std::string root_;
};

TEST_F(FabricDevicesTest, VerbsAndTheirManagerOnly) {
  Write("/sys/class/infiniband_verbs/uverbs0/dev", "231:192\n");
  Write("/sys/class/infiniband_verbs/uverbs1/dev", "231:193\n");
  Write("/sys/class/infiniband_verbs/abi_version", "6\n");
  Write("/sys/class/infiniband_mad/umad0/dev", "231:0\n");
  Write("/sys/class/infiniband_mad/issm0/dev", "231:64\n");
  Write("/sys/class/misc/rdma_cm/dev", "10:122\n");
  const auto nodes = FabricNodes(root_, {"rdma"});
  ASSERT_TRUE(nodes.has_value()) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 3U);
  EXPECT_EQ((*nodes)[0].path, "/dev/infiniband/uverbs0");
  EXPECT_EQ((*nodes)[0].major, 231U);
  EXPECT_EQ((*nodes)[1].minor, 193U);
  EXPECT_EQ((*nodes)[2].path, "/dev/infiniband/rdma_cm");
  EXPECT_EQ((*nodes)[2].minor, 122U);
}

TEST_F(FabricDevicesTest, TheChannelOfTheNode) {
  Write("/proc/devices", "Character devices:\n195 nvidia\n235 nvidia-caps-imex-channels\n");
  const auto nodes = FabricNodes(root_, {"imex"});
  ASSERT_TRUE(nodes.has_value()) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_EQ((*nodes)[0].path, "/dev/nvidia-caps-imex-channels/channel0");
  EXPECT_EQ((*nodes)[0].major, 235U);
  EXPECT_EQ((*nodes)[0].minor, 0U);
}

TEST_F(FabricDevicesTest, ANodeWithoutThemSaysSo) {
  Write("/proc/devices", "Character devices:\n195 nvidia\n");
  EXPECT_EQ(FabricNodes(root_, {"rdma"}).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(FabricNodes(root_, {"imex"}).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(FabricNodes(root_, {"sda"}).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(FabricNodes(root_, {})->empty());
}

TEST_F(FabricDevicesTest, AStrangeSysfsGivesNothing) {
  for (const char* text :
       {"", "231", "231:", ":1", "0:5\n", "a:b", "231:192:1", "-1:2", "99999999:1", "231 :1"}) {
    Write("/sys/class/infiniband_verbs/uverbs0/dev", text);
    EXPECT_FALSE(FabricNodes(root_, {"rdma"}).has_value()) << text;
  }
  std::filesystem::remove_all(root_ + "/sys");
  Write("/sys/class/infiniband_verbs/uverbs0..1/dev", "231:192\n");
  Write("/sys/class/infiniband_verbs/uverbs/dev", "231:192\n");
  EXPECT_FALSE(FabricNodes(root_, {"rdma"}).has_value());
}

}  // namespace
}  // namespace ringfence::isolate
