#include "base/time.h"

#include <cstdio>
#include <optional>

namespace ringfence {
namespace {

std::optional<int> Digits(std::string_view text, std::size_t at, std::size_t count) {
  if (text.size() < at + count) {
    return std::nullopt;
  }
  int value = 0;
  for (const char c : text.substr(at, count)) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

std::string FormatTime(Timestamp time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  char text[64];
  (void)std::snprintf(
      text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

Result<Timestamp> ParseTime(std::string_view text) {
  const Error bad{Code::kInvalidArgument, "not a time: \"" + std::string(text.substr(0, 40)) + "\"",
                  "write it as 2026-11-15T08:46:30Z"};
  const auto year = Digits(text, 0, 4);
  const auto month = Digits(text, 5, 2);
  const auto day = Digits(text, 8, 2);
  const auto hour = Digits(text, 11, 2);
  const auto minute = Digits(text, 14, 2);
  const auto second = Digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second || text[4] != '-' || text[7] != '-' ||
      text[10] != 'T' || text[13] != ':' || text[16] != ':' || text.back() != 'Z') {
    return bad;
  }
  int millis = 0;
  std::string_view rest = text.substr(19, text.size() - 20);
  if (!rest.empty()) {
    const auto fraction = Digits(rest, 1, rest.size() - 1);
    if (rest[0] != '.' || rest.size() < 2 || rest.size() > 4 || !fraction) {
      return bad;
    }
    millis = *fraction;
    for (std::size_t i = rest.size(); i < 4; ++i) {
      millis *= 10;
    }
  }
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *year < 1970 || *hour > 23 || *minute > 59 || *second > 59) {
    return bad;
  }
  return Timestamp(std::chrono::sys_days(date)) + std::chrono::hours(*hour) +
         std::chrono::minutes(*minute) + std::chrono::seconds(*second) + Milliseconds(millis);
}

Result<Milliseconds> ParseDuration(std::string_view text) {
  const Error bad{Code::kInvalidArgument,
                  "not a duration: \"" + std::string(text.substr(0, 40)) + "\"",
                  "write it as 90s, 15m, 2h or 1h30m"};
  constexpr Milliseconds kLongest = std::chrono::hours(24 * 3660);
  Milliseconds total{0};
  if (text.empty()) {
    return bad;
  }
  while (!text.empty()) {
    std::int64_t count = 0;
    std::size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
      count = count * 10 + (text[digits] - '0');
      if (++digits > 12) {
        return bad;
      }
    }
    text.remove_prefix(digits);
    std::int64_t unit = 0;
    std::size_t unit_size = 1;
    if (text.starts_with("ms")) {
      unit = 1;
      unit_size = 2;
    } else if (text.starts_with("s")) {
      unit = 1000;
    } else if (text.starts_with("m")) {
      unit = 60 * 1000;
    } else if (text.starts_with("h")) {
      unit = 3600 * 1000;
    } else if (text.starts_with("d")) {
      unit = 24 * 3600 * 1000;
    }
    if (digits == 0 || unit == 0 || count > kLongest.count() / unit) {
      return bad;
    }
    text.remove_prefix(unit_size);
    total += Milliseconds(count * unit);
    if (total > kLongest) {
      return bad;
    }
  }
  return total;
}

std::string FormatDuration(Milliseconds duration) {
  std::int64_t left = duration.count();
  if (left < 0) {
    return "-" + FormatDuration(-duration);
  }
  if (left < 1000) {
    return std::to_string(left) + "ms";
  }
  std::string text;
  constexpr std::pair<std::int64_t, const char*> kUnits[] = {
      {24 * 3600 * 1000, "d"}, {3600 * 1000, "h"}, {60 * 1000, "m"}, {1000, "s"}};
  int shown = 0;
  for (const auto& [unit, name] : kUnits) {
    if (left >= unit && shown < 2) {
      text += std::to_string(left / unit) + name;
      left %= unit;
      ++shown;
    }
  }
  return text;
}

}  // namespace ringfence
