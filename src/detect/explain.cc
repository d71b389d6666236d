// What a verdict says, in words with numbers.

#include <array>
#include <cmath>
#include <cstdio>

#include "detect/baseline.h"

namespace ringfence::detect {
namespace {

std::string Number(double value) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), std::fabs(value) < 1e6 ? "%.4g" : "%.3e", value);
  return text.data();
}

std::string Counted(unsigned count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string What(const Verdict& v) {
  const std::string held = " for " + std::to_string(kHeldSamples) + " samples in a row";
  const std::string held_long = " for " + std::to_string(kLongSamples) + " samples in a row";
  const std::string most = ", as a rule at most " + Number(v.bound);
  const std::string least = ", as a rule at least " + Number(v.bound);
  switch (v.sign) {
    case Sign::kHigh:
      return Number(v.value) + most;
    case Sign::kLow:
      return Number(v.value) + least;
    case Sign::kHeldHigh:
      return Number(v.measure) + " or more" + held + most;
    case Sign::kHeldLow:
      return Number(v.measure) + " or less" + held + least;
    case Sign::kLongHigh:
      return Number(v.measure) + " or more" + held_long + most;
    case Sign::kLongLow:
      return Number(v.measure) + " or less" + held_long + least;
    case Sign::kStepUp:
      return "rose by " + Number(v.measure) + most;
    case Sign::kStepDown:
      return "fell by " + Number(-v.measure) + ", as a rule at most " + Number(-v.bound);
    case Sign::kRestless:
      return "changes by " + Number(v.measure) + " from sample to sample" + most;
    case Sign::kStill:
      return "changes by only " + Number(std::exp(v.measure)) +
             " from sample to sample, as a rule at least " + Number(std::exp(v.bound));
    case Sign::kHighForHour:
      return Number(v.measure) + " above what is usual at this hour" + most;
    case Sign::kLowForHour:
      return Number(-v.measure) + " below what is usual at this hour, as a rule at most " +
             Number(-v.bound);
  }
  return {};
}

std::string Hour(const Verdict& v) {
  static constexpr std::array<const char*, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                       "Thursday", "Friday", "Saturday"};
  const std::int64_t day = v.time_s >= 0 ? v.time_s / 86400 : (v.time_s - 86399) / 86400;
  const std::int64_t hour = (v.time_s - day * 86400) / 3600;
  std::string text =
      v.weeks > 0 ? std::string(kDays[static_cast<std::size_t>(((day + 4) % 7 + 7) % 7)]) + " "
                  : "";
  text += (hour < 10 ? "0" : "") + std::to_string(hour) + ":00";
  return text;
}

std::string Comparison(const Verdict& v) {
  if (v.days == 0) {
    return {};
  }
  const std::string history = v.weeks > 0 ? Counted(v.weeks, "week") : Counted(v.days, "day");
  const bool times = v.usual > 0 && v.value >= 1.1 * v.usual;
  return "; " + (times ? Number(std::round(v.value / v.usual * 10) / 10) + "x the " : "the ") +
         "usual " + Hour(v) + " level" + (times ? " of " : " is ") + Number(v.usual) + ", " +
         history + " of history";
}

}  // namespace

std::string Explain(const Verdict& verdict) {
  if (verdict.learning) {
    return "learning";
  }
  if (verdict.episode) {
    return "goes on";
  }
  if (!verdict.alarm) {
    return {};
  }
  constexpr float kMillion = 6;
  return What(verdict) + Comparison(verdict) + "; expected once in " +
         (verdict.rarity > kMillion ? "over a million"
                                    : std::to_string(std::lround(std::pow(10, verdict.rarity)))) +
         " samples" +
         (verdict.peers ? "; measured by its peers, as it has little history of its own" : "");
}

}  // namespace ringfence::detect
