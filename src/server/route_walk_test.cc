// Goal: no route is without its guard: nobody in particular gets through none but the open ones,
// and somebody who holds no role gets nothing from any.
// Method: every route of the table is called, without credentials, with a token of a principal
// without a role, and with an administrator's, who is denied nothing.

#include <gtest/gtest.h>

#include <filesystem>

#include "crypto/random.h"
#include "server/core.h"
#include "server/router.h"
#include "store/records.h"

namespace ringfence::server {
namespace {

const std::string kSample = std::string(RINGFENCE_SOURCE_DIR) + "/content/sample-policy";

std::shared_ptr<const policy::Policy> WithNobody() {
  auto files = policy::Policy::Load(kSample).value()->files();
  files["nobody.yaml"] =
      "apiVersion: ringfence.dev/v1\nkind: Principal\nmetadata:\n  name: nobody@acme.example\n"
      "spec:\n  kind: user\n";
  return policy::Policy::Parse(files).value();
}

class RouteWalkTest : public testing::Test {
 protected:
  RouteWalkTest() : folder_(std::filesystem::temp_directory_path() / crypto::RandomId("walk")) {
    std::filesystem::create_directories(folder_);
    Core::Parts parts{store::OpenSqlite(folder_ / "db").value(),
                      OpenKeys({folder_ / "keys", {"localhost"}, {}, {}}, clock_.Now()).value(),
                      kSample, WithNobody()};
    core_ = std::make_unique<Core>(std::move(parts), clock_);
    core_->waiters().SetLater([](Milliseconds, const std::function<void()>&) {});
    core_->SetSequencer(Sequencer::Start(core_->database(),
                                         {folder_ / "log", "ringfence.dev/log/test", "s"},
                                         core_->keys().log, [] {})
                            .value());
    model::Lease lease;
    lease.id = "1";
    lease.request.tenant = model::TenantPath::Create("acme/research/vision").value();
    lease.request.command = {"true"};
    lease.principal = "alice@acme.example";
    EXPECT_TRUE(core_->database()
                    .Write([&](store::Connection& db) { return store::InsertLease(db, lease); })
                    .has_value());
  }
  ~RouteWalkTest() override {
    core_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string TokenOf(const std::string& principal) {
    const store::Token token{crypto::RandomId("t"),
                             principal,
                             clock_.Now(),
                             clock_.Now() + std::chrono::hours(1),
                             "test",
                             "",
                             ""};
    EXPECT_TRUE(core_->database()
                    .Write([&](store::Connection& db) { return store::PutToken(db, token); })
                    .has_value());
    return core_->mint().Mint(token.id);
  }

  // With each "{name}" of the path filled in.
  net::Response Call(const Route& route, const std::string& token) {
    net::Request request;
    request.method = route.method;
    std::string_view rest = route.path;
    while (!rest.empty()) {
      const std::size_t open = rest.find('{');
      request.path += rest.substr(0, open);
      rest.remove_prefix(open == std::string_view::npos ? rest.size() : rest.find('}') + 1);
      request.path += open == std::string_view::npos ? "" : "1";
    }
    request.body = route.method == "POST" ? "{}" : "";
    request.remote_address = "192.0.2.1";
    if (!token.empty()) {
      request.headers.emplace_back("authorization", "Bearer " + token);
    }
    net::Response answer;
    answer.status = 0;
    Dispatch(*core_, nullptr, request,
             net::Responder([&](net::Response response) { answer = std::move(response); }));
    EXPECT_NE(answer.status, 0) << route.path << " is not answered at once";
    return answer;
  }

  audit::Entry LastEntry() {
    audit::Entry entry;
    EXPECT_TRUE(core_->database()
                    .Read([&](store::Connection& db) -> Status {
                      store::AuditFilter newest;
                      newest.newest_first = true;
                      newest.limit = 1;
                      RINGFENCE_ASSIGN(const auto rows, store::ListAudit(db, newest));
                      RINGFENCE_ASSIGN(entry, audit::Entry::Parse(rows.at(0).entry));
                      return {};
                    })
                    .has_value());
    return entry;
  }

  const SystemClock clock_;
  std::filesystem::path folder_;
  std::unique_ptr<Core> core_;
};

std::string NameOf(const Route& route) {
  return std::string(route.method) + " " + std::string(route.path);
}

TEST_F(RouteWalkTest, NobodyInParticularGetsThroughTheOpenDoorsOnly) {
  std::vector<std::string> open;
  for (const Route& route : AllRoutes()) {
    if (route.door == Door::kOpen) {
      open.push_back(NameOf(route));
    } else {
      EXPECT_EQ(Call(route, "").status, 401) << NameOf(route);
      EXPECT_EQ(Call(route, "rf_x_y").status, 401) << NameOf(route);
    }
  }
  EXPECT_EQ(open, (std::vector<std::string>{"GET /healthz", "GET /readyz", "GET /metrics",
                                            "POST /v1/agent/join"}))
      << "a new open door is a decision: write down here that it is one";
}

TEST_F(RouteWalkTest, WhoHoldsNoRoleGetsNothing) {
  const std::string token = TokenOf("nobody@acme.example");
  for (const Route& route : AllRoutes()) {
    if (route.door == Door::kOpen) {
      continue;
    }
    const net::Response answer = Call(route, token);
    if (route.door == Door::kNode) {
      EXPECT_EQ(answer.status, 401) << NameOf(route) << ": a token is no certificate";
    } else if (route.path == "/v1/whoami") {
      EXPECT_EQ(answer.status, 200);
    } else if (!route.decides_itself || route.path.find("{lease}") != std::string_view::npos) {
      EXPECT_EQ(answer.status, 403) << NameOf(route);
    } else if (answer.status == 200) {
      // A list of what the caller may see, which is nothing.
      EXPECT_EQ(route.method, "GET") << NameOf(route);
      const auto body = ParseJson(answer.body, answer.body.size());
      ASSERT_TRUE(body.has_value()) << NameOf(route);
      const auto& object = body->as_object();
      const bool empty = object.contains("items") ? object.at("items").as_array().empty()
                                                  : object.at("count").as_int64() == 0;
      EXPECT_TRUE(empty) << NameOf(route) << ": " << answer.body;
    } else {
      // 400: what it is about is in the body, which is empty; 404: there is no such thing.
      EXPECT_TRUE(answer.status == 403 || answer.status == 404 || answer.status == 400)
          << NameOf(route) << ": " << answer.status;
    }
  }
}

TEST_F(RouteWalkTest, EachGuardAsksForItsOwnActionAndItsDenialIsOnRecord) {
  const std::string token = TokenOf("nobody@acme.example");
  for (const Route& route : AllRoutes()) {
    if (route.door != Door::kToken || Call(route, token).status != 403) {
      continue;
    }
    const audit::Entry last = LastEntry();
    EXPECT_EQ(last.action, Name(*route.action)) << NameOf(route);
    EXPECT_EQ(last.decision, "deny") << NameOf(route);
    EXPECT_EQ(last.actor.principal, "nobody@acme.example") << NameOf(route);
    EXPECT_EQ(last.policy, core_->policy()->digest()) << NameOf(route);
  }
}

TEST_F(RouteWalkTest, TheAdministratorIsDeniedNothing) {
  const std::string token = TokenOf("admin");
  for (const Route& route : AllRoutes()) {
    // Those that wait, or want what is not here, are not about access.
    if (route.door == Door::kToken && route.method == "GET") {
      const int status = Call(route, token).status;
      EXPECT_TRUE(status != 401 && status != 403) << NameOf(route) << ": " << status;
    }
  }
}

}  // namespace
}  // namespace ringfence::server
