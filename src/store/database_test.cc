// Goal: a write that was acknowledged is there after a crash; one that failed left nothing; writes
// of many threads never see half of each other.
// Method: real files; reopen without closing; jobs that fail inside a shared commit; many threads.

#include "store/database.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "store/migrations.h"
#include "store/records.h"

namespace ringfence::store {
namespace {

class DatabaseTest : public testing::Test {
 protected:
  DatabaseTest() {
    folder_ =
        std::filesystem::temp_directory_path() /
        ("ringfence-store-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
         "-" + std::to_string(reinterpret_cast<std::uintptr_t>(this)));
    std::filesystem::create_directories(folder_);
  }
  ~DatabaseTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ / "test.db"; }
  std::unique_ptr<Database> Open() {
    auto opened = OpenSqlite(path());
    EXPECT_TRUE(opened.has_value()) << (opened.has_value() ? "" : opened.error().message);
    return std::move(opened).value();
  }
  static std::int64_t Size(Database& db) {
    std::int64_t size = -1;
    EXPECT_TRUE(db.Read([&](Connection& connection) -> Status {
                    RINGFENCE_ASSIGN(size, AuditSize(connection));
                    return {};
                  }).has_value());
    return size;
  }

  std::filesystem::path folder_;
};

Status AppendOne(Connection& db, std::string_view text) {
  return AppendAudit(db, "test.entry", "", ToBytes(text));
}

TEST_F(DatabaseTest, WhatIsAcknowledgedIsThereWithoutAnyClose) {
  auto first = Open();
  ASSERT_TRUE(first->Write([](Connection& db) { return AppendOne(db, "a"); }).has_value());
  auto second = Open();  // the first still holds everything it holds
  EXPECT_EQ(Size(*second), 1);
}

TEST_F(DatabaseTest, AFailedWriteLeavesNothing) {
  auto db = Open();
  const Status failed = db->Write([](Connection& connection) -> Status {
    RINGFENCE_TRY(AppendOne(connection, "half"));
    return Error{Code::kInternal, "second half fails"};
  });
  EXPECT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().message, "second half fails");
  EXPECT_EQ(Size(*db), 0);
}

TEST_F(DatabaseTest, ThreadsThatFailDoNotHarmThoseThatShareTheirCommit) {
  auto db = Open();
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 16; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) {
          const bool fails = (t + i) % 3 == 0;
          const Status status = db->Write([&](Connection& connection) -> Status {
            RINGFENCE_TRY(AppendOne(connection, "x"));
            return fails ? Status(Error{Code::kInternal, "no"}) : Status();
          });
          EXPECT_EQ(status.has_value(), !fails);
          good += status.has_value();
        }
      });
    }
  }
  EXPECT_EQ(Size(*db), good);
  // Numbered from 0 without a gap, whatever was rolled back in between.
  EXPECT_TRUE(db->Read([&](Connection& connection) -> Status {
                  AuditFilter all;
                  all.limit = 1000;
                  RINGFENCE_ASSIGN(const auto rows, ListAudit(connection, all));
                  for (std::size_t i = 0; i < rows.size(); ++i) {
                    EXPECT_EQ(rows[i].seq, static_cast<std::int64_t>(i));
                  }
                  return {};
                }).has_value());
}

TEST_F(DatabaseTest, ABrokenConstraintIsAConflictAndANewerSchemaIsRefused) {
  auto db = Open();
  const StoredReceipt receipt{"r-1", "", "n", "key", "{}"};
  const auto insert = [&](Connection& connection) { return InsertReceipt(connection, receipt); };
  ASSERT_TRUE(db->Write(insert).has_value());
  EXPECT_EQ(db->Write(insert).error().code, Code::kConflict);
  ASSERT_TRUE(db->Write([](Connection& connection) -> Status {
                  RINGFENCE_TRY(connection.Run("UPDATE schema_version SET version = $1, least = $1",
                                               {std::int64_t{NewestSchema() + 1}}));
                  return {};
                }).has_value());
  db.reset();
  const auto refused = OpenSqlite(path());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
}

