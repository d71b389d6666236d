// Goal: `ringfence baseline` records, verifies, names each drift, and trusts nothing that its key
// did not sign.
// Method: the whole command line over a captured root that the test changes.

#include <gtest/gtest.h>

#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

constexpr char kNvml[] =
    R"({"driver":"580.1","gpus":[{"uuid":"GPU-1","model":"H200","vbios":"96.1","ecc":true}]})";
constexpr char kOther[] =
    R"({"driver":"580.1","gpus":[{"uuid":"GPU-1","model":"H200","vbios":"96.2","ecc":true}]})";

class BaselineCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("root/etc/hostname", "n7\n");
    folder_.Write("root/proc/sys/kernel/osrelease", "6.1.0\n");
    folder_.Write("root/ringfence/nvml.json", kNvml);
  }
  AppResult Run(std::vector<std::string> words, bool with_root = true) {
    words.insert(words.end(), {"--state", folder_.Path("state")});
    if (with_root) {
      words.insert(words.end(), {"--root", folder_.Path("root")});
    }
    return RunLine(folder_.folder.path(), words);
  }
  TestFolder folder_;
};

TEST_F(BaselineCommandTest, NamesEachDrift) {
  EXPECT_EQ(Run({"baseline", "verify"}).status, 4) << "nothing recorded";
  ASSERT_EQ(Run({"baseline", "record"}).status, 0);
  EXPECT_EQ(Run({"baseline", "record"}).status, 6) << "not written over";
  EXPECT_EQ(Run({"baseline", "verify"}).status, 0);
  EXPECT_NE(Run({"baseline", "show"}, false).out.find("gpu.GPU-1.vbios"), std::string::npos);
  folder_.Write("root/ringfence/nvml.json", kOther);
  const AppResult drifted = Run({"baseline", "verify"});
  EXPECT_EQ(drifted.status, 1);
  EXPECT_NE(drifted.out.find("96.1 became 96.2"), std::string::npos) << drifted.out;
  EXPECT_EQ(Run({"baseline", "verify", "--ignore", "gpu.*.vbios"}).status, 0);
  ASSERT_EQ(Run({"baseline", "record", "--force"}).status, 0);
  EXPECT_EQ(Run({"baseline", "verify"}).status, 0);
}

TEST_F(BaselineCommandTest, RefusesWhatTheKeyDidNotSign) {
  ASSERT_EQ(Run({"baseline", "record"}).status, 0);
  const std::string good = os::ReadText(folder_.Path("state/baseline.json"), 1 << 20).value();
  std::string bad = good;
  bad[good.find("\"sig\":\"") + 8] ^= 1;
  folder_.Write("state/baseline.json", bad);
  EXPECT_EQ(Run({"baseline", "verify"}).status, 3);
  EXPECT_EQ(Run({"baseline", "show"}, false).status, 3);
  folder_.Write("state/baseline.json", good);
  EXPECT_EQ(Run({"baseline", "verify"}).status, 0);
  ASSERT_EQ(Run({"baseline", "record", "--key", folder_.Path("other.key"), "--public-key",
                 folder_.Path("other.pub"), "--file", folder_.Path("other.json")})
                .status,
            0);
  EXPECT_EQ(Run({"baseline", "verify", "--file", folder_.Path("other.json")}).status, 3)
      << "another key's";
  folder_.Write("state/baseline.key", "rubbish");
  EXPECT_EQ(Run({"baseline", "record", "--force"}).status, 8);
}

TEST_F(BaselineCommandTest, NoFolderOfAMistypedPathIsMade) {
  const AppResult result = Run({"baseline", "record", "--file", folder_.Path("bakups/n7.json"),
                                "--key", folder_.Path("k"), "--public-key", folder_.Path("p")});
  EXPECT_EQ(result.status, 4) << result.err;
  EXPECT_NE(result.err.find("bakups"), std::string::npos) << result.err;
  EXPECT_FALSE(os::Exists(folder_.Path("bakups")));
  EXPECT_FALSE(os::Exists(folder_.Path("k"))) << "nothing half done";
}

TEST_F(BaselineCommandTest, ChecksReadWhatNvmlSaid) {
  const std::string checks = RINGFENCE_SOURCE_DIR "/content/checks";
  const std::string bad = RINGFENCE_SOURCE_DIR "/tests/roots/bad";
  for (const char* check : {"gpu-ecc", "gpu-vbios-mixed", "gpu-mig-mixed", "gpu-memory-errors"}) {
    const AppResult result =
        RunLine(folder_.folder.path(),
                {"check", "run", check, "--checks", checks, "--root", bad, "--fail-on", "low"});
    EXPECT_EQ(result.status, 1) << check << result.out;
  }
}

}  // namespace
}  // namespace ringfence::cli
