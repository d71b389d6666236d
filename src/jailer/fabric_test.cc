// Goal: a box has the devices of a fabric that its signed grant names, usable, and no others; a
// node without them refuses; one IMEX channel is never two tenants'. Method: the real jailer,
// runtime and kernel (see harness_test.h), with device numbers that no driver of this machine has:
// the kernel answers ENXIO where the box may open a node, and EPERM where its device rules forbid
// it.

#include <filesystem>
#include <fstream>

#include "jailer/harness_test.h"

namespace ringfence::jailer {
namespace {

class FabricTest : public JailerTest {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = driver_root_ + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole, std::ios::app) << text;
  }
  // What opening each of them says.
  static isolate::Grant Opening(isolate::Grant grant, std::vector<std::string> devices) {
    grant.command = {"python3", "-c",
                     "import os\n"
                     "for name in ('infiniband/uverbs0', 'infiniband/rdma_cm', "
                     "'nvidia-caps-imex-channels/channel0', 'infiniband/umad0'):\n"
                     "  try: os.open('/dev/' + name, os.O_RDWR); print('opened')\n"
                     "  except OSError as error: print(error.errno)\n"};
    grant.box.devices = std::move(devices);
    return grant;
  }
};

TEST_F(FabricTest, WhatTheGrantNamesAndNothingElse) {
  Write("/sys/class/infiniband_verbs/uverbs0/dev", "231:4000\n");
  Write("/sys/class/misc/rdma_cm/dev", "231:4001\n");
  Write("/sys/class/infiniband_mad/umad0/dev", "231:4002\n");
  Write("/proc/devices", "231 nvidia-caps-imex-channels\n");
  Start();
  EXPECT_EQ(Run(Opening(MakeGrant({}), {})).out, "2\n2\n2\n2\n");
  const Ran rdma = Run(Opening(MakeGrant({}), {"rdma"}));
  EXPECT_EQ(rdma.out, "6\n6\n2\n2\n") << rdma.err << rdma.exit;
  const Ran imex = Run(Opening(MakeGrant({}), {"imex"}));
  EXPECT_EQ(imex.out, "2\n2\n6\n2\n") << imex.err << imex.exit;
}

TEST_F(FabricTest, ANodeWithoutThemRefuses) {
  Start();
  const isolate::Grant grant = Opening(MakeGrant({}), {"rdma"});
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, grant)), Code::kFailedPrecondition);
  isolate::Grant wrong = Opening(MakeGrant({}), {"sda"});
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, wrong)), Code::kInvalidArgument);
}

TEST_F(FabricTest, OneChannelIsOneTenants) {
  Write("/proc/devices", "231 nvidia-caps-imex-channels\n");
  Start();
  isolate::Grant first = MakeGrant({"sleep", "60"});
  first.box.devices = {"imex"};
  auto running = client_->Start(isolate::SealGrant(server_, first));
  ASSERT_TRUE(running.has_value()) << running.error().message;
  isolate::Grant other = MakeGrant({"true"});
  other.tenant = "globex";
  other.box.devices = {"imex"};
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, other)), Code::kFailedPrecondition);
  isolate::Grant same = MakeGrant({"true"});
  same.box.devices = {"imex"};
  EXPECT_EQ(Run(same).exit, "exited 0\n");
  EXPECT_TRUE(client_->End(first.lease).has_value());
  (void)Collect(std::move(*running));
}

}  // namespace
}  // namespace ringfence::jailer
