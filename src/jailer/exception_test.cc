// Goal: a real box with an exception shares what it names and nothing else, ends with it, and is
// not started outside its time.
// Method: the real jailer, runtime and kernel (see harness_test.h).

#include <filesystem>

#include "isolate/walls_away.h"
#include "jailer/harness_test.h"

namespace ringfence::jailer {
namespace {

class ExceptionTest : public JailerTest {
 protected:
  // Its network, process and user namespaces, and its capabilities.
  isolate::Grant Looking(bool network, bool pids) {
    isolate::Grant grant = MakeGrant({"sh", "-c",
                                      "for n in net pid user; do readlink /proc/self/ns/$n; done; "
                                      "grep CapBnd /proc/self/status"});
    if (network || pids) {
      grant.box.exception =
          isolate::GrantException{"debug", network, pids, clock_.Now() - std::chrono::hours(1),
                                  clock_.Now() + std::chrono::hours(1)};
    }
    return grant;
  }
  static std::string Own(const char* name) {
    return std::filesystem::read_symlink(std::string("/proc/self/ns/") + name).string() + "\n";
  }
};

TEST_F(ExceptionTest, SharesWhatItNamesAndNothingElse) {
  Start();
  for (const bool network : {false, true}) {
    for (const bool pids : {false, true}) {
      const Ran ran = Run(Looking(network, pids));
      ASSERT_EQ(ran.exit, "exited 0\n") << ran.out << ran.err;
      EXPECT_EQ(ran.out.find(Own("net")) != std::string::npos, network) << ran.out;
      EXPECT_EQ(ran.out.find(Own("pid")) != std::string::npos, pids) << ran.out;
      EXPECT_EQ(ran.out.find(Own("user")), std::string::npos) << ran.out;
      EXPECT_NE(ran.out.find("CapBnd:\t0000000000000000\n"), std::string::npos) << ran.out;
    }
  }
}

TEST_F(ExceptionTest, OutsideItsTimeItIsRefusedAndOnRecord) {
  Start();
  isolate::Grant late = Looking(true, false);
  late.box.exception->until = clock_.Now() - std::chrono::seconds(1);
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, late)), Code::kPermissionDenied);
  isolate::Grant early = Looking(true, false);
  early.box.exception->from = clock_.Now() + std::chrono::minutes(30);
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, early)), Code::kPermissionDenied);
  EXPECT_EQ(Run(MakeGrant({"true"})).exit, "exited 0\n");  // the control
}

TEST_F(ExceptionTest, TheJobEndsWithIt) {
  Start();
  isolate::Grant grant = Looking(true, false);
  grant.command = {"sleep", "600"};
  grant.box.exception->until = clock_.Now() + std::chrono::seconds(5);
  EXPECT_EQ(Run(grant).exit, "timeout\n");
}

TEST_F(ExceptionTest, AProbeWithoutWallsHasNone) {
  Start();
  isolate::Grant grant = Looking(true, false);
  grant.command = {isolate::kBoxProbePath, "x"};
  grant.box.walls_away = {"seccomp"};
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, grant)), Code::kPermissionDenied);
}

}  // namespace
}  // namespace ringfence::jailer
