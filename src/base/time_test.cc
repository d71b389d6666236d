// Goal: times and durations are read strictly and written in one form; secrets compare and move as
// promised; each error code has its place in the table.
// Method: tables of good and bad text, every cut, random times both ways.

#include "base/time.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/code.h"
#include "base/secret.h"

namespace ringfence {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(TimeTest, KnownTimes) {
  EXPECT_EQ(FormatTime(Timestamp()), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(ParseTime("2026-11-15T08:46:30Z").value().time_since_epoch(),
            Milliseconds(1794732390000));
  EXPECT_EQ(FormatTime(ParseTime("2024-02-29T23:59:59.5Z").value()), "2024-02-29T23:59:59.500Z");
  EXPECT_EQ(FormatTime(ParseTime("9999-12-31T23:59:59.999Z").value()), "9999-12-31T23:59:59.999Z");
}

TEST(TimeTest, RandomTimesRoundTripAndSortAsText) {
  std::mt19937_64 random(7);
  const std::int64_t most =
      ParseTime("9999-12-31T23:59:59.999Z").value().time_since_epoch().count();
  Timestamp before{};
  for (int i = 0; i < 20000; ++i) {
    const Timestamp time(Milliseconds(static_cast<std::int64_t>(random() >> 1U) % (most + 1)));
    const std::string text = FormatTime(time);
    EXPECT_EQ(ParseTime(text).value(), time) << text;
    EXPECT_EQ(FormatTime(before) < text, before < time);
    before = time;
  }
}

TEST(TimeTest, AnythingElseIsRefused) {
  const std::string good = "2026-11-15T08:46:30.123Z";
  for (std::size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(ParseTime(good.substr(0, i)).has_value()) << i;
    std::string changed = good;
    changed[i] = 'x';
    EXPECT_FALSE(ParseTime(changed).has_value()) << i;
  }
  for (const char* text :
       {"2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2025-02-29T00:00:00Z",
        "1969-12-31T23:59:59Z", "2026-11-15T24:00:00Z", "2026-11-15T08:60:00Z",
        "2026-11-15T08:46:60Z", "2026-11-15T08:46:30.Z", "2026-11-15T08:46:30.1234Z",
        "2026-11-15T08:46:30+00:00", "2026-11-15 08:46:30Z", "2026-11-15T08:46:30z",
        " 2026-11-15T08:46:30Z", "2026-11-15T08:46:30ZZ", "2026-11-15T08:46:30.-1Z"}) {
    const auto time = ParseTime(text);
    ASSERT_FALSE(time.has_value()) << text;
    EXPECT_FALSE(time.error().hint.empty());
  }
}

TEST(DurationTest, ReadsAndWrites) {
  const std::pair<const char*, Milliseconds> cases[] = {
      {"90s", seconds(90)},  {"15m", minutes(15)},           {"2h", hours(2)},
      {"7d", hours(7 * 24)}, {"1h30m", minutes(90)},         {"250ms", Milliseconds(250)},
      {"0s", seconds(0)},    {"1m5ms", Milliseconds(60005)}, {"3660d", hours(24 * 3660)}};
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(ParseDuration(text).value(), expected) << text;
  }
  for (const char* text : {"", "5", "s", "-5s", "1.5h", "1h 30m", "5x", "3661d", "9999999999999ms",
                           "999999999999d", "3660d1ms", "1hm", "h1"}) {
    EXPECT_FALSE(ParseDuration(text).has_value()) << text;
  }
  EXPECT_EQ(FormatDuration(minutes(90)), "1h30m");
  EXPECT_EQ(FormatDuration(Milliseconds(0)), "0ms");
  EXPECT_EQ(FormatDuration(seconds(-90)), "-1m30s");
  EXPECT_EQ(FormatDuration(hours(24 * 8) + seconds(1)), "8d1s");
}

TEST(SecretTest, ComparesByContentAndLeavesNothingBehindWhenMoved) {
  SecretBytes secret(ToBytes("password"));
  EXPECT_TRUE(secret.Equals(AsBytes("password")));
  for (const char* other : {"", "passwor", "password1", "Password", "passworD"}) {
    EXPECT_FALSE(secret.Equals(AsBytes(other))) << other;
  }
  SecretBytes moved(std::move(secret));
  EXPECT_TRUE(moved.Equals(AsBytes("password")));
  EXPECT_EQ(secret.size(), 0U);  // NOLINT(bugprone-use-after-move): that is the promise
  SecretBytes assigned(ToBytes("older"));
  assigned = std::move(moved);
  EXPECT_TRUE(assigned.Equals(AsBytes("password")));
  EXPECT_EQ(moved.size(), 0U);  // NOLINT(bugprone-use-after-move)
  static_assert(!std::is_copy_constructible_v<SecretBytes>);
  static_assert(!std::is_copy_assignable_v<SecretBytes>);
}

TEST(CodeTest, EachCodeHasItsOwnLabelAndComesBackFromIt) {
  std::set<std::string_view> labels;
  for (const CodeFacts& facts : kCodeTable) {
    EXPECT_TRUE(labels.insert(facts.label).second) << facts.label;
    EXPECT_EQ(CodeFromLabel(facts.label), facts.code);
    EXPECT_EQ(Facts(facts.code).label, facts.label);
    EXPECT_GE(facts.http_status, 400);
    EXPECT_GT(facts.exit_status, kExitFindings);
  }
  EXPECT_EQ(CodeFromLabel("no such label"), Code::kInternal);
}

TEST(ResultTest, MacrosReturnTheErrorOrGoOn) {
  const auto half = [](int number) -> Result<int> {
    if (number % 2 != 0) {
      return Error{Code::kInvalidArgument, "odd"};
    }
    return number / 2;
  };
  const auto quarter = [&](int number) -> Result<int> {
    RINGFENCE_TRY(half(number));
    RINGFENCE_ASSIGN(const int once, half(number));
    return half(once);
  };
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(7).error().message, "odd");
  EXPECT_EQ(Prefix("file", quarter(6).error()).message, "file: odd");
}

}  // namespace
}  // namespace ringfence
