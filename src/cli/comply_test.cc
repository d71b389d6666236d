// Goal: `comply` does what its help says, with and without a server.
// Method: the whole command line over tests/roots and NIST's LOW baseline; a server whose answers
// the test decides.

#include <gtest/gtest.h>

#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

const std::string kSource = RINGFENCE_SOURCE_DIR;

AppResult Comply(const TestFolder& folder, std::vector<std::string> words) {
  words.insert(words.end(), {"--checks", kSource + "/content/checks", "--controls",
                             kSource + "/content/controls"});
  return RunLine(folder.folder.path(), words);
}

Json JsonOf(const AppResult& result) {
  const auto json = ParseJson(result.out, std::size_t{16} << 20U);
  EXPECT_TRUE(json.has_value()) << result.out << result.err;
  return json.has_value() ? *json : Json();
}

TEST(ComplyCommandTest, ACapturedRoot) {
  const TestFolder folder;
  const AppResult bad =
      Comply(folder, {"comply", "status", "--root", kSource + "/tests/roots/bad"});
  EXPECT_EQ(bad.status, 0) << bad.err;
  EXPECT_NE(bad.out.find("nist-800-53"), std::string::npos) << bad.out;
  EXPECT_NE(bad.out.find("failing"), std::string::npos) << bad.out;
  EXPECT_EQ(bad.out.find("not automated"), std::string::npos) << "only what fails";
  EXPECT_EQ(Comply(folder, {"comply", "status", "--root", kSource + "/tests/roots/bad", "--fail-on",
                            "failing"})
                .status,
            1);
  const std::string good = kSource + "/tests/roots/good";
  EXPECT_EQ(Comply(folder, {"comply", "status", "--root", good, "--fail-on", "failing"}).status, 0);
  EXPECT_EQ(Comply(folder, {"comply", "status", "--root", good, "--fail-on", "unproven"}).status,
            1);
  const Json json = JsonOf(Comply(folder, {"comply", "status", "--root", good, "-o", "json"}));
  EXPECT_EQ(json.at("frameworks").as_array().size(), 3U);
  EXPECT_FALSE(json.at("server_asked").as_bool());
  for (const Json& framework : json.at("frameworks").as_array()) {
    EXPECT_EQ(framework.at("counts").at("proven").to_number<int>(), 0)
        << "nothing is proven by files alone";
  }
}

TEST(ComplyCommandTest, ABaselineOfOnesOwn) {
  const TestFolder folder;
  const std::string vectors = kSource + "/tests/vectors/oscal/";
  const std::string catalog = vectors + "low_catalog_ids.json";
  const std::string profile = vectors + "NIST_SP-800-53_rev5_LOW-baseline_profile.json";
  const Json low =
      JsonOf(Comply(folder, {"comply", "status", "--offline", "--framework", "nist", "--catalog",
                             catalog, "--profile", profile, "-o", "json"}));
  EXPECT_EQ(low.at("frameworks").at(0).at("controls").as_array().size(), 149U);
  const std::string own = folder.Write(
      "own.json", R"({"catalog":{"metadata":{"title":"Own"},"controls":[{"id":"sc-39","title":"P"},
                      {"id":"zz-1","title":"Unheard of"}]}})");
  const Json two = JsonOf(Comply(folder, {"comply", "status", "--offline", "--framework", "nist",
                                          "--catalog", own, "-o", "json"}));
  const Json& controls = two.at("frameworks").at(0).at("controls");
  EXPECT_EQ(controls.at(1).at("status"), "not_automated");
  EXPECT_FALSE(controls.at(1).at("mapped").as_bool());
  EXPECT_EQ(Comply(folder, {"comply", "status", "--offline", "--profile", profile}).status, 2);
  EXPECT_EQ(
      Comply(folder, {"comply", "status", "--offline", "--catalog", own, "--profile", profile})
          .status,
      2);
  EXPECT_EQ(Comply(folder, {"comply", "status", "--offline", "--catalog", profile}).status, 2);
}

