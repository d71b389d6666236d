// Goal: series are read as they are written; what is wrong is set aside with its line.
// Method: texts, good and bad.

#include "detect/series.h"

#include <gtest/gtest.h>

namespace ringfence::detect {
namespace {

TEST(Series, ReadsOne) {
  const auto file =
      ParseSeries("timestamp,value\n2014-04-01 00:00:00,20.5\r\n2014-04-01 00:05:00,-1e3\n");
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(file->series.size(), 1U);
  const auto& samples = file->series[0].samples;
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].time, "2014-04-01 00:00:00");
  EXPECT_EQ(samples[0].time_s, 1396310400);
  EXPECT_EQ(samples[1].time_s, 1396310700);
  EXPECT_EQ(samples[1].value, -1000);
  EXPECT_EQ(file->bad_count, 0U);
}

TEST(Series, ReadsSeveralByName) {
  const auto file = ParseSeries("timestamp_s,pod,load\n10,a,1\n10,b,2\n20,a,3\n");
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(file->series.size(), 2U);
  EXPECT_EQ(file->series[0].name, "a");
  EXPECT_EQ(file->series[0].samples.size(), 2U);
  EXPECT_EQ(file->series[1].samples[0].value, 2);
}

TEST(Series, FindsItsColumnsByName) {
  const auto file = ParseSeries("value,timestamp\n7,100\n8,160\n");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->series[0].samples[1].value, 8);
  EXPECT_EQ(file->series[0].samples[1].time_s, 160);
}

TEST(Series, DoesWithoutHeader) {
  const auto file = ParseSeries("100,1\n160,2\n");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->rows, 2U);
}

TEST(Series, Times) {
  EXPECT_EQ(*ParseSeriesTime("2014-04-01T00:00:00Z"), 1396310400);
  EXPECT_EQ(*ParseSeriesTime("2014-04-01 00:00:00.000000"), 1396310400);
  EXPECT_EQ(*ParseSeriesTime("2014-04-01 00:00"), 1396310400);
  EXPECT_EQ(*ParseSeriesTime("1396310400"), 1396310400);
  EXPECT_EQ(*ParseSeriesTime("1396310400.75"), 1396310400);
  EXPECT_EQ(*ParseSeriesTime("1396310400123"), 1396310400);  // milliseconds
  for (const char* bad :
       {"", "x", "2014-13-01 00:00:00", "2014-02-30 00:00:00", "-5", "1e40", "2014-04-01 24:00:00",
        "2014-04-01 00:00:00+02:00", "nan", "inf", "2014-04-01 -1:00:00"}) {
    EXPECT_FALSE(ParseSeriesTime(bad).has_value()) << bad;
  }
}

TEST(Series, SetsAsideWhatCannotBeRead) {
  const auto file = ParseSeries(
      "timestamp,value\n100,1\n160,nan\n220,inf\n280,\n340,1,2\n400,twelve\nyesterday,1\n460,2\n");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->rows, 2U);
  EXPECT_EQ(file->bad_count, 6U);
  ASSERT_EQ(file->bad.size(), 6U);
  EXPECT_EQ(file->bad[0].line, 3U);
  EXPECT_NE(file->bad[0].what.find("not a finite number"), std::string::npos);
  EXPECT_NE(file->bad[3].what.find("3 fields"), std::string::npos);
  EXPECT_EQ(file->bad[5].line, 8U);
}

TEST(Series, CountsTimesThatGoBack) {
  const auto file = ParseSeries("100,1\n160,1\n160,1\n40,1\n50,1\n");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->backwards, 2U);
}

TEST(Series, RefusesWhatHoldsNothing) {
  for (const std::string& bad :
       {std::string(), std::string("timestamp,value\n"), std::string("a\nb\n"),
        std::string(200'000, 'x'), std::string("\0\0\0\n\0,\0\n", 8)}) {
    const auto file = ParseSeries(bad);
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code, Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace ringfence::detect
