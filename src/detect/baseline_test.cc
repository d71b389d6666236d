// Goal: a baseline finds what is out of the ordinary, keeps quiet about what is not, and says why.
// Method: made-up series with known contents; the promises of baseline.h one by one.

#include "detect/baseline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace ringfence::detect {
namespace {

constexpr std::int64_t kStart = 1'790'000'000;  // a Monday at 13:33

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  double Uniform(double least, double most) {
    return least + (most - least) * static_cast<double>(random_() >> 11U) * 0x1p-53;
  }
  double Bell() {  // near enough to normal
    double sum = 0;
    for (int i = 0; i < 12; ++i) {
      sum += Uniform(-0.5, 0.5);
    }
    return sum;
  }

 private:
  std::mt19937_64 random_;
};

struct Alarm {
  std::size_t row;
  std::string why;
  Sign sign;
};
std::vector<Alarm> Alarms(Baseline& baseline, std::size_t rows, std::int64_t step,
                          const std::function<double(std::size_t)>& value) {
  std::vector<Alarm> alarms;
  for (std::size_t row = 0; row < rows; ++row) {
    const Verdict verdict =
        baseline.Update(kStart + static_cast<std::int64_t>(row) * step, value(row));
    EXPECT_EQ(verdict.alarm, verdict.score >= kAlarmScore) << row;
    EXPECT_GE(verdict.score, 0) << row;
    EXPECT_LE(verdict.score, 1) << row;
    if (verdict.alarm) {
      alarms.push_back({row, Explain(verdict), verdict.sign});
    }
  }
  return alarms;
}

TEST(Baseline, IsSmall) { EXPECT_LE(sizeof(Baseline), 896U); }

TEST(Baseline, KeepsQuietAboutNoise) {
  std::size_t total = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Dice dice(seed);
    Baseline baseline;
    total += Alarms(baseline, 4000, 300, [&](std::size_t) { return 40 + 3 * dice.Bell(); }).size();
  }
  EXPECT_LE(total, 20U);  // one in 4,000 samples, about what the threshold means
}

TEST(Baseline, FindsASpikeAndSaysBothNumbers) {
  Dice dice(3);
  Baseline baseline;
  const auto alarms = Alarms(baseline, 1500, 300, [&](std::size_t row) {
    return row == 1200 ? 95.0 : 10 + 2 * dice.Bell();
  });
  ASSERT_EQ(alarms.size(), 1U);
  EXPECT_EQ(alarms[0].row, 1200U);
  EXPECT_NE(alarms[0].why.find("95, as a rule at most 1"), std::string::npos) << alarms[0].why;
  EXPECT_NE(alarms[0].why.find("x the usual"), std::string::npos) << alarms[0].why;
  EXPECT_NE(alarms[0].why.find("of history"), std::string::npos) << alarms[0].why;
}

TEST(Baseline, FindsALevelThatIsHeldThoughSinglePeaksAreAsHigh) {
  Dice dice(4);
  Baseline baseline;
  // Bursts to 97 are normal here, five in a row are not.
  const auto alarms = Alarms(baseline, 700, 57, [&](std::size_t row) {
    return row >= 600 ? 95.0 : dice.Uniform(0, 1) < 0.25 ? dice.Uniform(20, 97) : 0.0;
  });
  ASSERT_FALSE(alarms.empty());
  EXPECT_GE(alarms.back().row, 600U);
  EXPECT_LE(alarms.back().row, 605U);
  EXPECT_EQ(alarms.back().sign, Sign::kHeldHigh);
}

TEST(Baseline, FindsTheMissingNoon) {
  Dice dice(5);
  Baseline baseline;
  const auto alarms = Alarms(baseline, 288 * 14, 300, [&](std::size_t row) {
    const bool noon = row % 288 >= 96 && row % 288 < 192 && row / 288 != 12;
    return (noon ? 80 : 20) + dice.Bell();
  });
  ASSERT_FALSE(alarms.empty());
  for (const Alarm& alarm : alarms) {  // in the first days every noon is news
    EXPECT_TRUE(alarm.row / 288 < 3 || alarm.row / 288 == 12) << alarm.row << " " << alarm.why;
  }
  EXPECT_EQ(alarms.back().row / 288, 12U);
  EXPECT_EQ(alarms.back().sign, Sign::kLowForHour);
  EXPECT_NE(alarms.back().why.find("below what is usual at this hour"), std::string::npos);
}

TEST(Baseline, KnowsTheWeekend) {
  Dice dice(6);
  Baseline baseline;
  const auto weekend = [](std::size_t row) { return (row / 24) % 7 >= 5; };
  const auto alarms = Alarms(baseline, 24 * 7 * 10, 3600, [&](std::size_t row) {
    const bool working = !weekend(row) || row / 24 == 61;  // a Saturday like a Wednesday
    return (working ? 100.0 : 10.0) + 2 * dice.Bell();
  });
  ASSERT_FALSE(alarms.empty());
  EXPECT_EQ(alarms.back().row / 24, 61U) << alarms.back().why;
  EXPECT_NE(alarms.back().why.find("week"), std::string::npos) << alarms.back().why;
}