TEST(ComplyCommandTest, OneControl) {
  const TestFolder folder;
  const AppResult shown = Comply(folder, {"comply", "show", "SC-39", "--offline"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  for (const char* part : {"Process Isolation", "A person must show", "ptrace", "not run"}) {
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << shown.out;
  }
  EXPECT_EQ(Comply(folder, {"comply", "show", "sc-3999", "--offline"}).status, 4);
  EXPECT_EQ(Comply(folder, {"comply", "status", "--offline", "--framework", "hippa"}).status, 2);
  EXPECT_EQ(Comply(folder, {"comply", "status", "--offline", "--status", "provn"}).status, 2);
  EXPECT_EQ(Comply(folder, {"comply", "status", "--offline", "--fresh", "soon"}).status, 2);
}

TEST(EvidenceCommandTest, NeverOverAnotherPackageAndAWrongLogKeyIsNoForgery) {
  const TestFolder folder;
  const std::string tar = folder.Path("e.tar");
  const std::vector<std::string> words = {"evidence", "export", "--offline", "--out", tar};
  ASSERT_EQ(Comply(folder, words).status, 0);
  const std::string first = os::ReadText(tar, std::size_t{1} << 26U).value();
  EXPECT_EQ(Comply(folder, words).status, 6);
  EXPECT_EQ(os::ReadText(tar, std::size_t{1} << 26U).value(), first);
  const std::string wrong = folder.Write("wrong.vkey", "-----BEGIN PUBLIC KEY-----\n");
  const AppResult verified =
      RunLine(folder.folder.path(), {"evidence", "verify", tar, "--log-key", wrong});
  EXPECT_EQ(verified.status, 2) << verified.out;
  EXPECT_NE(verified.err.find("audit keys --log"), std::string::npos) << verified.err;
  EXPECT_EQ(verified.out.find("NOT what was packed"), std::string::npos);
  const FakeServer server([](const net::Request&, const net::Responder& responder) {
    net::Response response;
    response.body = R"({"log":"ringfence.local/x+1a2b3c4d+AbC=","witnesses":[]})";
    responder.Send(std::move(response));
  });
  server.WriteContextIn(folder.Path("state"));
  EXPECT_EQ(
      RunLine(folder.folder.path(), {"audit", "keys", "--log", "--state", folder.Path("state")})
          .out,
      "ringfence.local/x+1a2b3c4d+AbC=\n");
}

TEST(ComplyCommandTest, TheServersEvidence) {
  const TestFolder folder;
  const std::string now = FormatTime(SystemClock().Now());
  std::string probes;
  for (const char* name :
       {"proc-cmdline", "proc-environ", "proc-mem", "proc-root", "proc-fd", "ptrace",
        "process-vm-readv", "pidfd-getfd", "signal", "setns", "open-by-handle", "leaked-descriptor",
        "masked-paths", "kernel-memory", "core-pattern"}) {
    probes += std::string(probes.empty() ? "" : ",") + "\"" + name +
              R"(":{"result":"held","why":"","time":")" + now + R"("})";
  }
  const FakeServer server([&](const net::Request& request, const net::Responder& responder) {
    const std::string& target = request.path;
    net::Response response;
    response.body = R"({"items":[]})";
    if (target.starts_with("/v1/nodes/n1/proofs")) {
      response.body = R"({"node":"n1","simulated":false,"probes":{)" + probes + "}}";
    } else if (target.starts_with("/v1/nodes")) {
      response.body = R"({"items":[{"name":"n1","simulated":false}]})";
    } else if (target.starts_with("/v1/audit/entries")) {
      response.body =
          R"({"items":[{"index":5,"proven":true,"entry":{"action":"lease.request","time":")" + now +
          R"(","node":"n1","actor":{"principal":"ann"}}}]})";
    }
    responder.Send(std::move(response));
  });
  const std::string state = folder.Path("state");
  server.WriteContextIn(state);
  const AppResult shown =
      Comply(folder, {"comply", "show", "au-3", "--state", state, "-o", "json"});
  const Json au3 = JsonOf(shown);
  EXPECT_EQ(au3.at("status"), "proven") << shown.out;
  EXPECT_EQ(au3.at("audit").at(0).at("newest").at("index"), 5);
  EXPECT_EQ(Comply(folder, {"comply", "show", "au-3", "--state", state, "--node", "n2"}).status, 4);
  const Json sc39 =
      JsonOf(Comply(folder, {"comply", "show", "sc-39", "--state", state, "-o", "json"}));
  EXPECT_EQ(sc39.at("probes").as_array().size(), 15U);
  EXPECT_EQ(sc39.at("probes").at(0).at("results").at(0).at("node"), "n1");
  const std::string file =
      folder.Write("p.json", R"({"node":"n9","simulated":false,"probes":{)" + probes + "}}");
  const Json filed = JsonOf(Comply(folder, {"comply", "show", "sc-39", "--proofs", file, "-o",
                                            "json", "--root", kSource + "/tests/roots/good"}));
  EXPECT_EQ(filed.at("status"), "proven") << filed;
}

}  // namespace
}  // namespace ringfence::cli
