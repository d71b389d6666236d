// Goal: each client command asks the API what openapi.yaml says, prints what came in each format,
// and exits as documented.
// Method: whole command lines against a real HTTPS server with canned answers.

#include <gtest/gtest.h>

#include "cli/log_copy.h"
#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

class CommandsTest : public testing::Test {
 protected:
  CommandsTest() { server_.WriteContextIn(folder_.Path(".ringfence")); }

  AppResult Run(const std::vector<std::string>& words,
                std::map<std::string, std::string> environment = {}) {
    return RunLine(folder_.folder.path(), words, std::move(environment));
  }
  void Answers(const std::string& target, const std::string& json, int status = 200) {
    const std::lock_guard lock(mutex_);
    answers_[target] = {status, {}, "application/json", json};
  }
  void Fails(const std::string& target, const Error& error) {
    const std::lock_guard lock(mutex_);
    answers_[target] = net::Response::OfError(error);
  }
  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

  TestFolder folder_;
  std::mutex mutex_;
  std::map<std::string, net::Response> answers_;
  std::vector<std::string> asked_;
  FakeServer server_{[this](const net::Request& request, const net::Responder& responder) {
    std::string target = request.method + " " + request.path;
    char separator = '?';
    for (const auto& [name, value] : request.query) {
      target += separator + name + "=" + value;
      separator = '&';
    }
    const std::lock_guard lock(mutex_);
    asked_.push_back(target + (request.body.empty() ? "" : " " + request.body));
    const auto found = answers_.find(target);
    responder.Send(found != answers_.end()
                       ? found->second
                       : net::Response::OfError({Code::kNotFound, "nothing at " + target}));
  }};
};

