// Goal: events that come together are stored as one row and come back one by one, numbered, found
// by every filter as if each had a row of its own, and forgotten in time; a damaged block is told
// of, never read wrongly. Method: the same events as single rows and as blocks, every filter on
// both; every byte of a block damaged, and cut everywhere; on a file and on PostgreSQL.

#include "store/event_block.h"

#include <gtest/gtest.h>

#include "os/self.h"
#include "store/event_records.h"
#include "store/harness_test.h"

namespace ringfence::store {
namespace {

EventRow Made(int i) {
  EventRow row;
  row.time = Timestamp(Milliseconds(1'000'000 + i * 1000));
  row.class_uid = i % 2 == 0 ? 99001 : 99003;
  row.log = i % 2 == 0 ? "telemetry" : "driver";
  row.tenant = i % 3 == 0   ? "acme/research"
               : i % 3 == 1 ? "acme/research/vision"
                            : "acme/researchers";
  row.lease = i % 5 == 0 ? "" : "lease-" + std::to_string(i % 5);
  row.node = "node-" + std::to_string(i / 100);
  row.principal = i % 7 == 0 ? "alice" : "bob";
  row.gpus = {"GPU-" + std::to_string(i % 4), "GPU_x%" + std::to_string(i % 2)};
  row.event = R"({"message":"a \"sequence\":0 in \u0000 text )" + std::to_string(i) +
              R"(","metadata":{"log_name":"x","sequence":0,"uid":"u"}})";
  return row;
}

std::vector<EventRow> Many(int from, int to) {
  std::vector<EventRow> rows;
  for (int i = from; i < to; ++i) {
    rows.push_back(Made(i));
  }
  return rows;
}

class EventBlockTest : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Database> New(const std::string& name) {
    auto database = Open(GetParam() ? NewPostgresDatabase() : folder_.path() + "/" + name).value();
    Write(*database, [](Connection& db) -> Status {
      RINGFENCE_TRY(SettleDetection(db));
      return {};
    });
    return database;
  }
  static void Write(Database& database, const std::function<Status(Connection&)>& work) {
    const Status done = database.Write(work);
    ASSERT_TRUE(done.has_value()) << done.error().message;
  }
  static void Add(Database& database, std::vector<EventRow> rows) {
    const EventBatch batch(std::move(rows));
    Write(database, [&](Connection& db) -> Status {
      RINGFENCE_ASSIGN(Detection detection, GetDetection(db));
      RINGFENCE_TRY(InsertEvents(db, detection, batch));
      return PutDetection(db, detection);
    });
  }
  static std::string Listed(Database& database, const EventFilter& filter) {
    std::string text;
    const Status read = database.Read([&](Connection& db) -> Status {
      text.clear();
      RINGFENCE_ASSIGN(const auto rows, ListEvents(db, filter));
      for (const EventRow& row : rows) {
        text += std::to_string(row.seq) + " " + row.log + " " + row.tenant + " " + row.lease + " " +
                row.node + " " + row.principal + Spaced(row.gpus) + row.event + "\n";
      }
      return {};
    });
    EXPECT_TRUE(read.has_value()) << read.error().message;
    return text;
  }
  os::TempFolder folder_ = os::TempFolder::Create("ringfence-event-block").value();
};

TEST_P(EventBlockTest, AreFoundAsIfEachHadARowOfItsOwn) {
  const auto single = New("single.db");
  const auto packed = New("packed.db");
  for (int i = 0; i < 300; ++i) {
    Add(*single, {Made(i)});
  }
  Add(*packed, Many(0, 100));
  Add(*packed, {Made(100)});
  Add(*packed, {Made(101)});
  Add(*packed, Many(102, 200));
  Add(*packed, Many(200, 203));
  Add(*packed, Many(203, 300));
  std::vector<EventFilter> filters(1);
  const auto vary = [&](const std::function<void(EventFilter&)>& change) {
    filters.emplace_back();
    change(filters.back());
  };
  for (const std::int64_t from : {0, 1, 57, 99, 100, 101, 102, 199, 201, 299, 300}) {
    vary([&](EventFilter& filter) { filter.from = from; });
  }
  vary([](EventFilter& filter) { filter.since = Timestamp(Milliseconds(1'090'000)); });
  vary([](EventFilter& filter) { filter.until = Timestamp(Milliseconds(1'150'500)); });
  vary([](EventFilter& filter) { filter.class_uid = 99003; });
  vary([](EventFilter& filter) { filter.log = "driver"; });
  vary([](EventFilter& filter) { filter.tenant = "acme/research"; });
  vary([](EventFilter& filter) { filter.lease = "lease-3"; });
  vary([](EventFilter& filter) { filter.node = "node-1"; });
  vary([](EventFilter& filter) { filter.gpu = "GPU_x%1"; });
  vary([](EventFilter& filter) { filter.gpu = "GPUxx%1"; });
  vary([](EventFilter& filter) { filter.principal = "alice"; });
  for (EventFilter filter : filters) {
    for (const bool down : {false, true}) {
      for (const std::int64_t limit : {1, 3, 100, 1000}) {
        filter.newest_first = down;
        filter.limit = limit;
        const std::string expected = Listed(*single, filter);
        EXPECT_EQ(Listed(*packed, filter), expected) << filter.from << " " << down << " " << limit;
      }
    }
  }
  EventFilter all;
  all.limit = 1000;
  EXPECT_NE(Listed(*packed, all).find(R"("sequence":299,)"), std::string::npos);
}

