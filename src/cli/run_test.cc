// Goal: `run` shows what the job prints, exits with what the job exits with, outlives a restart of
// the server without a second lease, and obeys Ctrl-C.
// Method: a real HTTPS server whose leases the test moves along by hand; presses are made by call.

#include "cli/run.h"

#include <gtest/gtest.h>

#include <set>

#include "base/encoding.h"
#include "cli/commands.h"
#include "cli/parse.h"
#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

// One lease, as the API shows it. Requests for more output wait until there is some.
class OneLease {
 public:
  void Answer(const net::Request& request, const net::Responder& responder) {
    const std::lock_guard lock(mutex_);
    ++requests_;
    changed_.notify_all();
    if (request.path == "/healthz") {
      responder.Send(net::Response::OfText(200, "ok"));
    } else if (request.method == "POST" && request.path == "/v1/leases") {
      EXPECT_EQ(request.Header("authorization"), "Bearer rf_test-secret");
      keys_.insert(std::string(request.Header("idempotency-key")));
      body_ = request.body;
      if (drop_posts_ > 0) {
        --drop_posts_;
        dropped_.push_back(responder);  // never answered while the server stands
        return;
      }
      responder.Send(net::Response::OfJson(201, Lease()));
    } else if (request.path == "/v1/leases/lease-1/end") {
      ++ends_;
      if (end_finishes_) {
        Finish("signalled", 143);
      }
      responder.Send(net::Response::OfJson(202, Lease()));
    } else if (request.path == "/v1/leases/lease-1/logs") {
      waiting_.push_back({responder, std::stoul("0" + std::string(request.Query("cursor"))),
                          !request.Query("wait_ms").empty()});
      Serve();
    } else if (request.path == "/v1/leases/lease-1") {
      responder.Send(net::Response::OfJson(200, Lease()));
    } else {
      responder.Send(net::Response::OfError({Code::kNotFound, "no " + request.path}));
    }
  }

  void Print(const std::string& stream, const std::string& text) {
    const std::lock_guard lock(mutex_);
    chunks_.push_back({stream, text});
    Serve();
  }
  void End(const std::string& outcome, std::optional<int> code) {
    const std::lock_guard lock(mutex_);
    Finish(outcome, code);
  }
  // As a server that goes away: whoever waits gets nothing.
  void Forget() {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
    dropped_.clear();
  }
  void DropNextPost() {
    const std::lock_guard lock(mutex_);
    drop_posts_ = 1;
  }
  void EndFinishes() {
    const std::lock_guard lock(mutex_);
    end_finishes_ = true;
  }
  template <typename Condition>
  bool Until(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return condition(*this); });
  }
  bool someone_waits() const { return !waiting_.empty(); }
  bool post_dropped() const { return !dropped_.empty(); }
  int ends() const { return ends_; }
  std::size_t keys() const { return keys_.size(); }
  std::string body() const { return body_; }

 private:
  struct Waiting {
    net::Responder responder;
    std::size_t from;
    bool may_wait;
  };

  JsonObject Lease() const {
    return {{"id", "lease-1"},
            {"state", finished_ ? "closed" : "active"},
            {"principal", "admin"},
            {"node", "n1"},
            {"gpus", JsonArray{"GPU-1"}},
            {"simulated", true},
            {"outcome", outcome_}};
  }
  void Finish(const std::string& outcome, std::optional<int> code) {
    finished_ = true;
    outcome_ = outcome;
    exit_code_ = code;
    Serve();
  }
  void Serve() {
    std::vector<Waiting> still;
    for (const Waiting& waiting : waiting_) {
      if (waiting.from >= chunks_.size() && !finished_ && waiting.may_wait) {
        still.push_back(waiting);
        continue;
      }
      JsonObject page{{"chunks", JsonArray()}, {"state", finished_ ? "scrubbing" : "active"}};
      for (std::size_t i = waiting.from; i < chunks_.size(); ++i) {
        page["chunks"].get_array().push_back(
            JsonObject{{"stream", chunks_[i].first}, {"data", Base64(AsBytes(chunks_[i].second))}});
      }
      page["next_cursor"] = std::to_string(chunks_.size());
      page["complete"] = finished_;
      if (finished_) {
        page["outcome"] = outcome_;
        if (exit_code_) {
          page["exit_code"] = *exit_code_;
        }
      }
      waiting.responder.Send(net::Response::OfJson(200, page));
    }
    waiting_ = std::move(still);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::string, std::string>> chunks_;
  std::vector<Waiting> waiting_;
  std::vector<net::Responder> dropped_;
  std::set<std::string> keys_;
  std::string body_;
  std::string outcome_;
  std::optional<int> exit_code_;
  bool finished_ = false;
  bool end_finishes_ = false;
  int ends_ = 0;
  int requests_ = 0;
  int drop_posts_ = 0;
};

