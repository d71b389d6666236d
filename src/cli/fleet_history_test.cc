// Goal: what the server remembers becomes risks, and the list of those whom a flaw concerns; a name
// that the server would refuse is refused before anything is sent.
// Method: the whole command line against a server whose answers the test decides.

#include "cli/fleet_history.h"

#include <gtest/gtest.h>

#include <atomic>

#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

const std::string kSource = RINGFENCE_SOURCE_DIR;

std::string Ago(int days) { return FormatTime(SystemClock().Now() - std::chrono::days(days)); }

std::string Inventory(const std::string& node, int days, const std::string& driver) {
  return R"({"index":1,"proven":true,"entry":{"action":"node.inventory","node":")" + node +
         R"(","time":")" + Ago(days) + R"(","detail":{"driver":")" + driver +
         R"(","simulated":false}}})";
}

std::string Lease(const std::string& id, const std::string& tenant, const std::string& node,
                  int from, int to) {
  const std::string ended =
      to == 0 ? R"("state":"active")" : R"("state":"closed","ended":")" + Ago(to) + "\"";
  return R"({"id":")" + id + R"(","request":{"tenant":")" + tenant + R"("},"node":")" + node +
         R"(","created":")" + Ago(from) + R"(","updated":")" + Ago(to) +
         R"(","steps":[{"state":"placed","time":")" + Ago(from) + R"("}],)" + ended + "}";
}

class FleetTest : public ::testing::Test {
 protected:
  void SetUp() override { server_.WriteContextIn(folder_.Path("state")); }

  AppResult Run(std::vector<std::string> words) {
    words.insert(words.end(), {"--state", folder_.Path("state")});
    return RunLine(folder_.folder.path(), std::move(words));
  }
  Json RunJson(std::vector<std::string> words) {
    words.insert(words.end(), {"-o", "json"});
    const AppResult result = Run(std::move(words));
    EXPECT_EQ(result.status, 0) << result.err;
    const auto json = ParseJson(result.out, std::size_t{1} << 24U);
    return json.has_value() ? *json : Json();
  }
  void Answer(const net::Request& request, const net::Responder& responder) {
    ++requests_;
    net::Response response;
    response.body = R"({"items":[]})";
    for (const auto& [path, body] : answers_) {
      if (request.path.starts_with(path)) {
        response.body = body;
        break;
      }
    }
    responder.Send(std::move(response));
  }

  TestFolder folder_;
  std::atomic<int> requests_{0};
  std::vector<std::pair<std::string, std::string>> answers_;  // the first that fits
  FakeServer server_{[this](const net::Request& request, const net::Responder& responder) {
    Answer(request, responder);
  }};
};

TEST_F(FleetTest, WhoWasOnANodeWhileItsDriverHadTheFlaw) {
  // CVE-2030-0001 is fixed in 535.900.05.
  answers_ = {
      {"/v1/audit/entries", R"({"items":[)" + Inventory("n1", 10, "535.900.05") + "," +
                                Inventory("n2", 35, "535.900.05") + "," +
                                Inventory("n1", 30, "535.890.01") + "," +
                                Inventory("n1", 40, "535.890.01") + "]}"},
      {"/v1/nodes", R"({"items":[{"name":"n3","joined":")" + Ago(5) +
                        R"(","driver_version":"535.890.01","simulated":false}]})"},
      {"/v1/leases", R"({"items":[)" + Lease("l-after", "acme/web", "n1", 9, 8) + "," +
                         Lease("l-during", "acme/web", "n1", 20, 19) + "," +
                         Lease("l-across", "acme/ml", "n1", 11, 0) + "," +
                         Lease("l-before", "globex", "n1", 60, 50) + "," +
                         Lease("l-elsewhere", "globex", "n2", 20, 0) + "," +
                         Lease("l-open", "initech", "n3", 2, 0) + "]}"},
  };
  const std::vector<std::string> words = {"advisory", "exposure",
                                          "--csaf",   kSource + "/tests/vectors/bulletins",
                                          "--cve",    "CVE-2030-0001"};
  const Json found = RunJson(words);
  ASSERT_EQ(found.at("nodes").as_array().size(), 2U) << CanonicalJson(found);
  EXPECT_EQ(found.at("nodes").at(0).at("node"), "n1");
  EXPECT_TRUE(found.at("nodes").at(0).at("from").as_string().starts_with(Ago(40).substr(0, 10)))
      << "reported again, it is the same span";
  EXPECT_NE(found.at("nodes").at(0).at("to"), nullptr);
  EXPECT_EQ(found.at("nodes").at(1).at("node"), "n3") << "as it says itself";
  EXPECT_EQ(found.at("nodes").at(1).at("to"), nullptr);
  std::string leases;
  for (const Json& lease : found.at("leases").as_array()) {
    leases += std::string(lease.at("lease").as_string()) + " ";
    EXPECT_EQ(lease.at("verdict"), "affected");
  }
  EXPECT_EQ(leases, "l-during l-across l-open ");
  ASSERT_EQ(found.at("tenants").as_array().size(), 3U);
  EXPECT_EQ(found.at("tenants").at(0).at("tenant"), "acme/ml");
  EXPECT_EQ(found.at("tenants").at(0).at("last"), nullptr) << "it goes on";
  std::vector<std::string> failing = words;
  failing.insert(failing.end(), {"--fail-on", "high"});
  EXPECT_EQ(Run(failing).status, 1);
  std::vector<std::string> other = words;
  other.insert(other.end(), {"--tenant", "globex"});
  EXPECT_EQ(RunJson(other).at("leases").as_array().size(), 0U);
  other.back() = "acme";
  EXPECT_EQ(RunJson(other).at("leases").as_array().size(), 2U) << "and those below";
  std::vector<std::string> unknown = words;
  unknown.back() = "CVE-1999-0001";
  EXPECT_EQ(Run(unknown).status, 4);
}

