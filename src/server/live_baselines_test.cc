// Goal: events become series of a minute a sample, each alarm once with its explanation; what was
// learned survives; memory is bounded; nothing is learned twice. Method: two weeks of nights and
// days of a GPU's readings with an attack at the end, in one go and with a restart in between; more
// subjects than there is room for.

#include "server/live_baselines.h"

#include <gtest/gtest.h>

namespace ringfence::server {
namespace {

constexpr std::int64_t kMonday = 1'790'553'600'000 / 86'400'000 * 86'400'000;
constexpr std::int64_t kMinute = 60'000;

store::EventRow Reading(std::int64_t number, std::int64_t time_ms, int busy,
                        const std::string& gpu = "GPU-1") {
  store::EventRow row;
  row.seq = number;
  row.time = Timestamp(Milliseconds(time_ms));
  row.class_uid = 99001;
  row.log = "telemetry";
  row.tenant = "acme/research";
  row.node = "n1";
  row.gpus = {gpu};
  row.event = R"({"gpu":{"busy_percent":)" + std::to_string(busy) + R"(,"uuid":")" + gpu + R"("}})";
  return row;
}

// Busy by day, nearly idle by night, never twice the same.
int Usual(std::int64_t minute) {
  const std::int64_t hour = minute / 60 % 24;
  return static_cast<int>((hour >= 8 && hour < 20 ? 60 : 4) + minute * 7919 % 13 - 6 + 2);
}

class LiveBaselinesTest : public testing::Test {
 protected:
  void Feed(LiveBaselines& live, std::int64_t from, std::int64_t to, int busy = -1) {
    for (std::int64_t minute = from; minute < to; ++minute) {
      live.Take(Reading(minute, kMonday + minute * kMinute, busy >= 0 ? busy : Usual(minute)),
                found_);
    }
  }
  std::vector<detect::Match> Of(const std::string& rule) const {
    std::vector<detect::Match> some;
    for (const detect::Match& match : found_) {
      if (match.rule == rule) {
        some.push_back(match);
      }
    }
    return some;
  }
  std::vector<detect::Match> found_;
};

constexpr std::int64_t kDay = 1440;
constexpr std::int64_t kNight = 13 * kDay + 120;  // the fourteenth night, 02:00

TEST_F(LiveBaselinesTest, LoadByNightIsAnAlarmThatSaysWhatIsUsualAlsoAfterARestart) {
  LiveBaselines live;
  Feed(live, 0, kNight);
  found_.clear();
  LiveBaselines restarted;
  restarted.Load(live.TakeChanged());
  EXPECT_EQ(restarted.series(), live.series());
  EXPECT_TRUE(live.TakeChanged().empty());
  Feed(restarted, kNight - 300, kNight);  // seen again: of minutes that are over
  EXPECT_TRUE(found_.empty());
  Feed(restarted, kNight, kNight + 30, 97);
  const auto alarms = Of("baseline/gpu/busy_percent");
  ASSERT_EQ(alarms.size(), 1U) << "one episode, one alarm";
  const std::string& why = alarms[0].description;
  EXPECT_NE(why.find("gpu GPU-1, busy_percent"), std::string::npos) << why;
  EXPECT_NE(why.find("of history"), std::string::npos) << why;
  EXPECT_LT(alarms[0].members.front(), kNight + 5) << "within five minutes";
  EXPECT_EQ(Of("baseline/tenant/busy_percent").size(), 1U);
  EXPECT_EQ(Of("baseline/node/busy_percent").size(), 1U);
}

TEST_F(LiveBaselinesTest, AMinuteIsClosedByTheClockToo) {
  LiveBaselines live;
  Feed(live, 0, kNight);
  found_.clear();
  for (int i = 0; i < 10 && found_.empty(); ++i) {
    Feed(live, kNight + i, kNight + i + 1, 97);
    live.Tick(Timestamp(Milliseconds(kMonday + (kNight + i + 2) * kMinute)), found_);
  }
  EXPECT_FALSE(Of("baseline/gpu/busy_percent").empty());
}

TEST_F(LiveBaselinesTest, ASeriesThatBeginsIsJudgedByItsPeers) {
  LiveBaselines live;
  Feed(live, 0, kNight);
  found_.clear();
  for (std::int64_t minute = kNight; minute < kNight + 30; ++minute) {
    live.Take(Reading(minute, kMonday + minute * kMinute, 97, "GPU-new"), found_);
  }
  const auto alarms = Of("baseline/gpu/busy_percent");
  ASSERT_FALSE(alarms.empty());
  EXPECT_NE(alarms[0].description.find("measured by its peers"), std::string::npos)
      << alarms[0].description;
}

TEST_F(LiveBaselinesTest, DenialsAreCountedByTheMinute) {
  LiveBaselines live;
  store::EventRow row;
  row.log = "api";
  row.class_uid = 6003;
  row.tenant = "acme";
  row.principal = "mallory";
  row.event = R"({"decision":"deny"})";
  const auto deny = [&](std::int64_t minute, int times) {
    for (int i = 0; i < times; ++i) {
      row.time = Timestamp(Milliseconds(kMonday + minute * kMinute));
      live.Take(row, found_);
    }
  };
  for (std::int64_t minute = 0; minute < 3 * kDay; minute += 37) {
    deny(minute, 1 + static_cast<int>(minute % 2));
  }
  found_.clear();
  deny(3 * kDay + 5, 200);
  live.Tick(Timestamp(Milliseconds(kMonday + (3 * kDay + 8) * kMinute)), found_);
  ASSERT_EQ(Of("baseline/principal/denied").size(), 1U);
  EXPECT_NE(Of("baseline/principal/denied")[0].description.find("200"), std::string::npos);
}

TEST_F(LiveBaselinesTest, SeriesAreBoundedAndWhatIsBeyondIsCounted) {
  LiveBaselines live;
  for (std::size_t i = 0; i < LiveBaselines::kSeriesMax + 10; ++i) {
    live.Take(Reading(1, kMonday, 5, "GPU-" + std::to_string(i)), found_);
  }
  EXPECT_EQ(live.series(), LiveBaselines::kSeriesMax);
  EXPECT_GT(live.unwatched(), 0U);
}

TEST_F(LiveBaselinesTest, AStateOfAnotherLayoutIsPassedOver) {
  LiveBaselines live;
  Feed(live, 0, 200);
  auto rows = live.TakeChanged();
  ASSERT_FALSE(rows.empty());
  rows[0].state[0] ^= std::byte{1};
  rows.push_back({"gpu/busy_percent/x", {}, Bytes(5)});
  rows.push_back({"nonsense", {}, rows[1].state});
  LiveBaselines other;
  other.Load(rows);
  EXPECT_EQ(other.series(), live.series() - 1);
}

}  // namespace
}  // namespace ringfence::server
