// Goal: what jobs print is kept once and in order, however often it is sent; it is bounded and
// forgotten in time; servers that share a database agree on keys, policy and pulses.
// Method: repeated and overlapping deliveries, gaps, more than the limit, on a database in a file.

#include "store/output_records.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "crypto/random.h"
#include "model/lease.h"
#include "store/records.h"
#include "store/shared_records.h"

namespace ringfence::store {
namespace {

constexpr Timestamp kNow{Milliseconds(1'000'000)};

class OutputTest : public testing::Test {
 protected:
  OutputTest()
      : path_(std::filesystem::temp_directory_path() /
              ("ringfence-output-" + crypto::RandomId("t"))) {
    database_ = OpenSqlite(path_).value();
  }
  ~OutputTest() override {
    database_.reset();
    for (const char* const end : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path_.string() + end);
    }
  }

  Status Append(std::int64_t first, const std::vector<OutputChunk>& chunks, Timestamp now = kNow) {
    return database_->Write(
        [&](Connection& db) { return AppendOutput(db, "l", first, chunks, now); });
  }

  std::string Text(std::int64_t* dropped = nullptr) {
    std::string text;
    OutputPage page;
    do {
      EXPECT_TRUE(database_
                      ->Read([&](Connection& db) -> Status {
                        RINGFENCE_ASSIGN(page, ReadOutput(db, "l", page.next));
                        return {};
                      })
                      .has_value());
      for (const OutputChunk& chunk : page.chunks) {
        text += (chunk.is_error ? "E" : "O") + ToText(chunk.data);
      }
    } while (!page.at_end);
    if (dropped != nullptr) {
      *dropped = page.dropped;
    }
    return text;
  }

  std::filesystem::path path_;
  std::unique_ptr<Database> database_;
};

TEST_F(OutputTest, RepeatedDeliveriesAreKeptOnceAndGapsAreRefused) {
  EXPECT_TRUE(Append(1, {{false, ToBytes("a")}, {true, ToBytes("b")}}).has_value());
  EXPECT_TRUE(Append(1, {{false, ToBytes("a")}}).has_value());
  EXPECT_TRUE(Append(2, {{true, ToBytes("b")}, {false, ToBytes("c")}}).has_value());
  EXPECT_EQ(Append(5, {{false, ToBytes("e")}}).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(Text(), "OaEbOc");
}

TEST_F(OutputTest, ManyPagesGiveEverythingAndTheLimitIsCounted) {
  std::string expected;
  for (std::int64_t i = 1; i <= 2000; i += 100) {
    std::vector<OutputChunk> chunks;
    for (std::int64_t k = i; k < i + 100; ++k) {
      chunks.push_back({false, ToBytes(std::to_string(k))});
      expected += "O" + std::to_string(k);
    }
    ASSERT_TRUE(Append(i, chunks).has_value());
  }
  EXPECT_EQ(Text(), expected);
  const Bytes large(kOutputChunkBytesMax, std::byte{'x'});
  const std::int64_t fit =
      kOutputBytesMax / static_cast<std::int64_t>(kOutputChunkBytesMax);  // one too many
  std::int64_t next = 2001;
  for (std::int64_t i = 0; i < fit; i += 16, next += 16) {
    ASSERT_TRUE(Append(next, std::vector<OutputChunk>(16, {true, large})).has_value());
  }
  std::int64_t dropped = 0;
  const std::string text = Text(&dropped);
  EXPECT_EQ(dropped, static_cast<std::int64_t>(kOutputChunkBytesMax));
  EXPECT_LE(static_cast<std::int64_t>(text.size()), kOutputBytesMax + 2000 + fit);
  EXPECT_EQ(Append(next, {{false, Bytes(kOutputChunkBytesMax + 1)}}).error().code,
            Code::kInvalidArgument);
}

TEST_F(OutputTest, OutputOfClosedLeasesIsForgottenAndThatOfOpenOnesIsNot) {
  ASSERT_TRUE(Append(1, {{false, ToBytes("a")}}).has_value());
  model::Lease lease;
  lease.id = "l";
  lease.state = model::LeaseState::kActive;
  ASSERT_TRUE(database_->Write([&](Connection& db) { return InsertLease(db, lease); }).has_value());
  const auto forget = [&](Timestamp before) {
    EXPECT_TRUE(database_
                    ->Write([&](Connection& db) -> Status {
                      RINGFENCE_TRY(ForgetOutput(db, before));
                      return {};
                    })
                    .has_value());
  };
  forget(kNow + Milliseconds(1));
  EXPECT_EQ(Text(), "Oa") << "its lease is open";
  lease.state = model::LeaseState::kClosed;
  ASSERT_TRUE(database_->Write([&](Connection& db) { return UpdateLease(db, lease); }).has_value());
  forget(kNow);
  EXPECT_EQ(Text(), "Oa") << "not old enough";
  forget(kNow + Milliseconds(1));
  EXPECT_EQ(Text(), "");
}

TEST_F(OutputTest, FactsAreSettledOncePoliciesFollowEachOtherAndTheLaterPulseStays) {
  ASSERT_TRUE(
      database_
          ->Write([&](Connection& db) -> Status {
            EXPECT_EQ(SettleFact(db, "keys", "one").value(), "one");
            EXPECT_EQ(SettleFact(db, "keys", "two").value(), "one");
            EXPECT_EQ(NewestPolicy(db).value(), std::nullopt);
            RINGFENCE_TRY(PutPolicy(db, {"d1", {{"a.yaml", "x: \"ü\"\n"}, {"b.yaml", ""}}}));
            RINGFENCE_TRY(PutPolicy(db, {"d2", {{"a.yaml", "y"}}}));
            EXPECT_EQ(NewestPolicy(db).value(), "d2");
            RINGFENCE_TRY(PutPolicy(db, {"d1", {{"a.yaml", "x: \"ü\"\n"}, {"b.yaml", ""}}}));
            EXPECT_EQ(NewestPolicy(db).value(), "d1");
            EXPECT_EQ(GetPolicy(db, "d1").value().files.at("a.yaml"), "x: \"ü\"\n");
            EXPECT_EQ(GetPolicy(db, "d3").error().code, Code::kNotFound);
            RINGFENCE_TRY(PutPulse(db, "n", {kNow, 7}));
            RINGFENCE_TRY(PutPulse(db, "n", {kNow - Milliseconds(1), 9}));
            EXPECT_EQ(ListPulses(db).value().at("n").witnessed, 7U);
            RINGFENCE_TRY(PutPulse(db, "n", {kNow + Milliseconds(1), 3}));
            EXPECT_EQ(ListPulses(db).value().at("n").witnessed, 3U);
            return {};
          })
          .has_value());
}

}  // namespace
}  // namespace ringfence::store
