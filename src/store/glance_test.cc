// Goal: the short ways to a lease and a token say the same as the long ones.
// Method: records with everything that could mislead a reader of their text, stored and read back
// both ways.

#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "crypto/random.h"
#include "store/records.h"
#include "wire/lease_json.h"

namespace ringfence::store {
namespace {

class GlanceTest : public testing::Test {
 protected:
  GlanceTest() {
    folder_ =
        std::filesystem::temp_directory_path() / ("ringfence-glance-" + crypto::RandomId("t"));
    std::filesystem::create_directories(folder_);
    db_ = OpenSqlite(folder_ / "test.db").value();
  }
  ~GlanceTest() override {
    db_.reset();
    std::filesystem::remove_all(folder_);
  }
  template <typename Work>
  void Do(Work work) {
    const Status done = db_->Write(work);
    EXPECT_TRUE(done.has_value()) << (done.has_value() ? "" : done.error().message);
  }

  std::filesystem::path folder_;
  std::unique_ptr<Database> db_;
};

TEST_F(GlanceTest, ALeasesTextIsTheLease) {
  model::Lease lease;
  lease.id = "lease-1";
  lease.request.tenant = model::TenantPath::Create("acme/research").value();
  lease.request.command = {"sh", "-c", R"(echo '"env":{}' "env":{})"};
  lease.request.environment = {{"env", "{}"}, {"A", "\"env\":{}"}};
  lease.principal = "alice";
  lease.state = model::LeaseState::kActive;
  Do([&](Connection& db) -> Status {
    RINGFENCE_TRY(InsertLease(db, lease));
    RINGFENCE_ASSIGN(const LeaseText text, GetLeaseText(db, lease.id));
    EXPECT_EQ(text.tenant, "acme/research");
    EXPECT_EQ(text.state, "active");
    EXPECT_EQ(text.json, CanonicalJson(wire::LeaseToJson(lease)));
    // The first such name is the request's own environment, which the server hides unless empty.
    EXPECT_EQ(text.json.substr(text.json.find("\"env\":"), 10), "\"env\":{\"A\"");
    lease.state = model::LeaseState::kEnding;
    RINGFENCE_TRY(UpdateLease(db, lease));
    RINGFENCE_ASSIGN(const LeaseText later, GetLeaseText(db, lease.id));
    EXPECT_EQ(later.state, "ending");
    EXPECT_EQ(GetLeaseText(db, "lease-2").error().code, Code::kNotFound);
    return {};
  });
}

TEST_F(GlanceTest, ATokensUseFollowsItsRevocation) {
  Token token{"t-1",
              "alice",
              Timestamp(Milliseconds(1)),
              Timestamp(Milliseconds(1700000000123)),
              "root",
              R"(a note ,"revoked":""})",
              ""};
  Do([&](Connection& db) -> Status {
    RINGFENCE_TRY(PutToken(db, token));
    RINGFENCE_ASSIGN(const TokenUse use, GetTokenUse(db, token.id));
    EXPECT_EQ(use.principal, "alice");
    EXPECT_EQ(use.expires, token.expires);
    EXPECT_EQ(use.revoked, "");
    for (const char* const when : {"2026-11-15T08:46:30.123Z", R"(,"revoked":""})"}) {
      token.revoked = when;
      RINGFENCE_TRY(PutToken(db, token));
      RINGFENCE_ASSIGN(const TokenUse revoked, GetTokenUse(db, token.id));
      EXPECT_EQ(revoked.revoked, when);
      EXPECT_EQ(revoked.principal, "alice");
      EXPECT_EQ(revoked.expires, token.expires);
    }
    EXPECT_EQ(GetTokenUse(db, "t-2").error().code, Code::kNotFound);
    return {};
  });
}

}  // namespace
}  // namespace ringfence::store