constexpr const char* kGpus =
    R"({"items":[{"uuid":"GPU-1","node":"n1","model":"H200","memory_bytes":67108864,)"
    R"("state":"leased","tenant":"acme/web","lease":"lease-1","simulated":true},)"
    R"({"uuid":"GPU-2","node":"n\u001b[31m","model":"H200","memory_bytes":1,"state":"free",)"
    R"("simulated":false}]})";

TEST_F(CommandsTest, AListInEachFormat) {
  Answers("GET /v1/gpus?limit=1000", kGpus);
  const AppResult table = Run({"gpu", "list"});
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_EQ(table.out,
            "GPU    NODE       MODEL             MEMORY  STATE   TENANT    LEASE    REASON\n"
            "GPU-1  n1         H200 (simulated)  64 MiB  leased  acme/web  lease-1  -\n"
            "GPU-2  n\\x1b[31m  H200              1 B     free    -         -        -\n");
  const AppResult json = Run({"gpu", "list", "-o", "json"});
  const auto parsed = ParseJson(json.out, 1 << 20);
  ASSERT_TRUE(parsed.has_value()) << json.out;
  EXPECT_EQ(CanonicalJson(*parsed), CanonicalJson(ParseJson(kGpus, 1 << 20).value().at("items")));
  const AppResult yaml = Run({"gpu", "list"}, {{"RINGFENCE_OUTPUT", "yaml"}});
  EXPECT_NE(yaml.out.find("uuid: GPU-1"), std::string::npos) << yaml.out;
  EXPECT_EQ(yaml.out.find('\x1b'), std::string::npos);
}

TEST_F(CommandsTest, AllPagesAreFollowedUpToTheLimit) {
  Answers("GET /v1/leases?state=open&limit=3",
          R"({"items":[{"id":"a"},{"id":"b"}],"next_cursor":"c1"})");
  Answers("GET /v1/leases?state=open&limit=1&cursor=c1",
          R"({"items":[{"id":"c"}],"next_cursor":"c2"})");
  const AppResult result = Run({"lease", "list", "-n", "3", "-o", "json"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(ParseJson(result.out, 1 << 20).value().as_array().size(), 3U);
  EXPECT_EQ(asked().size(), 2U);
}

TEST_F(CommandsTest, AnEmptyListSaysSoAndWhatToDo) {
  Answers("GET /v1/leases?state=open&limit=100", R"({"items":[]})");
  const AppResult table = Run({"lease", "list"});
  EXPECT_EQ(table.status, 0);
  EXPECT_EQ(table.out, "");
  EXPECT_NE(table.err.find("ringfence run"), std::string::npos);
  EXPECT_EQ(Run({"lease", "list", "-o", "json"}).out, "[]\n");
  EXPECT_EQ(Run({"lease", "list", "-q"}).err, "");
}

TEST_F(CommandsTest, StatusExitsByHealth) {
  const std::string counts =
      R"("version":"0.1.0","simulated":true,"nodes":{"total":1,"ready":1},)"
      R"("gpus":{"total":8,"free":7,"leased":1,"dirty":0,"quarantined":0},)"
      R"("leases":{"open":1,"active":1},"audit":{"entries":9,"proven":9,"witnesses":1},)"
      R"("policy":{"digest":"abc","tenants":12,"principals":5,"bindings":7}})";
  Answers("GET /v1/status", R"({"healthy":true,"problems":[],)" + counts);
  const AppResult well = Run({"status"});
  EXPECT_EQ(well.status, 0) << well.err;
  EXPECT_TRUE(well.out.starts_with("ok healthy")) << well.out;
  EXPECT_NE(well.out.find("8 in all, 7 free, 1 leased (simulated)"), std::string::npos) << well.out;
  EXPECT_TRUE(Run({"status"}, {{"LANG", "C.UTF-8"}}).out.starts_with("✓ healthy"));

  Answers("GET /v1/status",
          R"({"healthy":false,"problems":[{"what":"node n1 is silent","fix":"start its agent"}],)" +
              counts);
  const AppResult ill = Run({"status"});
  EXPECT_EQ(ill.status, 1);
  EXPECT_NE(ill.out.find("node n1 is silent\n      fix: start its agent"), std::string::npos)
      << ill.out;
  server_.Stop();
  const AppResult away = Run({"status"});
  EXPECT_EQ(away.status, 5);
  EXPECT_NE(away.err.find("ringfence up"), std::string::npos);
}

TEST_F(CommandsTest, TheServersRefusalsHaveTheirExitCodes) {
  struct Case {
    Code code;
    int status;
  };
  for (const Case& one :
       {Case{Code::kUnauthenticated, 3}, Case{Code::kPermissionDenied, 3}, Case{Code::kNotFound, 4},
        Case{Code::kConflict, 6}, Case{Code::kFailedPrecondition, 6}, Case{Code::kExhausted, 7},
        Case{Code::kUnavailable, 5}, Case{Code::kInvalidArgument, 2}, Case{Code::kInternal, 8}}) {
    Fails("GET /v1/whoami", {one.code, "because so", "do this", ""});
    const AppResult result = Run({"whoami"});
    EXPECT_EQ(result.status, one.status);
    EXPECT_NE(result.err.find("because so"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("hint: do this"), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(CommandsTest, AnAnswerThatIsNoJsonIsAnError) {
  Answers("GET /v1/whoami", "<html>");
  EXPECT_EQ(Run({"whoami"}).status, 8);
  Answers("GET /v1/gpus?limit=1000", "{}");
  EXPECT_EQ(Run({"gpu", "list"}).status, 8);
}

TEST_F(CommandsTest, ShowTellsALeasesWholeStory) {
  Answers("GET /v1/leases/lease-1",
          R"({"id":"lease-1","state":"closed","principal":"alice","request":{"tenant":"acme/web",)"
          R"("gpus":1,"command":["sh","-c","\u001b[2J"],"memory_bytes":4294967296,)"
          R"("cpu_millis":1500,"timeout_ms":7200000},"node":"n1","gpus":["GPU-1"],)"
          R"("created":"2026-11-15T11:00:00.000Z","outcome":"exited","exit_code":3,)"
          R"("simulated":true,"receipts":["r-1"],)"
          R"("steps":[{"state":"requested","time":"2026-11-15T11:00:00.000Z","reason":""}]})");
  Answers("GET /v1/leases/lease-1/receipts",
          R"({"items":[{"id":"r-1","envelope":{},"key":"k","receipt":{"simulated":true,"gpus":)"
          R"([{"uuid":"GPU-1","memory_bytes":67108864,"reached_bytes":67108864,)"
          R"("residue_bytes":1258291,"mismatch_bytes":0,"on_chip":{"multiprocessors":132,)"
          R"("multiprocessors_reached":131}}]}}]})");
  const AppResult result = Run({"lease", "show", "lease-1"});
  EXPECT_EQ(result.status, 0) << result.err;
  for (const char* part :
       {"exited 3", "alice", "acme/web", "sh -c \\x1b[2J", "4 GiB", "1.5", "2h",
        "GPU-1 (simulated)", "requested",
        "scrubbed 64 MiB of 64 MiB, residue 1.2 MiB, on-chip memory of 131 of 132 "
        "multiprocessors, receipt r-1 (simulated)"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << " in\n" << result.out;
  }
}

TEST_F(CommandsTest, AnIdCannotReachAnotherPath) {
  EXPECT_NE(Run({"lease", "show", "../tokens"}).status, 0);
  for (const std::string& target : asked()) {
    EXPECT_EQ(target, "GET /v1/leases/../tokens") << "decoded, but one segment on the wire";
  }
  EXPECT_EQ(Target("/v1/leases", "../x y", "/end"), "/v1/leases/..%2Fx%20y/end");
  EXPECT_EQ(Target("/v1/leases", "..", ""), "/v1/leases/%2E%2E");
}

TEST_F(CommandsTest, TokensAreCreatedListedAndRevoked) {
  Answers(
      "POST /v1/tokens",
      R"({"id":"tok-1","token":"rf_new","principal":"bob","expires":"2026-12-01T00:00:00.000Z"})",
      201);
  const AppResult made = Run({"token", "create", "--as", "bob", "--ttl", "8h", "--note", "x"});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(made.out, "rf_new\n") << "so that $(...) gets exactly the token";
  EXPECT_EQ(asked().back(), R"(POST /v1/tokens {"note":"x","principal":"bob","ttl_ms":28800000})");
  EXPECT_EQ(Run({"token", "create"}).status, 2);
  Answers("DELETE /v1/tokens/tok-1", R"({"id":"tok-1","principal":"bob"})");
  EXPECT_EQ(Run({"token", "revoke", "tok-1"}).status, 0);
}

TEST_F(CommandsTest, AuditTailTurnsTheNewestRound) {
  Answers("GET /v1/audit/entries?order=newest&limit=2",
          R"({"items":[{"index":8,"entry":{"action":"b.b","time":"2026-11-15T11:00:00.000Z"},)"
          R"("proven":true},{"index":7,"entry":{"action":"a.a"},"proven":true}]})");
  const AppResult tail = Run({"audit", "tail", "-n", "2", "-o", "json"});
  EXPECT_EQ(tail.status, 0) << tail.err;
  EXPECT_LT(tail.out.find("a.a"), tail.out.find("b.b"));
  EXPECT_EQ(std::count(tail.out.begin(), tail.out.end(), '\n'), 2) << "a line each";
}

TEST_F(CommandsTest, ProveWritesAFile) {
  Answers("GET /v1/audit/entries/17/proof", R"({"index":17,"proof":[]})");
  EXPECT_EQ(Run({"audit", "prove", "17", "--out", folder_.Path("p.json")}).status, 0);
  EXPECT_EQ(ParseJson(os::ReadText(folder_.Path("p.json"), 4096).value(), 4096)
                .value()
                .at("index")
                .as_int64(),
            17);
  EXPECT_EQ(Run({"audit", "prove", "x"}).status, 2);
  EXPECT_EQ(Run({"audit", "show", "-1"}).status, 2);
}

TEST_F(CommandsTest, VerifyNeedsAKeyThatSomeoneTrusts) {
  const AppResult result =
      RunLine(folder_.Path("cli-elsewhere"),
              {"audit", "verify", "--log", folder_.folder.path(), "--state", folder_.Path("none")});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("--key"), std::string::npos) << result.err;
}

TEST_F(CommandsTest, PolicyCheckShowsEveryFinding) {
  folder_.Write("policy/a.yaml", "kind: Tenant\nmetadata: {name: UPPER}\n---\nkind: Nonsense\n");
  const AppResult result = Run({"policy", "check", folder_.Path("policy")});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.out.find("a.yaml:"), std::string::npos) << result.out;
  EXPECT_GE(std::count(result.out.begin(), result.out.end(), '\n'), 2) << result.out;
  const AppResult json = Run({"policy", "check", folder_.Path("policy"), "-o", "json"});
  EXPECT_EQ(json.status, 1);
  EXPECT_FALSE(ParseJson(json.out, 1 << 20).value().at("ok").as_bool());
  EXPECT_EQ(Run({"policy", "check", folder_.Path("none")}).status, 4);
}

TEST(LogFilesTest, AreNamedAsTheLayoutSays) {
  EXPECT_TRUE(LogFiles(0).empty());
  EXPECT_EQ(LogFiles(5), (std::vector<std::string>{"tile/entries/000.p/5", "tile/0/000.p/5"}));
  EXPECT_EQ(LogFiles(256),
            (std::vector<std::string>{"tile/entries/000", "tile/0/000", "tile/1/000.p/1"}));
  const auto large = LogFiles(256 * 1001 + 1);
  EXPECT_NE(std::find(large.begin(), large.end(), "tile/0/x001/000"), large.end());
  EXPECT_NE(std::find(large.begin(), large.end(), "tile/0/x001/001.p/1"), large.end());
  EXPECT_NE(std::find(large.begin(), large.end(), "tile/1/003.p/233"), large.end());
  EXPECT_NE(std::find(large.begin(), large.end(), "tile/2/000.p/3"), large.end());
}

}  // namespace
}  // namespace ringfence::cli
