// Goal: versions of the policy are listed newest first, and kept within two limits, the one in
// force always and with its files. Method: the same on a file of SQLite's and on PostgreSQL.

#include "store/policy_versions.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "crypto/random.h"
#include "store/harness_test.h"
#include "store/shared_records.h"

namespace ringfence::store {
namespace {

class PolicyVersionsTest : public testing::TestWithParam<bool> {
 protected:
  PolicyVersionsTest() : folder_(std::filesystem::temp_directory_path() / crypto::RandomId("pv")) {
    std::filesystem::create_directories(folder_);
    database_ = Open(GetParam() ? NewPostgresDatabase() : (folder_ / "db").string()).value();
  }
  ~PolicyVersionsTest() override {
    database_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Put(std::int64_t number, const std::string& digest, std::size_t bytes = 10) {
    Do([&](Connection& db) -> Status {
      RINGFENCE_TRY(PutPolicy(db, {digest, {{"a.yaml", std::string(bytes, 'x')}}}));
      return InsertPolicyVersion(db, {number, digest, "envelope " + std::to_string(number)});
    });
  }
  void Do(const std::function<Status(Connection&)>& work) {
    const Status done = database_->Write(work);
    ASSERT_TRUE(done.has_value()) << done.error().message;
  }
  std::vector<std::int64_t> Numbers(std::int64_t before = 0, std::int64_t limit = 100) {
    std::vector<std::int64_t> numbers;
    Do([&](Connection& db) -> Status {
      RINGFENCE_ASSIGN(const auto versions, ListPolicyVersions(db, before, limit));
      for (const PolicyVersion& version : versions) {
        numbers.push_back(version.number);
      }
      return {};
    });
    return numbers;
  }

  std::filesystem::path folder_;
  std::unique_ptr<Database> database_;
};

TEST_P(PolicyVersionsTest, AreListedNewestFirstAndFoundByNumber) {
  Do([](Connection& db) -> Status {
    EXPECT_TRUE(HasPolicyVersions(db).value());
    EXPECT_FALSE(NewestPolicyVersion(db).value().has_value());
    return {};
  });
  Put(1, "d1");
  Put(2, "d2");
  Put(3, "d1");
  EXPECT_EQ(Numbers(), (std::vector<std::int64_t>{3, 2, 1}));
  EXPECT_EQ(Numbers(3, 1), (std::vector<std::int64_t>{2}));
  Do([](Connection& db) -> Status {
    EXPECT_EQ(NewestPolicyVersion(db).value()->envelope, "envelope 3");
    EXPECT_EQ(GetPolicyVersion(db, 2).value().digest, "d2");
    return {};
  });
  const Status twice = database_->Write(
      [](Connection& db) { return InsertPolicyVersion(db, {3, "d9", "another"}); });
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().code, Code::kConflict);
  const Status none = database_->Read([](Connection& db) -> Status {
    return GetPolicyVersion(db, 7).has_value() ? Status() : Status(Error{Code::kNotFound, ""});
  });
  EXPECT_FALSE(none.has_value());
}

TEST_P(PolicyVersionsTest, TheOldestGoWithTheirFilesAndTheOneInForceStays) {
  Put(1, "d1");
  Put(2, "d2");
  Put(3, "d1");
  Put(4, "d4");
  Do([](Connection& db) { return ForgetPolicyVersions(db, 2); });
  EXPECT_EQ(Numbers(), (std::vector<std::int64_t>{4, 3}));
  Do([](Connection& db) -> Status {
    EXPECT_TRUE(GetPolicy(db, "d1").has_value()) << "version 3 has the same files";
    return {};
  });
  const auto has = [&](const std::string& digest) {
    return database_
        ->Read([&](Connection& db) -> Status {
          RINGFENCE_TRY(GetPolicy(db, digest));
          return {};
        })
        .has_value();
  };
  EXPECT_FALSE(has("d2"));
  Put(5, "d5", 5000);
  Do([](Connection& db) { return ForgetPolicyVersions(db, 100, 4000); });
  EXPECT_EQ(Numbers(), (std::vector<std::int64_t>{5})) << "too long for the limit, but in force";
  EXPECT_TRUE(has("d5"));
  EXPECT_FALSE(has("d4"));
}

INSTANTIATE_TEST_SUITE_P(Databases, PolicyVersionsTest, testing::Bool(), [](const auto& database) {
  return std::string(database.param ? "PostgreSQL" : "SQLite");
});

}  // namespace
}  // namespace ringfence::store
