// Goal: `assess` and `check` do what their help says, on a captured root.
// Method: the whole command line over tests/roots.

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

const std::string kChecks = RINGFENCE_SOURCE_DIR "/content/checks";
const std::string kRoots = RINGFENCE_SOURCE_DIR "/tests/roots/";

AppResult RunChecks(const TestFolder& folder, std::vector<std::string> words,
                    const std::string& root) {
  words.insert(words.end(), {"--checks", kChecks});
  if (!root.empty()) {
    words.insert(words.end(), {"--root", kRoots + root});
  }
  return RunLine(folder.folder.path(), words);
}

TEST(AssessCommandTest, TheSummaryFitsAScreenAndSaysWhatToDo) {
  const TestFolder folder;
  const AppResult result = RunChecks(folder, {"assess"}, "bad");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_LE(std::count(result.out.begin(), result.out.end(), '\n'), 24);
  EXPECT_NE(result.out.find("gpu-bad-1"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("Do first"), std::string::npos);
  EXPECT_NE(result.out.find("ssh-root-login"), std::string::npos) << result.out;
}

TEST(AssessCommandTest, FailOnAndExceptions) {
  const TestFolder folder;
  EXPECT_EQ(RunChecks(folder, {"assess", "--fail-on", "critical"}, "bad").status, 1);
  EXPECT_EQ(RunChecks(folder, {"assess", "--fail-on", "low"}, "good").status, 0);
  EXPECT_EQ(RunChecks(folder, {"assess", "--fail-on", "worst"}, "good").status, 2);
  const std::string file = folder.Write(
      "e.yaml",
      "exceptions:\n  - {check: ssh-root-login, owner: ann, reason: r, until: 9998-01-01}\n");
  const std::vector<std::string> one = {"check", "run", "ssh-root-login", "--fail-on", "low"};
  EXPECT_EQ(RunChecks(folder, one, "bad").status, 1);
  std::vector<std::string> excepted = one;
  excepted.insert(excepted.end(), {"--exceptions", file});
  EXPECT_EQ(RunChecks(folder, excepted, "bad").status, 0);
}

TEST(AssessCommandTest, EveryReport) {
  const TestFolder folder;
  const std::pair<const char*, const char*> reports[] = {{"sarif", "\"2.1.0\""},
                                                         {"markdown", "# Assessment of"},
                                                         {"html", "<!doctype html>"},
                                                         {"junit", "<testsuite"},
                                                         {"prometheus", "ringfence_assess_score"}};
  for (const auto& [name, part] : reports) {
    const AppResult result = RunChecks(folder, {"assess", "--report", name}, "bad");
    EXPECT_EQ(result.status, 0) << name;
    EXPECT_NE(result.out.find(part), std::string::npos) << name;
  }
  EXPECT_EQ(RunChecks(folder, {"assess", "--report", "htm"}, "bad").status, 2);
  const AppResult json = RunChecks(folder, {"assess", "-o", "json"}, "bad");
  const auto parsed = ParseJson(json.out, std::size_t{1} << 24U);
  ASSERT_TRUE(parsed.has_value()) << json.err;
  EXPECT_EQ(parsed->at("node"), "gpu-bad-1");
  EXPECT_GT(parsed->at("counts").at("fail").as_int64(), 40);
}

TEST(AssessCommandTest, SlipsAreAnsweredAndTheWorstComesFirst) {
  const TestFolder folder;
  const AppResult slip = RunLine(folder.folder.path(), {"assess", "flet"});
  EXPECT_EQ(slip.status, 2);
  EXPECT_NE(slip.err.find("fleet"), std::string::npos) << slip.err;
  EXPECT_NE(RunChecks(folder, {"assess", "--class", "hosts"}, "bad").err.find("`host`"),
            std::string::npos);
  const AppResult all = RunChecks(folder, {"assess", "--all"}, "bad");
  EXPECT_LT(all.out.rfind("fail            critical"), all.out.find("fail            high"));
  EXPECT_LT(all.out.rfind("fail            high"), all.out.find("fail            medium"));
}

TEST(AssessCommandTest, AReportIsNoOtherFormat) {
  const TestFolder folder;
  const AppResult both = RunChecks(folder, {"assess", "--report", "html", "-o", "json"}, "bad");
  EXPECT_EQ(both.status, 2);
  EXPECT_TRUE(both.out.empty()) << both.out;
  EXPECT_NE(both.err.find("leave --report out"), std::string::npos) << both.err;
}

TEST(AssessCommandTest, AFolderForAFileAndAFileForAFolder) {
  const TestFolder folder;
  const std::string file = folder.Write("file", "x");
  const AppResult exceptions =
      RunChecks(folder, {"assess", "--exceptions", folder.folder.path()}, "good");
  EXPECT_EQ(exceptions.status, 2) << exceptions.err;
  EXPECT_NE(exceptions.err.find("name a file"), std::string::npos) << exceptions.err;
  const AppResult root =
      RunLine(folder.folder.path(), {"assess", "--checks", kChecks, "--root", file});
  EXPECT_EQ(root.status, 2) << root.err;
  EXPECT_NE(root.err.find("name a folder"), std::string::npos) << root.err;
}

TEST(AssessCommandTest, TheDriverOfTheSettingsIsAskedByEveryCommand) {
  const TestFolder folder;
  const std::string state = folder.Path("state");
  ASSERT_TRUE(os::MakeDirs(state, 0700).has_value());
  // There is no driver in it: whoever asks it says so.
  folder.Write("state/ringfence.yaml", "node: {driver_root: " + folder.Path("driver") + "}\n");
  const std::string config = folder.Path("state/ringfence.yaml");
  const AppResult check =
      RunLine(folder.folder.path(),
              {"check", "run", "gpu-ecc", "--checks", kChecks, "--config", config, "-o", "json"});
  const AppResult baseline =
      RunLine(folder.folder.path(), {"baseline", "capture", "--config", config});
  EXPECT_NE(check.out.find("cannot tell"), std::string::npos) << check.out << check.err;
  EXPECT_NE(baseline.err.find(folder.Path("driver")), std::string::npos) << baseline.err;
}

TEST(AssessCommandTest, TheFleetsTableHasAColumnOfFlawsOnlyWhereBulletinsAreGiven) {
  const TestFolder folder;
  const FakeServer server([](const net::Request&, const net::Responder& responder) {
    net::Response response;
    response.body =
        R"({"assessments":[{"node":"n1","time":"2026-11-16T12:00:00Z","score":70,"failing":3,)"
        R"("cannot_tell":2,"severities":{"critical":1,"high":2},"baseline":"ok","drift":0}]})";
    responder.Send(std::move(response));
  });
  server.WriteContextIn(folder.Path("state"));
  const AppResult result =
      RunLine(folder.folder.path(), {"assess", "fleet", "--state", folder.Path("state")});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("BASELINE  WHEN"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("FLAWS"), std::string::npos);
}

TEST(AssessCommandTest, OneCheck) {
  const TestFolder folder;
  EXPECT_NE(
      RunChecks(folder, {"check", "list", "--class", "driver"}, "").out.find("nvidia-profiling"),
      std::string::npos);
  EXPECT_NE(RunChecks(folder, {"check", "show", "nvidia-profiling"}, "").out.find("CVE-2018-6260"),
            std::string::npos);
  const AppResult explained = RunChecks(folder, {"check", "explain", "nvidia-profiling"}, "bad");
  EXPECT_NE(explained.out.find("fail: /proc/driver/nvidia/params"), std::string::npos)
      << explained.out;
  const AppResult wrong = RunChecks(folder, {"check", "show", "nvidia-profilng"}, "");
  EXPECT_EQ(wrong.status, 4);
  EXPECT_NE(wrong.err.find("nvidia-profiling"), std::string::npos) << wrong.err;
  EXPECT_EQ(RunChecks(folder, {"check", "list", "--class", "none"}, "").status, 4);
}

}  // namespace
}  // namespace ringfence::cli
