// Goal: what is in force is what was signed last, in memory and in the database, whoever raced;
// what somebody wrote into the database by other ways is not followed; nobody is locked out by
// accident. Method: a core on a database in a file, and a hand that writes into its tables.

#include "server/policy_version.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "crypto/random.h"
#include "server/core.h"
#include "store/records.h"
#include "store/shared_records.h"

namespace ringfence::server {
namespace {

using policy::Policy;

const std::string kSample = std::string(RINGFENCE_SOURCE_DIR) + "/content/sample-policy";
const audit::Actor kAda{"admin", "user", "t-1", "192.0.2.1"};

std::shared_ptr<const Policy> Sample() { return Policy::Load(kSample).value(); }

// The sample with one principal more.
std::shared_ptr<const Policy> With(const std::string& principal) {
  auto files = Sample()->files();
  files["more.yaml"] =
      "apiVersion: ringfence.dev/v1\nkind: Principal\nmetadata:\n  name: " + principal +
      "\nspec:\n  kind: user\n";
  return Policy::Parse(files).value();
}

class PolicyVersionTest : public testing::Test {
 protected:
  PolicyVersionTest()
      : folder_(std::filesystem::temp_directory_path() / crypto::RandomId("policy")) {
    std::filesystem::create_directories(folder_);
    Core::Parts parts{store::OpenSqlite(folder_ / "db").value(),
                      OpenKeys({folder_ / "keys", {"localhost"}, {}, {}}, clock_.Now()).value(),
                      kSample, Sample()};
    core_ = std::make_unique<Core>(std::move(parts), clock_);
  }
  ~PolicyVersionTest() override {
    core_.reset();
    std::filesystem::remove_all(folder_);
  }

  PolicyApplied Apply(const std::shared_ptr<const Policy>& policy,
                      std::string_view origin = kFromApply) {
    auto applied = core_->ApplyPolicy(policy, {kAda, origin});
    EXPECT_TRUE(applied.has_value()) << applied.error().message;
    return applied.has_value() ? *applied : PolicyApplied();
  }
  void Sql(const std::string& statement) {
    ASSERT_TRUE(core_->database()
                    .Write([&](store::Connection& db) -> Status {
                      RINGFENCE_TRY(db.Run(statement, {}));
                      return {};
                    })
                    .has_value());
  }
  void GiveToken(const std::string& principal, Milliseconds life, const std::string& revoked = "") {
    const store::Token token{
        crypto::RandomId("t"), principal, clock_.Now(), clock_.Now() + life, "admin", "", revoked};
    ASSERT_TRUE(core_->database()
                    .Write([&](store::Connection& db) { return store::PutToken(db, token); })
                    .has_value());
  }

  const SystemClock clock_;
  std::filesystem::path folder_;
  std::unique_ptr<Core> core_;
};

TEST_F(PolicyVersionTest, EachChangeIsAVersionThatNamesTheOneBefore) {
  EXPECT_EQ(Apply(Sample(), kFromFolder).facts.number, 1);
  const PolicyApplied second = Apply(With("zoe@acme.example"));
  EXPECT_TRUE(second.changed);
  EXPECT_EQ(second.facts.number, 2);
  EXPECT_EQ(second.facts.previous, 1);
  EXPECT_EQ(second.facts.previous_digest, Sample()->digest());
  EXPECT_EQ(second.facts.by, "admin");
  EXPECT_NE(core_->policy()->FindPrincipal("zoe@acme.example"), nullptr);
  EXPECT_EQ(core_->policy_version(), 2);
  const PolicyApplied again = Apply(With("zoe@acme.example"));
  EXPECT_FALSE(again.changed);
  EXPECT_EQ(again.facts.number, 2);
  const auto newest = core_->NewestVersion();
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ((*newest)->digest, core_->policy()->digest());
}

TEST_F(PolicyVersionTest, OneThatExpectsAnotherVersionChangesNothing) {
  Apply(Sample());
  auto applied = core_->ApplyPolicy(With("zoe@acme.example"),
                                    {.actor = kAda, .origin = kFromApply, .expected = 7});
  ASSERT_FALSE(applied.has_value());
  EXPECT_EQ(applied.error().code, Code::kConflict);
  EXPECT_EQ(core_->policy()->FindPrincipal("zoe@acme.example"), nullptr);
  EXPECT_TRUE(core_
                  ->ApplyPolicy(With("zoe@acme.example"),
                                {.actor = kAda, .origin = kFromApply, .expected = 1})
                  .has_value());
}

TEST_F(PolicyVersionTest, ThoseWhoRaceLeaveTheNewestInForce) {
  Apply(Sample());
  std::vector<std::shared_ptr<const Policy>> policies;
  for (int i = 0; i < 4; ++i) {
    policies.push_back(With("p" + std::to_string(i) + "@acme.example"));
  }
  std::vector<std::jthread> threads;
  for (const auto& policy : policies) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(core_->ApplyPolicy(policy, {kAda, kFromApply}).has_value());
      }
    });
  }
  threads.clear();
  const auto newest = core_->NewestVersion();
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ((*newest)->digest, core_->policy()->digest());
  EXPECT_EQ((*newest)->number, core_->policy_version());
}