TEST_P(EventBlockTest, AreFoundByNumberAndForgottenInTime) {
  const auto database = New("a.db");
  Add(*database, Many(0, 100));
  Add(*database, {Made(100)});
  Add(*database, Many(101, 2200));
  const auto numbered = [&](const std::vector<std::int64_t>& numbers) {
    std::vector<std::int64_t> found;
    const Status read = database->Read([&](Connection& db) -> Status {
      found.clear();
      RINGFENCE_ASSIGN(const auto rows, EventsNumbered(db, numbers));
      for (const EventRow& row : rows) {
        found.push_back(row.seq);
        EXPECT_NE(row.event.find("text " + std::to_string(row.seq) + "\""), std::string::npos);
      }
      return {};
    });
    EXPECT_TRUE(read.has_value());
    return found;
  };
  EXPECT_EQ(numbered({2199, 5, 100, 101, 1124, 1125, 7, 9999}),
            (std::vector<std::int64_t>{5, 7, 100, 101, 1124, 1125, 2199}));
  const auto forget = [&](const EventLimits& limits) {
    Write(*database, [&](Connection& db) -> Status {
      RINGFENCE_TRY(ForgetEvents(db, limits));
      return {};
    });
  };
  const EventLimits old{Timestamp(Milliseconds(1'100'500)), INT64_MAX};
  forget(old);
  EXPECT_EQ(numbered({0}).size(), 1U) << "no rule has seen it";
  Write(*database, [](Connection& db) -> Status {
    RINGFENCE_ASSIGN(Detection detection, GetDetection(db));
    detection.evaluated = 2000;
    return PutDetection(db, detection);
  });
  forget(old);
  EXPECT_EQ(numbered({0, 99, 100, 101}), (std::vector<std::int64_t>{101}));
  forget({Timestamp(Milliseconds(0)), 0});
  EXPECT_EQ(numbered({101, 1124, 1125, 2199}), (std::vector<std::int64_t>{1125, 2199}))
      << "of a block that rules have only begun with, all stays";
}

INSTANTIATE_TEST_SUITE_P(Everywhere, EventBlockTest, testing::Bool(),
                         [](const auto& one) { return one.param ? "Postgres" : "Sqlite"; });

TEST(EventBlock, DamageIsToldOf) {
  const Bytes block = PackEvents(Many(0, 20));
  ASSERT_EQ(UnpackEvents(block, 7).value().size(), 20U);
  EXPECT_EQ(UnpackEvents(block, 7).value()[3].seq, 10);
  for (std::size_t end = 0; end < block.size(); ++end) {
    EXPECT_FALSE(UnpackEvents(ByteView(block).first(end), 0).has_value()) << end;
  }
  for (std::size_t i = 0; i < block.size(); ++i) {
    Bytes damaged = block;
    damaged[i] ^= std::byte{0x55};
    const auto rows = UnpackEvents(damaged, 0);
    EXPECT_FALSE(rows.has_value()) << i << ": a frame has a checksum of its content";
  }
}

TEST(EventBlock, IsMuchSmallerThanItsEvents) {
  const auto rows = Many(0, 1000);
  std::size_t bytes = 0;
  for (const EventRow& row : rows) {
    bytes += row.event.size();
  }
  EXPECT_LT(PackEvents(rows).size() * 4, bytes);
}

}  // namespace
}  // namespace ringfence::store
