// Goal: `advisory` answers in the terms of its help: verdicts, findings by exit status, and the age
// and gaps of its data.
// Method: the whole command line over made-up bulletins, with the day given.

#include <gtest/gtest.h>

#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

const std::string kBulletins = RINGFENCE_SOURCE_DIR "/tests/vectors/bulletins";

AppResult Advisory(const TestFolder& folder, std::vector<std::string> words) {
  words.insert(words.begin(), "advisory");
  return RunLine(folder.folder.path(), words);
}

Json JsonOf(const AppResult& result) {
  const auto json = ParseJson(result.out, std::size_t{1} << 24U);
  EXPECT_TRUE(json.has_value()) << result.out << result.err;
  return json.has_value() ? *json : Json();
}

TEST(AdvisoryCommandTest, OneVersion) {
  const TestFolder folder;
  const std::vector<std::string> words = {
      "match",      "--csaf", kBulletins,  "--product", "Container Toolkit",
      "--platform", "Linux",  "--version", "v1.30.1",   "--now",
      "2030-07-15", "-o",     "json"};
  const AppResult result = Advisory(folder, words);
  EXPECT_EQ(result.status, 0) << result.err;
  const Json json = JsonOf(result);
  EXPECT_EQ(json.at("product"), "container-toolkit");
  EXPECT_EQ(json.at("data").at("stale"), false);
  EXPECT_EQ(json.at("data").at("age_days"), 14);
  EXPECT_EQ(json.at("counts").at("affected"), 2);
  const Json& first = json.at("results").at(0);
  EXPECT_EQ(first.at("verdict"), "affected");
  EXPECT_EQ(first.at("cvss"), 9.0);
  EXPECT_EQ(first.at("bulletin"), "9003");
  EXPECT_EQ(first.at("date"), "2030-07-01");
  EXPECT_FALSE(first.at("why").as_string().empty());
  EXPECT_FALSE(first.at("fixed").as_array().empty());
}

TEST(AdvisoryCommandTest, FailOnSeverity) {
  const TestFolder folder;
  const auto status = [&folder](const std::string& version, const std::string& severity,
                                const std::string& now) {
    return Advisory(folder, {"match", "--csaf", kBulletins, "--product", "dcgm", "--version",
                             version, "--fail-on", severity, "--now", now})
        .status;
  };
  EXPECT_EQ(status("4.3.3", "high", "2030-07-15"), 1);
  EXPECT_EQ(status("4.3.3", "critical", "2030-07-15"), 0);
  EXPECT_EQ(status("4.3.4", "low", "2030-07-15"), 0);
  EXPECT_EQ(status("4.3.4", "medium", "2031-07-15"), 1) << "stale data is a finding";
  EXPECT_EQ(status("4.3.4", "high", "2031-07-15"), 0);
  EXPECT_EQ(status("4.3.4", "terrible", "2030-07-15"), 2);
}

TEST(AdvisoryCommandTest, ABadFileIsNamedAndTheRestGoOn) {
  const TestFolder folder;
  const std::string text =
      os::ReadText(kBulletins + "/2030/9003.json", std::size_t{1} << 20U).value();
  folder.Write("b/good.json", text);
  folder.Write("b/cut.json", std::string_view(text).substr(0, 700));
  const std::vector<std::string> words = {"match",     "--csaf", folder.Path("b"),
                                          "--product", "dcgm",   "--version",
                                          "4.3.4",     "--now",  "2030-07-15"};
  const AppResult result = Advisory(folder, words);
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.err.find("cut.json"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find("1 fixed"), std::string::npos) << result.out;
  std::vector<std::string> strict = words;
  strict.insert(strict.end(), {"--fail-on", "critical"});
  EXPECT_EQ(Advisory(folder, strict).status, 1) << "data with gaps proves nothing";
}

TEST(AdvisoryCommandTest, AnInventory) {
  const TestFolder folder;
  const std::string file = folder.Write("nodes.csv",
                                        "node,product,platform,version\n"
                                        "n1,gpu-driver,Linux,535.100.01\n"
                                        "n1,container-toolkit,Linux,1.40.0\n"
                                        "n2,gpu-driver,Linux,590.1.1\n"
                                        "n3,no such thing,Linux,1.0\n");
  const Json json = JsonOf(Advisory(folder, {"match", "--csaf", kBulletins, "--inventory", file,
                                             "-o", "json", "--now", "2030-07-15"}));
  EXPECT_EQ(json.at("nodes"), 3);
  EXPECT_EQ(json.at("affected_nodes"), 1);
  EXPECT_FALSE(json.at("results").at(0).at("open").as_array().empty());
  EXPECT_TRUE(json.at("results").at(2).at("open").as_array().empty());
  EXPECT_TRUE(json.at("results").at(3).as_object().contains("problem"));
}

TEST(AdvisoryCommandTest, ListShowAndProducts) {
  const TestFolder folder;
  EXPECT_NE(Advisory(folder, {"list", "--csaf", kBulletins}).out.find("9002"), std::string::npos);
  EXPECT_NE(Advisory(folder, {"show", "CVE-2030-0020", "--csaf", kBulletins})
                .out.find("up to and including v1.30.1"),
            std::string::npos);
  EXPECT_EQ(Advisory(folder, {"show", "CVE-1", "--csaf", kBulletins}).status, 4);
  EXPECT_NE(Advisory(folder, {"products"}).out.find("vgpu-manager"), std::string::npos);
}

TEST(AdvisoryCommandTest, QuestionsThatAreNone) {
  const TestFolder folder;
  EXPECT_EQ(Advisory(folder, {"match", "--product", "dcgm", "--version", "1.0"}).status, 2);
  EXPECT_EQ(Advisory(folder, {"match", "--csaf", kBulletins}).status, 2);
  EXPECT_EQ(Advisory(folder, {"match", "--csaf", kBulletins, "--product", "dcgm"}).status, 2);
  EXPECT_EQ(
      Advisory(folder, {"match", "--csaf", kBulletins, "--product", "x", "--version", "1"}).status,
      4);
}

}  // namespace
}  // namespace ringfence::cli
