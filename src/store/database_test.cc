// Goal: a write that was acknowledged is there after a crash; one that failed left nothing; writes
// of many threads never see half of each other; old and new programs share a database where they
// can. All of it on SQLite and on PostgreSQL alike.
// Method: real files and a real PostgreSQL; reopen without closing; jobs that fail inside a shared
// commit; many threads; databases as older and newer programs leave them.

#include "store/database.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "crypto/random.h"
#include "store/harness_test.h"
#include "store/migrations.h"
#include "store/records.h"
#include "store/work.h"

namespace ringfence::store {

void PrintTo(Dialect dialect, std::ostream* out) {
  *out << (dialect == Dialect::kSqlite ? "SQLite" : "PostgreSQL");
}

namespace {

class DatabaseTest : public testing::TestWithParam<Dialect> {
 protected:
  DatabaseTest() {
    folder_ =
        std::filesystem::temp_directory_path() /
        ("ringfence-store-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
         "-" + crypto::RandomId("t"));
    std::filesystem::create_directories(folder_);
    where_ = GetParam() == Dialect::kSqlite ? path() : NewPostgresDatabase();
  }
  ~DatabaseTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ / "test.db"; }
  const std::string& where() const { return where_; }
  std::unique_ptr<Database> Open() {
    auto opened = store::Open(where_);
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
  // Leaves the database as a program leaves it that knows no schema but this, and wrote `work`.
  Status GoBackTo(
      Database& db, int schema, const Work& work = [](Connection&) { return Status(); }) {
    return db.Write([&](Connection& connection) -> Status {
      RINGFENCE_ASSIGN(
          const auto tables,
          connection.Run(GetParam() == Dialect::kSqlite
                             ? "SELECT name FROM sqlite_master WHERE type = 'table'"
                             : "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
                               " AND tablename <> 'write_batches'",
                         {}));
      for (const Row& row : tables) {
        RINGFENCE_TRY(connection.Run("DROP TABLE " + TextAt(row, 0), {}));
      }
      RINGFENCE_TRY(Migrate(connection, GetParam(), schema));
      return work(connection);
    });
  }

  std::filesystem::path folder_;
  std::string where_;
};

INSTANTIATE_TEST_SUITE_P(On, DatabaseTest, testing::Values(Dialect::kSqlite, Dialect::kPostgres),
                         [](const auto& about) {
                           return about.param == Dialect::kSqlite ? "Sqlite" : "Postgres";
                         });

Status AppendOne(Connection& db, std::string_view text) {
  return AppendAudit(db, "test.entry", "", ToBytes(text));
}

TEST_P(DatabaseTest, WhatIsAcknowledgedIsThereWithoutAnyClose) {
  auto first = Open();
  ASSERT_TRUE(first->Write([](Connection& db) { return AppendOne(db, "a"); }).has_value());
  auto second = Open();  // the first still holds everything it holds
  EXPECT_EQ(Size(*second), 1);
}

TEST_P(DatabaseTest, AFailedWriteLeavesNothing) {
  auto db = Open();
  const Status failed = db->Write([](Connection& connection) -> Status {
    RINGFENCE_TRY(AppendOne(connection, "half"));
    return Error{Code::kInternal, "second half fails"};
  });
  EXPECT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().message, "second half fails");
  EXPECT_EQ(Size(*db), 0);
}

TEST_P(DatabaseTest, ThreadsThatFailDoNotHarmThoseThatShareTheirCommit) {
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

TEST_P(DatabaseTest, ABrokenConstraintIsAConflictAndEndsTheWork) {
  auto db = Open();
  const StoredReceipt receipt{"r-1", "", "n", "key", "{}"};
  const auto insert = [&](Connection& connection) { return InsertReceipt(connection, receipt); };
  ASSERT_TRUE(db->Write(insert).has_value());
  EXPECT_EQ(db->Write(insert).error().code, Code::kConflict);
  // Work that does not care is told all the same, and leaves nothing.
  const Status careless = db->Write([&](Connection& connection) -> Status {
    RINGFENCE_TRY(AppendOne(connection, "before"));
    EXPECT_EQ(InsertReceipt(connection, receipt).error().code, Code::kConflict);
    EXPECT_EQ(AppendOne(connection, "after").error().code, Code::kConflict);
    return {};
  });
  ASSERT_FALSE(careless.has_value());
  EXPECT_EQ(careless.error().code, Code::kConflict);
  EXPECT_EQ(Size(*db), 0);
}

TEST_P(DatabaseTest, ValuesComeBackAsTheyWere) {
  auto db = Open();
  Bytes all;
  for (int i = 0; i < 256; ++i) {
    all.push_back(static_cast<std::byte>(i));
  }
  const std::vector<Value> values{std::int64_t{0},
                                  std::int64_t{INT64_MIN},
                                  std::int64_t{INT64_MAX},
                                  std::string(),
                                  std::string("Gr\xc3\xbc\xc3\x9f'e \"$1\\"),
                                  Bytes(),
                                  all,
                                  std::monostate{}};
  EXPECT_TRUE(db->Read([&](Connection& connection) -> Status {
                  RINGFENCE_ASSIGN(const auto rows,
                                   connection.Run("SELECT $1, $2, $3, $4, $5, $6, $7, $8", values));
                  EXPECT_EQ(rows, std::vector<Row>{values});
                  return {};
                }).has_value());
}

TEST_P(DatabaseTest, TextIsOrderedByItsBytes) {
  auto db = Open();
  ASSERT_TRUE(db->Write([&](Connection& connection) -> Status {
                  for (const char* name : {"a", "B", "a-b", "ab", "_", "\xc3\xa4"}) {
                    model::Node node;
                    node.name = name;
                    RINGFENCE_TRY(connection.Run("INSERT INTO nodes (name, record) VALUES ($1, '')",
                                                 {std::string(name)}));
                  }
                  return {};
                }).has_value());
  EXPECT_TRUE(db->Read([&](Connection& connection) -> Status {
                  RINGFENCE_ASSIGN(const auto rows,
                                   connection.Run("SELECT name FROM nodes ORDER BY name", {}));
                  std::string order;
                  for (const Row& row : rows) {
                    order += TextAt(row, 0) + " ";
                  }
                  EXPECT_EQ(order, "B _ a a-b ab \xc3\xa4 ");
                  return {};
                }).has_value());
}

TEST_P(DatabaseTest, AnOlderDatabaseIsBroughtUpToDate) {
  const auto write = [](Connection& c) -> Status {
    RINGFENCE_TRY(AppendOne(c, "first"));
    RINGFENCE_TRY(AppendAudit(c, "lease.request", "lease-1", ToBytes("second")));
    return AppendOne(c, "third");
  };
  ASSERT_TRUE(GoBackTo(*Open(), 1, write).has_value());
  auto db = Open();
  ASSERT_TRUE(
      db->Write([](Connection& connection) { return AppendOne(connection, "a"); }).has_value());
  const auto listed = [&](const AuditFilter& filter) {
    std::string text;
    EXPECT_TRUE(db->Read([&](Connection& c) -> Status {
                    RINGFENCE_ASSIGN(const auto rows, ListAudit(c, filter));
                    for (const AuditRow& row : rows) {
                      text += std::to_string(row.seq) + " " + ToText(row.entry) + "\n";
                    }
                    return {};
                  }).has_value());
    return text;
  };
  EXPECT_EQ(listed({"", "", false, 0, 9}), "0 first\n1 second\n2 third\n3 a\n");
  EXPECT_EQ(listed({"lease-1", "", false, 0, 9}), "1 second\n");
  EXPECT_EQ(listed({"", "test.entry", true, 0, 2}), "3 a\n2 third\n");
  EXPECT_EQ(listed({"lease-1", "test.entry", false, 0, 9}), "");
  EXPECT_TRUE(db->Read([&](Connection& connection) -> Status {
                  RINGFENCE_ASSIGN(const auto rows,
                                   connection.Run("SELECT version, least FROM schema_version", {}));
                  EXPECT_EQ(rows.size(), 1U);
                  EXPECT_EQ(IntAt(rows[0], 0), NewestSchema());
                  EXPECT_LE(IntAt(rows[0], 1), NewestSchema());
                  return {};
                }).has_value());
}

TEST_P(DatabaseTest, ANewerDatabaseIsRefusedOnlyWhereItMustBe) {
  auto db = Open();
  const auto set = [&](int version, int least) {
    return db->Write([&](Connection& connection) -> Status {
      RINGFENCE_TRY(connection.Run("UPDATE schema_version SET version = $1, least = $2",
                                   {std::int64_t{version}, std::int64_t{least}}));
      return {};
    });
  };
  // One step on that the programs of today can live with: both work side by side.
  ASSERT_TRUE(set(NewestSchema() + 2, NewestSchema()).has_value());
  auto beside = Open();
  ASSERT_TRUE(beside->Write([](Connection& c) { return AppendOne(c, "a"); }).has_value());
  ASSERT_TRUE(db->Write([](Connection& c) { return AppendOne(c, "b"); }).has_value());
  EXPECT_EQ(Size(*db), 2);
  // A step that they cannot live with.
  ASSERT_TRUE(set(NewestSchema() + 3, NewestSchema() + 1).has_value());
  const auto refused = store::Open(where());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  for (const int number : {NewestSchema(), NewestSchema() + 1, NewestSchema() + 3}) {
    EXPECT_NE(refused.error().message.find("schema " + std::to_string(number)) +
                  refused.error().message.find("up to " + std::to_string(number)) + 1,
              std::string::npos)
        << refused.error().message;
  }
  if (GetParam() == Dialect::kPostgres) {  // a file has one program at a time
    const Status overtaken = db->Write([](Connection& c) { return AppendOne(c, "c"); });
    ASSERT_FALSE(overtaken.has_value()) << "it was open already, and must stop all the same";
    EXPECT_EQ(overtaken.error().code, Code::kFailedPrecondition);
  }
}

TEST_P(DatabaseTest, AProgramThatKnowsLessGoesOnBesideAMigration) {
  auto db = Open();
  ASSERT_TRUE(GoBackTo(*db, 2).has_value());
  const auto as_if_knowing = [&](int known) {
    return db->Write([&](Connection& c) { return Migrate(c, GetParam(), known); });
  };
  ASSERT_TRUE(as_if_knowing(NewestSchema()).has_value());
  const Status older = as_if_knowing(2);
  std::int64_t least = 0;
  ASSERT_TRUE(db->Read([&](Connection& connection) -> Status {
                  RINGFENCE_ASSIGN(const auto rows,
                                   connection.Run("SELECT least FROM schema_version", {}));
                  least = IntAt(rows[0], 0);
                  return {};
                }).has_value());
  EXPECT_EQ(older.has_value(), least <= 2);
}

TEST_P(DatabaseTest, ManyReadersAtOnceSeeWholeCommitsOnly) {
  auto db = Open();
  std::atomic<bool> going = true;
  std::atomic<int> reads = 0;
  std::vector<std::jthread> readers;
  for (int t = 0; t < 20; ++t) {
    readers.emplace_back([&] {
      while (going) {
        const Status read = db->Read([&](Connection& connection) -> Status {
          RINGFENCE_ASSIGN(const std::int64_t first, AuditSize(connection));
          RINGFENCE_ASSIGN(const std::int64_t second, AuditSize(connection));
          EXPECT_EQ(first % 2, 0) << "half a write";
          EXPECT_EQ(first, second) << "a view that moves";
          return {};
        });
        EXPECT_TRUE(read.has_value()) << read.error().message;
        ++reads;
      }
    });
  }
  for (int i = 0; i < 30 || reads < 100; ++i) {
    EXPECT_TRUE(db->Write([](Connection& connection) -> Status {
                    RINGFENCE_TRY(AppendOne(connection, "one"));
                    return AppendOne(connection, "two");
                  }).has_value());
  }
  going = false;
}

TEST_P(DatabaseTest, AFullDiskIsUnavailableAndNothingIsHalfThere) {
  if (GetParam() == Dialect::kPostgres) {
    return;  // its errors, one by one: postgres_test.cc
  }
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

TEST_P(DatabaseTest, ReadersCannotWrite) {
  auto db = Open();
  EXPECT_FALSE(
      db->Read([](Connection& connection) { return AppendOne(connection, "x"); }).has_value());
  EXPECT_EQ(Size(*db), 0);
}

TEST_P(DatabaseTest, WhatIsNoDatabaseIsNotWrittenOver) {
  EXPECT_EQ(store::Open("mysql://somewhere/x").error().code, Code::kInvalidArgument);
  if (GetParam() == Dialect::kPostgres) {
    EXPECT_EQ(store::Open(where() + "-that-is-not-there").error().code, Code::kUnavailable);
    return;
  }
  {
    std::ofstream(path()) << std::string(8192, 'z');
  }
  const auto opened = OpenSqlite(path());
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(std::filesystem::file_size(path()), 8192U);
}

TEST_P(DatabaseTest, RecordsComeBackAsTheyWere) {
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