TEST(Baseline, OneEpisodeIsOneAlarm) {
  Dice dice(7);
  Baseline baseline;
  const auto alarms = Alarms(
      baseline, 2000, 300, [&](std::size_t row) { return (row >= 1000 ? 60 : 10) + dice.Bell(); });
  ASSERT_EQ(alarms.size(), 1U);
  EXPECT_EQ(alarms[0].row, 1000U);
}

TEST(Baseline, OneOutlierDoesNotHideTheNext) {
  Dice dice(8);
  Baseline baseline;
  const auto alarms = Alarms(baseline, 4000, 300, [&](std::size_t row) {
    return row == 2000 ? 1000.0 : row == 2900 ? 60.0 : 10 + dice.Bell();
  });
  ASSERT_EQ(alarms.size(), 2U);
  EXPECT_EQ(alarms[1].row, 2900U);
}

TEST(Baseline, APauseDoesNotEndAnEpisode) {
  Dice dice(14);
  Baseline baseline;
  const auto alarms = Alarms(baseline, 2000, 300, [&](std::size_t row) {
    return row >= 1500 && row < 1600 && row % 20 == 0 ? 60.0 : 10 + dice.Bell();
  });
  ASSERT_EQ(alarms.size(), 1U);
  EXPECT_EQ(alarms[0].row, 1500U);
}

TEST(Baseline, FindsWhatHasStopped) {
  Dice dice(9);
  Baseline baseline;
  // Levels come and go all the time; that they do so smoothly is new.
  const auto alarms = Alarms(baseline, 2000, 300, [&](std::size_t row) {
    return 50 + 50 * std::sin(static_cast<double>(row) / 60) + (row >= 1500 ? 0 : 8 * dice.Bell());
  });
  ASSERT_FALSE(alarms.empty());
  EXPECT_GE(alarms.back().row, 1500U);
  EXPECT_EQ(alarms.back().sign, Sign::kStill);
}

TEST(Baseline, LearnsBeforeItSpeaks) {
  Baseline baseline;
  for (unsigned row = 0; row < kLearningSamples; ++row) {
    const Verdict verdict = baseline.Update(kStart + row * 60, row % 3 == 0 ? 1e6 : 0);
    EXPECT_TRUE(verdict.learning);
    EXPECT_EQ(Explain(verdict), "learning");
  }
  EXPECT_FALSE(baseline.Update(kStart + 60 * kLearningSamples, 0).learning);
}

TEST(Baseline, BeginsWithWhatPeersKnow) {
  Dice dice(10);
  std::vector<Baseline> peers(4);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    (void)Alarms(peers[i], 1000, 60,
                 [&](std::size_t) { return 20 + static_cast<double>(i) + 2 * dice.Bell(); });
  }
  std::vector<const Baseline*> group;
  for (const Baseline& peer : peers) {
    group.push_back(&peer);
  }
  Baseline fresh = Baseline::FromPeers(group);
  const auto alarms = Alarms(
      fresh, 60, 60, [&](std::size_t row) { return row >= 40 ? 95.0 : 21 + 2 * dice.Bell(); });
  ASSERT_EQ(alarms.size(), 1U);  // though it has had only 40 samples
  EXPECT_EQ(alarms[0].row, 40U);
  EXPECT_NE(alarms[0].why.find("by its peers"), std::string::npos) << alarms[0].why;

  Baseline alone = Baseline::FromPeers({});
  EXPECT_TRUE(alone.Update(kStart, 1).learning);
}

TEST(Baseline, SurvivesWrongClocks) {
  Dice dice(11);
  Baseline baseline;
  std::size_t alarms = 0;
  for (int row = 0; row < 3000; ++row) {
    const std::int64_t time = row % 100 == 99   ? kStart - 100000                  // far back
                              : row % 100 == 50 ? kStart + (row - 1) * 60          // the same again
                              : row >= 2000     ? kStart + 86400 * 400 + row * 60  // a year later
                                                : kStart + row * 60;
    alarms += baseline.Update(time, 10 + dice.Bell()).alarm ? 1 : 0;
  }
  EXPECT_LE(alarms, 1U);
  for (const std::int64_t time : {INT64_MIN / 2, std::int64_t{-1}, INT64_MAX / 2}) {
    Baseline odd;
    for (int row = 0; row < 200; ++row) {
      (void)odd.Update(time + row, row);
    }
  }
}

TEST(Baseline, LargeNumbersKeepTheirDigits) {
  Dice dice(12);
  Baseline baseline;
  const auto alarms = Alarms(baseline, 1500, 60, [&](std::size_t row) {
    return 26'013'335'552.0 + (row == 1200 ? 4e7 : 1e6 * dice.Bell());
  });
  ASSERT_EQ(alarms.size(), 1U);
  EXPECT_EQ(alarms[0].row, 1200U);
}

TEST(Baseline, ExtremesStayFinite) {
  Baseline baseline;
  Dice dice(13);
  for (int row = 0; row < 3000; ++row) {
    const double value = std::pow(10.0, dice.Uniform(-30, 30)) * (row % 2 == 0 ? 1 : -1);
    const Verdict verdict = baseline.Update(kStart + row * 60, value);
    ASSERT_TRUE(std::isfinite(verdict.score)) << row;
    ASSERT_TRUE(verdict.score >= 0 && verdict.score <= 1) << row;
  }
}

}  // namespace
}  // namespace ringfence::detect