TEST_F(PolicyVersionTest, OnceSomethingIsAppliedTheFolderCountsOnlyByForce) {
  EXPECT_TRUE(core_->ReloadFolder({kAda}).has_value());
  Apply(With("zoe@acme.example"));
  const auto refused = core_->ReloadFolder({kAda});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_NE(core_->policy()->FindPrincipal("zoe@acme.example"), nullptr);
  PolicyChange forced{kAda};
  forced.forced = true;
  EXPECT_TRUE(core_->ReloadFolder(forced).has_value());
  EXPECT_EQ(core_->policy()->FindPrincipal("zoe@acme.example"), nullptr);
  EXPECT_TRUE(core_->ReloadFolder({kAda}).has_value()) << "the folder counts again";
}

TEST_F(PolicyVersionTest, WhatWasWrittenIntoTheDatabaseByOtherWaysIsNotFollowed) {
  Apply(Sample());
  Apply(With("zoe@acme.example"));
  core_->FollowPolicy();
  EXPECT_EQ(core_->policy_problem(), "");
  const std::string digest = core_->policy()->digest();
  const std::string wanted = Sample()->digest();
  for (const std::string& statement : {
           "UPDATE policy_versions SET digest = '" + wanted + "' WHERE number = 2",
           std::string("UPDATE policy_versions SET number = 9 WHERE number = 1"),
           std::string("UPDATE policy_versions SET envelope = '{}' WHERE number = 2"),
           "UPDATE policies SET number = 99 WHERE digest = '" + wanted + "'",
       }) {
    Sql("CREATE TABLE kept_versions AS SELECT number, digest, envelope FROM policy_versions");
    Sql("CREATE TABLE kept_policies AS SELECT digest, number FROM policies");
    Sql(statement);
    core_->FollowPolicy();
    EXPECT_NE(core_->policy_problem(), "") << statement;
    EXPECT_EQ(core_->policy()->digest(), digest) << statement;
    Sql("DELETE FROM policy_versions");
    Sql("INSERT INTO policy_versions SELECT number, digest, envelope FROM kept_versions");
    Sql("UPDATE policies SET number = (SELECT number FROM kept_policies"
        " WHERE kept_policies.digest = policies.digest)");
    Sql("DROP TABLE kept_versions");
    Sql("DROP TABLE kept_policies");
    core_->FollowPolicy();
    EXPECT_EQ(core_->policy_problem(), "") << statement;
  }
}

TEST_F(PolicyVersionTest, FilesThatAreNotTheSignedOnesAreNotTaken) {
  Apply(Sample());
  const VersionFacts first = Apply(With("zoe@acme.example")).facts;
  ASSERT_TRUE(PolicyOf(core_->database(), first).has_value());
  Sql("UPDATE policies SET files = (SELECT files FROM policies WHERE digest <> '" + first.digest +
      "') WHERE digest = '" + first.digest + "'");
  const auto changed = PolicyOf(core_->database(), first);
  ASSERT_FALSE(changed.has_value());
  EXPECT_EQ(changed.error().code, Code::kCorrupt);
}

TEST_F(PolicyVersionTest, SomebodyWithATokenMustBeAbleToChangeItBack) {
  const auto locked = [&] {
    return !WhoIsLockedOut(core_->database(), *Sample(), {clock_.Now(), "127.0.0.1"}, clock_.Now())
                .value()
                .empty();
  };
  EXPECT_TRUE(locked()) << "no token at all";
  GiveToken("alice@acme.example", std::chrono::hours(1));
  EXPECT_TRUE(locked()) << "a developer changes no policy";
  GiveToken("admin", std::chrono::hours(1), "2026-01-01T00:00:00Z");
  EXPECT_TRUE(locked()) << "revoked";
  GiveToken("admin", Milliseconds(0));
  EXPECT_TRUE(locked()) << "expired";
  GiveToken("admin", std::chrono::hours(1));
  EXPECT_FALSE(locked());
}

}  // namespace
}  // namespace ringfence::server
