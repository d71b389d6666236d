// Goal: the score is the benchmark's.
// Method: cases small enough to be worked out by hand; real series of the benchmark.

#include "detect/nab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "detect/baseline.h"
#include "detect/series.h"
#include "os/file.h"

namespace ringfence::detect {
namespace {

double Sigmoid(double x) { return 2 / (1 + std::exp(5 * x)) - 1; }

// 100 rows; 15 are learning time; the window is 50 to 59.
NabSeries Quiet() { return {"a.csv", std::vector<float>(100, 0.1F), {{50, 59}}}; }

TEST(Nab, NothingIsZeroAndEverythingEarlyIsAHundred) {
  NabSeries series = Quiet();
  EXPECT_EQ(ScoreNab({series}, {}, 0.5).score, 0);
  series.scores[50] = 1;
  const NabScore perfect = ScoreNab({series}, {}, 0.5);
  EXPECT_NEAR(perfect.score, 100, 1e-9);
  EXPECT_NEAR(perfect.fixed_score, 100, 1e-9);
  EXPECT_EQ(perfect.threshold, 1.0);
}

TEST(Nab, LaterIsWorthLess) {
  NabSeries series = Quiet();
  series.scores[55] = 1;
  series.scores[57] = 1;  // only the first counts
  const double worth = Sigmoid(-5.0 / 10) / Sigmoid(-1);
  EXPECT_NEAR(ScoreNab({series}, {}, 0.5).score, 100 * (worth + 1) / 2, 1e-9);
}

TEST(Nab, FalseAlarmsCost) {
  NabSeries series = Quiet();
  series.scores[50] = 1;
  series.scores[30] = 1;  // before any window
  series.scores[61] = 1;  // right after one
  series.scores[5] = 1;   // while learning: free
  const double raw = 1 - 0.11 + 0.11 * Sigmoid(2.0 / 9);
  EXPECT_NEAR(ScoreNab({series}, {}, 0.5).fixed_score, 100 * (raw + 1) / 2, 1e-9);
  const auto counts = CountNab({series}, 0.5);
  EXPECT_EQ(counts[0].found, 1U);
  EXPECT_EQ(counts[0].false_alarms, 2U);
}

TEST(Nab, OneThresholdServesTheWholeCorpus) {
  NabSeries good = Quiet();
  good.scores[50] = 0.9F;
  NabSeries noisy = Quiet();
  std::fill(noisy.scores.begin() + 20, noisy.scores.begin() + 49, 0.6F);
  noisy.scores[50] = 0.55F;  // to find it costs 29 false alarms
  const NabScore score = ScoreNab({good, noisy}, {}, 0.5);
  EXPECT_NEAR(score.threshold, 0.9, 1e-6);
  EXPECT_NEAR(score.score, 50, 1e-9);
  EXPECT_LT(score.fixed_score, score.score);
}

TEST(Nab, ProbationIsCapped) {
  EXPECT_EQ(NabProbation(100), 15U);
  EXPECT_EQ(NabProbation(4032), 604U);
  EXPECT_EQ(NabProbation(22695), 750U);
}

TEST(Nab, RefusesWhatAreNoLabels) {
  for (const char* bad :
       {"[]", R"({"a": 1})", R"({"a": [["x","y"]]})", R"({"a": [["2014-01-01 00:00:00"]]})",
        R"({"a": [["2014-01-02 00:00:00","2014-01-01 00:00:00"]]})"}) {
    EXPECT_FALSE(ParseNabWindows(*ParseJson(bad, 1000)).has_value()) << bad;
  }
  for (const char* bad : {"[]", R"({"a": 1})", R"({"a": {"CostMatrix": {"tpWeight": 1}}})"}) {
    EXPECT_FALSE(ParseNabProfiles(*ParseJson(bad, 1000)).has_value()) << bad;
  }
}

// Two days that went wrong are found, and nothing else; a series with no anomaly has no alarm.
TEST(Nab, RealSeries) {
  const std::string folder = std::string(RINGFENCE_SOURCE_DIR) + "/tests/vectors/nab/";
  const auto text = os::ReadText(folder + "windows.json", 100'000);
  ASSERT_TRUE(text.has_value());
  const auto labels = ParseNabWindows(*ParseJson(*text, 100'000));
  ASSERT_TRUE(labels.has_value());
  ASSERT_EQ(labels->size(), 3U);
  for (const NabLabels& label : *labels) {
    const auto file = ReadSeries(folder + label.file);
    ASSERT_TRUE(file.has_value()) << label.file;
    ASSERT_EQ(file->rows, 4032U);
    Baseline baseline;
    std::size_t inside = 0;
    std::size_t outside = 0;
    std::size_t row = 0;
    for (const Sample& sample : file->series[0].samples) {
      const bool alarm = baseline.Update(sample.time_s, sample.value).alarm;
      if (row++ < NabProbation(file->rows) || !alarm) {
        continue;
      }
      const bool found =
          std::any_of(label.windows.begin(), label.windows.end(), [&](const auto& window) {
            return sample.time_s >= window.first && sample.time_s <= window.second;
          });
      ++(found ? inside : outside);
    }
    EXPECT_EQ(inside > 0, !label.windows.empty()) << label.file;
    EXPECT_LE(outside, 1U) << label.file;
  }
}

}  // namespace
}  // namespace ringfence::detect
