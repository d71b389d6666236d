// Goal: `ringfence risk` from findings to decisions does what its help says, and never writes what
// it was not asked to.
// Method: the whole command line over tests/roots, with a register in a folder of the test.

#include <gtest/gtest.h>

#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

class RiskCommandTest : public ::testing::Test {
 protected:
  AppResult Run(std::vector<std::string> words) {
    words.insert(words.end(), {"--register", register_, "--model", kModel});
    return RunLine(folder_.folder.path(), words);
  }
  AppResult Update(const std::string& root, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"risk",     "update",
                                      "--checks", kChecks,
                                      "--root",   RINGFENCE_SOURCE_DIR "/tests/roots/" + root,
                                      "--node",   "n1"};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  }
  Json RunJson(std::vector<std::string> words) {
    words.insert(words.end(), {"-o", "json"});
    const AppResult result = Run(words);
    EXPECT_EQ(result.status, 0) << result.err;
    return ParseJson(result.out, std::size_t{1} << 24U).value();
  }

  const std::string kChecks = RINGFENCE_SOURCE_DIR "/content/checks";
  const std::string kModel = RINGFENCE_SOURCE_DIR "/content/risk/model.yaml";
  TestFolder folder_;
  std::string register_ = folder_.Path("risk.json");
};

TEST_F(RiskCommandTest, FromFindingsToDecisionsAndBack) {
  EXPECT_EQ(Run({"risk", "list"}).status, 4) << "nothing there yet";
  ASSERT_EQ(Update("bad", {"--tenants", "3", "--reachable", "yes"}).status, 0);
  const AppResult list = Run({"risk", "list"});
  EXPECT_NE(list.out.find("n1/ssh-root-login"), std::string::npos) << list.out;
  const AppResult shown = Run({"risk", "show", "n1/ssh-root-login"});
  EXPECT_NE(shown.out.find("likelihood +1"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("assessment: opened"), std::string::npos) << shown.out;
  EXPECT_NE(Run({"risk", "show", "n1"}).out.find("rounded down"), std::string::npos);
  EXPECT_NE(Run({"risk", "matrix"}).out.find("impact"), std::string::npos);
  EXPECT_NE(Run({"risk", "report"}).out.find("<!doctype html>"), std::string::npos);
  const Json report = RunJson({"risk", "report"});
  EXPECT_EQ(report.at("matrix").as_array().size(), 25U);
  EXPECT_EQ(report.at("nodes").at(0).at("node"), "n1");
  EXPECT_GT(report.at("risks").as_array().size(), 40U);
  const Json top = RunJson({"risk", "top"});
  ASSERT_EQ(top.as_array().size(), 10U);
  EXPECT_LT(top.at(0).at("score_then").as_int64(), top.at(9).at("score_then").as_int64());
  // Better kept, the same node's risks close.
  const std::int64_t before = RunJson({"risk", "show", "n1"}).at("score").as_int64();
  ASSERT_EQ(Update("good").status, 0);
  EXPECT_GT(RunJson({"risk", "show", "n1"}).at("score").as_int64(), before);
  EXPECT_EQ(RunJson({"risk", "show", "n1/ssh-root-login"}).at("state"), "closed");
  EXPECT_EQ(RunJson({"risk", "trend"}).as_array().size(), 2U);
}

TEST_F(RiskCommandTest, ADecisionNeedsOwnerDayAndReason) {
  ASSERT_EQ(Update("bad").status, 0);
  const std::vector<std::string> accept = {"risk", "accept", "n1/ssh-root-login"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> words = accept;
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  };
  EXPECT_EQ(with({}).status, 2);
  EXPECT_EQ(with({"--owner", "ann", "--until", "2001-01-01", "--reason", "r"}).status, 2);
  EXPECT_EQ(with({"--owner", "ann", "--until", "9998-01-01", "--reason", "r"}).status, 2);
  EXPECT_EQ(with({"--owner", "ann", "--until", "soon", "--reason", "r"}).status, 2);
  const std::string day = FormatTime(SystemClock().Now() + std::chrono::days(20)).substr(0, 10);
  EXPECT_EQ(with({"--owner", "ann", "--until", day}).status, 2) << "no reason";
  EXPECT_EQ(RunJson({"risk", "show", "n1/ssh-root-login"}).at("footing"), "undecided");
  ASSERT_EQ(with({"--owner", "ann", "--until", day, "--reason", "r"}).status, 0);
  EXPECT_EQ(RunJson({"risk", "show", "n1/ssh-root-login"}).at("footing"), "accepted");
  ASSERT_EQ(Update("bad", {"--reachable", "yes"}).status, 0);
  EXPECT_EQ(RunJson({"risk", "show", "n1/ssh-root-login"}).at("footing"), "acceptance lapsed");
  ASSERT_EQ(Run({"risk", "assign", "n1/ssh-root-login", "--owner", "bob", "--until", day}).status,
            0);
  EXPECT_EQ(RunJson({"risk", "show", "n1/ssh-root-login"}).at("footing"), "to be fixed");
  ASSERT_EQ(Run({"risk", "transfer", "n1/ssh-root-login", "--owner", "bob", "--to", "hoster",
                 "--reason", "r"})
                .status,
            0);
  EXPECT_EQ(RunJson({"risk", "show", "n1/ssh-root-login"}).at("history").as_array().size(), 4U);
  const AppResult wrong = Run({"risk", "show", "n1/ssh-root-logn"});
  EXPECT_EQ(wrong.status, 4);
  EXPECT_NE(wrong.err.find("n1/ssh-root-login"), std::string::npos) << wrong.err;
}

TEST_F(RiskCommandTest, AnAssessmentFromElsewhereAndADamagedRegister) {
  const AppResult assessed =
      RunLine(folder_.folder.path(), {"assess", "--checks", kChecks, "--root",
                                      RINGFENCE_SOURCE_DIR "/tests/roots/bad", "-o", "json"});
  const std::string file = folder_.Write("a.json", assessed.out);
  ASSERT_EQ(Run({"risk", "update", file}).status, 0);
  EXPECT_GT(RunJson({"risk", "list", "--node", "gpu-bad-1"}).as_array().size(), 40U);
  EXPECT_EQ(Run({"risk", "list", "--node", "gpu-bad-2"}).status, 4);
  EXPECT_EQ(Run({"risk", "update", folder_.Write("b.json", "{}")}).status, 2);
  const std::string text = os::ReadText(register_, std::size_t{1} << 24U).value();
  folder_.Write("risk.json", text.substr(0, text.size() / 2));
  EXPECT_EQ(Run({"risk", "list"}).status, 8);
  EXPECT_EQ(Update("bad").status, 8) << "a register that cannot be read is not written over";
  EXPECT_EQ(os::ReadText(register_, std::size_t{1} << 24U).value().size(), text.size() / 2);
}

}  // namespace
}  // namespace ringfence::cli
