// Goal: the tables as data are the tables of the schema, all of them; copying loses nothing.
// Method: compared with what SQLite itself says of a fresh database; more rows than a page copied
// from one database into another.

#include "store/tables.h"

#include <gtest/gtest.h>

#include <set>

#include "os/self.h"

namespace ringfence::store {
namespace {

class TablesTest : public testing::Test {
 protected:
  std::unique_ptr<Database> Open(const std::string& name) {
    return OpenSqlite(folder_.path() + "/" + name).value();
  }
  os::TempFolder folder_ = os::TempFolder::Create("ringfence-store-tables").value();
};

TEST_F(TablesTest, AreThoseOfTheSchema) {
  const auto database = Open("a.db");
  const Status read = database->Read([](Connection& db) -> Status {
    RINGFENCE_ASSIGN(const auto tables,
                     db.Run("SELECT name FROM sqlite_master WHERE type = 'table'", {}));
    std::set<std::string> names;
    for (const Row& row : tables) {
      names.insert(TextAt(row, 0));
    }
    std::set<std::string> known;
    for (const TableSpec& table : AllTables()) {
      known.insert(std::string(table.name));
      RINGFENCE_ASSIGN(const auto columns, db.Run("SELECT name, pk FROM pragma_table_info('" +
                                                      std::string(table.name) + "') ORDER BY cid",
                                                  {}));
      std::set<std::string> real;
      std::size_t keys = 0;
      for (const Row& row : columns) {
        real.insert(TextAt(row, 0));
        keys += IntAt(row, 1) > 0 ? 1 : 0;
      }
      EXPECT_EQ(real, std::set<std::string>(table.columns.begin(), table.columns.end()))
          << table.name;
      EXPECT_EQ(keys, table.key.size()) << table.name;
      EXPECT_TRUE(std::equal(table.key.begin(), table.key.end(), table.columns.begin()))
          << table.name << ": the key's columns come first";
    }
    EXPECT_EQ(names, known) << "a new table must be in AllTables, and be copied or not on purpose";
    return {};
  });
  ASSERT_TRUE(read.has_value()) << read.error().message;
}

TEST_F(TablesTest, RowsAreCopiedPageAfterPage) {
  const auto from = Open("from.db");
  const auto to = Open("to.db");
  const TableSpec& table = *FindTable("idempotency");
  constexpr int kPrincipals = 15;
  constexpr int kKeys = 15;  // 225 rows: more than three pages, whose ends fall inside a principal
  ASSERT_TRUE(
      from->Write([&](Connection& db) -> Status {
            for (int i = 0; i < kPrincipals * kKeys; ++i) {
              RINGFENCE_TRY(InsertRow(
                  db, table, table.columns,
                  {"p" + std::to_string(i % kPrincipals), "k" + std::to_string(i), std::string("d"),
                   std::int64_t{i}, std::string("\0b", 2), std::int64_t{1} << 60}));
            }
            return {};
          })
          .has_value());
  std::vector<Row> seen;
  ASSERT_TRUE(from->Read([&](Connection& db) {
                    return ForEachRow(db, table, [&](const Row& row) -> Status {
                      seen.push_back(row);
                      return {};
                    });
                  })
                  .has_value());
  ASSERT_EQ(seen.size(), static_cast<std::size_t>(kPrincipals * kKeys));
  ASSERT_TRUE(to->Write([&](Connection& db) -> Status {
                  EXPECT_TRUE(IsEmpty(db, table).value());
                  for (const Row& row : seen) {
                    RINGFENCE_TRY(InsertRow(db, table, table.columns, row));
                  }
                  EXPECT_FALSE(IsEmpty(db, table).value());
                  return {};
                }).has_value());
  std::vector<Row> copied;
  ASSERT_TRUE(to->Read([&](Connection& db) {
                  return ForEachRow(db, table, [&](const Row& row) -> Status {
                    copied.push_back(row);
                    return {};
                  });
                }).has_value());
  EXPECT_EQ(copied, seen);
}

TEST_F(TablesTest, AVisitorsErrorEndsIt) {
  const auto database = Open("a.db");
  ASSERT_TRUE(database
                  ->Write([](Connection& db) {
                    return InsertRow(db, *FindTable("nodes"), {"name", "record"},
                                     {std::string("n"), std::string("{}")});
                  })
                  .has_value());
  const Status read = database->Read([](Connection& db) {
    return ForEachRow(db, *FindTable("nodes"),
                      [](const Row&) -> Status { return Error{Code::kUnavailable, "full"}; });
  });
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().message, "full");
}

}  // namespace
}  // namespace ringfence::store