class RunTest : public testing::Test {
 protected:
  // Runs the job on a thread of its own, as the program's main thread would.
  void Begin(ConsoleOptions console_options = {}, RunOptions options = {}) {
    options.follow.first_pause = Milliseconds(5);
    console_ = std::make_unique<TestConsole>(console_options);
    api_ = Api::Create(server_.ConnectionTo()).value();
    runner_ = std::thread([this, options] {
      const Json request(JsonObject{{"tenant", "acme"}, {"command", JsonArray{"x"}}});
      result_ = RunJob(*api_, console_->console, presses_, request, options);
    });
  }
  int Finish() {
    runner_.join();
    EXPECT_TRUE(result_.has_value()) << result_.error().message;
    return result_.has_value() ? *result_ : -1;
  }
  bool WaitsForOutput() {
    return lease_.Until([](const OneLease& lease) { return lease.someone_waits(); });
  }

  OneLease lease_;
  FakeServer server_{[this](const net::Request& request, const net::Responder& responder) {
    lease_.Answer(request, responder);
  }};
  Presses presses_;
  std::unique_ptr<TestConsole> console_;
  std::unique_ptr<Api> api_;
  std::thread runner_;
  Result<int> result_ = 0;
};

TEST_F(RunTest, ShowsBothStreamsAndPassesTheExitCode) {
  Begin();
  ASSERT_TRUE(WaitsForOutput());
  lease_.Print("stdout", "hello\n");
  ASSERT_TRUE(WaitsForOutput());
  lease_.Print("stderr", "oh\n");
  lease_.Print("stdout", std::string("raw\0\xff bytes", 11));
  ASSERT_TRUE(WaitsForOutput());
  lease_.End("exited", 7);
  EXPECT_EQ(Finish(), 7);
  EXPECT_EQ(console_->out.str(), "hello\n" + std::string("raw\0\xff bytes", 11));
  EXPECT_EQ(console_->err.str(), "oh\n");
  EXPECT_EQ(lease_.keys(), 1U);
  EXPECT_EQ(lease_.body(), R"({"command":["x"],"tenant":"acme"})");
}

TEST_F(RunTest, ProgressSaysWhereAndThatItIsSimulated) {
  lease_.End("exited", 0);
  Begin({.progress = true});
  EXPECT_EQ(Finish(), 0);
  EXPECT_NE(console_->err.str().find("lease lease-1 placed on node n1, GPU-1 (simulated)"),
            std::string::npos)
      << console_->err.str();
}