TEST_F(DatabaseTest, AFullDiskIsUnavailableAndNothingIsHalfThere) {
  auto db = Open();
  ASSERT_TRUE(db->Write([](Connection& connection) -> Status {
                  RINGFENCE_TRY(AppendOne(connection, "first"));
                  RINGFENCE_TRY(connection.Run("PRAGMA max_page_count = 60", {}));
                  return {};
                }).has_value());
  const std::string large(60000, 'x');
  Status status;
  int written = 1;
  for (int i = 0; i < 100 && status.has_value(); ++i) {
    status = db->Write([&](Connection& connection) { return AppendOne(connection, large); });
    written += status.has_value();
  }
  ASSERT_FALSE(status.has_value()) << "the disk never filled";
  EXPECT_EQ(status.error().code, Code::kUnavailable);
  EXPECT_EQ(Size(*db), written);
}

TEST_F(DatabaseTest, ReadersCannotWrite) {
  auto db = Open();
  EXPECT_FALSE(
      db->Read([](Connection& connection) { return AppendOne(connection, "x"); }).has_value());
  EXPECT_EQ(Size(*db), 0);
}

TEST_F(DatabaseTest, AFileThatIsNoDatabaseIsNotWrittenOver) {
  {
    std::ofstream(path()) << std::string(8192, 'z');
  }
  const auto opened = OpenSqlite(path());
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(std::filesystem::file_size(path()), 8192U);
}

TEST_F(DatabaseTest, RecordsComeBackAsTheyWere) {
  auto db = Open();
  model::Lease lease;
  lease.id = "lease-1";
  lease.request.tenant = model::TenantPath::Create("acme/research/vision").value();
  lease.request.command = {"true"};
  lease.principal = "alice";
  model::Gpu gpu;
  gpu.uuid = "GPU-1";
  gpu.node = "n1";
  gpu.memory_bytes = 1U << 30U;
  JoinToken token{"id", "n1", "half", Timestamp(Milliseconds(5000))};
  ASSERT_TRUE(db->Write([&](Connection& connection) -> Status {
                  RINGFENCE_TRY(InsertLease(connection, lease));
                  RINGFENCE_TRY(PutGpu(connection, gpu));
                  return InsertJoinToken(connection, token);
                }).has_value());
  ASSERT_TRUE(db->Write([&](Connection& connection) -> Status {
                  RINGFENCE_ASSIGN(const auto found, GetLease(connection, "lease-1"));
                  EXPECT_EQ(found.principal, "alice");
                  RINGFENCE_ASSIGN(const auto card, GetGpu(connection, "GPU-1"));
                  EXPECT_EQ(card.memory_bytes, gpu.memory_bytes);
                  RINGFENCE_ASSIGN(const auto taken, TakeJoinToken(connection, "id"));
                  EXPECT_EQ(taken.expires, token.expires);
                  EXPECT_EQ(TakeJoinToken(connection, "id").error().code, Code::kNotFound);
                  EXPECT_EQ(GetLease(connection, "lease-2").error().code, Code::kNotFound);
                  return {};
                }).has_value());
  for (const auto& [tenant, count] : {std::pair<std::string, std::size_t>{"", 1},
                                      {"acme", 1},
                                      {"acme/research", 1},
                                      {"acme/res", 0},
                                      {"acm", 0},
                                      {"globex", 0}}) {
    EXPECT_TRUE(db->Read([&](Connection& connection) -> Status {
                    LeaseFilter filter;
                    filter.tenant = tenant;
                    RINGFENCE_ASSIGN(const auto leases, ListLeases(connection, filter));
                    EXPECT_EQ(leases.size(), count) << tenant;
                    return {};
                  }).has_value());
  }
}

}  // namespace
}  // namespace ringfence::store