std::string Check(const std::string& id, const std::string& result, bool weighed) {
  return R"({"id":")" + id + R"(","title":"t","class":"driver","result":")" + result +
         R"(","severity":"high","seen":"s")" +
         (weighed ? R"(,"likelihood":3,"impact":4,"effort":1)" : "") + "}";
}

TEST_F(FleetTest, RisksFromWhatTheServerHolds) {
  const auto assessment = [](int days, const std::string& checks) {
    return R"({"node":"n1","time":")" + Ago(days) + R"(","checks":[)" + checks + "]}";
  };
  const auto answers = [&](int days, const std::string& checks) {
    answers_ = {{"/v1/nodes/n1/proofs",
                 R"({"node":"n1","simulated":false,"probes":{"ptrace":{"result":"held","time":")" +
                     Ago(1) + R"("}}})"},
                {"/v1/nodes/n1/assessment", assessment(days, checks)},
                {"/v1/assessments", R"({"assessments":[{"node":"n1"}]})"},
                {"/v1/leases", R"({"items":[)" + Lease("a", "acme", "n1", 5, 4) + "," +
                                   Lease("b", "globex", "n1", 90, 0) + "," +
                                   Lease("c", "old", "n1", 90, 60) + "]}"}};
  };
  const std::vector<std::string> update = {"risk",
                                           "update",
                                           "--fleet",
                                           "--checks",
                                           kSource + "/content/checks",
                                           "--model",
                                           kSource + "/content/risk/model.yaml"};
  answers(2,
          Check("nvidia-profiling", "fail", false) + "," + Check("of-a-newer-node", "fail", true));
  const Json done = RunJson(update);
  ASSERT_EQ(done.as_array().size(), 1U);
  EXPECT_EQ(done.at(0).at("opened"), 2);
  const std::vector<std::string> model = {"--model", kSource + "/content/risk/model.yaml"};
  std::vector<std::string> show = {"risk", "show", "n1/of-a-newer-node"};
  show.insert(show.end(), model.begin(), model.end());
  const Json risk = RunJson(show);
  EXPECT_EQ(risk.at("base").at("likelihood"), 3);
  EXPECT_EQ(risk.at("likelihood"), 4) << "two tenants in the last 30 days";
  EXPECT_EQ(RunJson(update).as_array().size(), 0U) << "nothing new";
  answers(1, Check("of-a-newer-node", "pass", true));
  EXPECT_EQ(RunJson(update).at(0).at("closed"), 1);
  EXPECT_EQ(RunJson(show).at("state"), "closed");
  answers(0, Check("never-heard-of", "fail", false));
  const AppResult refused = Run(update);
  EXPECT_EQ(refused.status, 6) << refused.err;
  std::vector<std::string> both = update;
  both.insert(both.end(), {"--node", "n1"});
  EXPECT_EQ(Run(both).status, 2);
}

TEST_F(FleetTest, AFeedsNameIsCheckedBeforeAnythingIsSent) {
  const std::string feed = folder_.Write("feed.txt", "192.0.2.1\n");
  for (const char* name : {"Évil", "a b", "", ".."}) {
    EXPECT_EQ(Run({"intel", "import", feed, "--name", name}).status, 2) << name;
  }
  EXPECT_EQ(Run({"intel", "remove", "A B"}).status, 2);
  EXPECT_EQ(requests_, 0);
}

}  // namespace
}  // namespace ringfence::cli