TEST_F(RunTest, EachOutcomeHasItsExitStatus) {
  EXPECT_EQ(JobExitStatus("exited", 0), 0);
  EXPECT_EQ(JobExitStatus("exited", 42), 42);
  EXPECT_EQ(JobExitStatus("signalled", 137), 137);
  EXPECT_EQ(JobExitStatus("timeout", 137), 124);
  EXPECT_EQ(JobExitStatus("timeout", std::nullopt), 124);
  EXPECT_EQ(JobExitStatus("oom", std::nullopt), 137);
  EXPECT_EQ(JobExitStatus("failed", std::nullopt), 125);
  EXPECT_EQ(JobExitStatus("failed", 127), 127);
  EXPECT_EQ(JobExitStatus("refused", std::nullopt), 125);
  lease_.End("timeout", 137);
  Begin();
  EXPECT_EQ(Finish(), 124);
  EXPECT_NE(console_->err.str().find("--timeout"), std::string::npos);
}

TEST_F(RunTest, OutlivesARestartOfTheServer) {
  Begin();
  ASSERT_TRUE(WaitsForOutput());
  lease_.Print("stdout", "before ");
  ASSERT_TRUE(WaitsForOutput());
  server_.Stop();
  lease_.Forget();
  lease_.Print("stdout", "after");
  server_.StartAgain();
  ASSERT_TRUE(WaitsForOutput());
  lease_.End("exited", 3);
  EXPECT_EQ(Finish(), 3);
  EXPECT_EQ(console_->out.str(), "before after") << "nothing lost, nothing twice";
  EXPECT_NE(console_->err.str().find("trying again"), std::string::npos) << console_->err.str();
  EXPECT_NE(console_->err.str().find("the server is back"), std::string::npos);
}

TEST_F(RunTest, ARestartWhileAskingMakesNoSecondLease) {
  lease_.DropNextPost();
  Begin();
  ASSERT_TRUE(lease_.Until([](const OneLease& lease) { return lease.post_dropped(); }));
  std::thread stopper([&] { server_.Stop(); });
  stopper.join();
  lease_.Forget();
  server_.StartAgain();
  ASSERT_TRUE(WaitsForOutput());
  lease_.End("exited", 0);
  EXPECT_EQ(Finish(), 0);
  EXPECT_EQ(lease_.keys(), 1U) << "asked again with the same key";
}

TEST_F(RunTest, GivesUpWhenTheServerStaysAway) {
  RunOptions options;
  options.follow.give_up = Milliseconds(50);
  Begin({}, options);
  ASSERT_TRUE(WaitsForOutput());
  server_.Stop();
  runner_.join();
  ASSERT_FALSE(result_.has_value());
  EXPECT_EQ(result_.error().code, Code::kUnavailable);
}

TEST_F(RunTest, AServerThatIsNotThereFailsAtOnce) {
  server_.Stop();
  Begin();
  runner_.join();
  ASSERT_FALSE(result_.has_value());
  EXPECT_EQ(result_.error().code, Code::kUnavailable);
  EXPECT_NE(result_.error().hint.find("ringfence up"), std::string::npos);
  EXPECT_EQ(console_->err.str(), "") << "no talk of trying again";
}

TEST_F(RunTest, TheFirstPressEndsTheLeaseAndTheJobsCodeIsPassed) {
  lease_.EndFinishes();
  Begin();
  ASSERT_TRUE(WaitsForOutput());
  presses_.Press();
  EXPECT_EQ(Finish(), 143);
  EXPECT_EQ(lease_.ends(), 1);
  EXPECT_NE(console_->err.str().find("ending lease lease-1"), std::string::npos);
}

TEST_F(RunTest, TheSecondPressLeavesAtOnce) {
  Begin();
  ASSERT_TRUE(WaitsForOutput());
  presses_.Press();
  ASSERT_TRUE(lease_.Until([](const OneLease& lease) { return lease.ends() == 1; }));
  presses_.Press();
  EXPECT_EQ(Finish(), 130);
  EXPECT_EQ(lease_.ends(), 1);
  EXPECT_NE(console_->err.str().find("left to itself"), std::string::npos);
}

TEST_F(RunTest, APressWhileTheServerIsAwayIsNotForgotten) {
  lease_.EndFinishes();
  Begin();
  ASSERT_TRUE(WaitsForOutput());
  server_.Stop();
  lease_.Forget();
  presses_.Press();
  server_.StartAgain();
  EXPECT_EQ(Finish(), 143);
  EXPECT_EQ(lease_.ends(), 1);
}

TEST_F(RunTest, WithJsonTheLeaseIsAllThatIsOnStandardOutput) {
  lease_.Print("stdout", "words\n");
  lease_.End("exited", 5);
  Begin({.format = Format::kJson});
  EXPECT_EQ(Finish(), 5);
  EXPECT_EQ(console_->err.str(), "words\n");
  const auto json = ParseJson(console_->out.str(), 1 << 20);
  ASSERT_TRUE(json.has_value());
  EXPECT_EQ(json->at("state").as_string(), "closed");
}

TEST_F(RunTest, DetachPrintsTheIdAndReturns) {
  RunOptions options;
  options.detach = true;
  Begin({}, options);
  EXPECT_EQ(Finish(), 0);
  EXPECT_EQ(console_->out.str(), "lease-1\n");
}

TEST_F(RunTest, NobodyReadingEndsTheLease) {
  Begin();
  ASSERT_TRUE(WaitsForOutput());
  console_->out.setstate(std::ios::badbit);
  lease_.Print("stdout", "x");
  EXPECT_EQ(Finish(), 141);
  EXPECT_EQ(lease_.ends(), 1);
}

TEST_F(RunTest, LogsWithoutFollowingPrintsWhatIsThere) {
  lease_.Print("stdout", "so far\n");
  const TestFolder folder;
  server_.WriteContextIn(folder.Path(".ringfence"));
  const AppResult logs = RunLine(folder.folder.path(), {"lease", "logs", "lease-1"});
  EXPECT_EQ(logs.status, 0) << logs.err;
  EXPECT_EQ(logs.out, "so far\n");
}

TEST_F(RunTest, AnotherCaIsNotTheServer) {
  const FakeServer other([](const net::Request&, const net::Responder&) {});
  const TestFolder folder;
  Connection connection = server_.ConnectionTo();
  connection.ca_pem = other.ca_pem();
  ASSERT_TRUE(os::MakeDirs(folder.Path(".ringfence/cli")).has_value());
  ASSERT_TRUE(WriteContext(folder.Path(".ringfence/cli/context.json"), connection).has_value());
  const AppResult result = RunLine(folder.folder.path(), {"lease", "show", "lease-1"});
  EXPECT_EQ(result.status, 5);
  EXPECT_NE(result.err.find("ringfence up"), std::string::npos) << result.err;
}

TEST(RunRequestTest, WordsBecomeTheRequest) {
  const auto request = [](const std::string& line) {
    return LeaseRequestOf(Parse(AllCommands(), Words(line)).value(), "acme/default");
  };
  EXPECT_EQ(CanonicalJson(request("run -t acme/web -g 2 --timeout 1h30m -m 4G --cpus 1.5 --pids 64 "
                                  "-e A=1 -e B=x=y -- sh -c true")
                              .value()),
            R"({"command":["sh","-c","true"],"cpu_millis":1500,"env":{"A":"1","B":"x=y"},)"
            R"("gpus":2,"memory_bytes":4294967296,"pids":64,"tenant":"acme/web",)"
            R"("timeout_ms":5400000})");
  EXPECT_EQ(CanonicalJson(request("run -- id").value()),
            R"({"command":["id"],"tenant":"acme/default"})");
  for (const char* wrong :
       {"run -g x -- a", "run -g 65 -- a", "run -m 4X -- a", "run --cpus 0 -- a",
        "run --timeout 5 -- a", "run -e =x -- a", "run -e NOVALUE -- a"}) {
    const auto refused = request(wrong);
    ASSERT_FALSE(refused.has_value()) << wrong;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_FALSE(refused.error().hint.empty()) << wrong;
  }
}

}  // namespace
}  // namespace ringfence::cli
