#include "sigma/event_time.h"

#include "sigma/expression.h"

namespace ringfence::sigma {
namespace {

// Reads digits at the front of `text` and takes them away; -1 when there are not `count`.
int Take(std::string_view& text, std::size_t count) {
  if (text.size() < count) {
    return -1;
  }
  int value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') {
      return -1;
    }
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool Skip(std::string_view& text, std::string_view one_of) {
  if (text.empty() || one_of.find(text[0]) == std::string_view::npos) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

// "Z", "+02:00", "-0530", or nothing: minutes east.
std::optional<int> Offset(std::string_view text) {
  if (text.empty() || text == "Z" || text == "z") {
    return 0;
  }
  const int sign = text[0] == '-' ? -1 : 1;
  if (!Skip(text, "+-")) {
    return std::nullopt;
  }
  const int hours = Take(text, 2);
  (void)Skip(text, ":");
  const int minutes = text.empty() ? 0 : Take(text, 2);
  if (hours < 0 || hours > 18 || minutes < 0 || minutes > 59 || !text.empty()) {
    return std::nullopt;
  }
  return sign * (hours * 60 + minutes);
}

}  // namespace

std::optional<Timestamp> ParseEventTime(std::string_view text) {
  double number = 0;
  if (NumberOf(text, number)) {
    if (!(number >= 0 && number < 1e15)) {
      return std::nullopt;
    }
    return Timestamp(
        Milliseconds(static_cast<std::int64_t>(number >= 1e11 ? number : number * 1000)));
  }
  const int year = Take(text, 4);
  const bool first = Skip(text, "-/");
  const int month = Take(text, 2);
  const bool second = Skip(text, "-/");
  const int day = Take(text, 2);
  if (year < 1970 || !first || !second || month < 1 || month > 12 || day < 1 || day > 31) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) {
    return std::nullopt;
  }
  Timestamp time = std::chrono::sys_days(date);
  if (text.empty()) {
    return time;
  }
  const bool between = Skip(text, "Tt ");
  const int hour = Take(text, 2);
  const bool colon = Skip(text, ":");
  const int minute = Take(text, 2);
  if (!between || !colon || hour < 0 || hour > 23 || minute < 0 || minute > 59) {
    return std::nullopt;
  }
  int seconds = 0;
  int milliseconds = 0;
  if (Skip(text, ":")) {
    seconds = Take(text, 2);
    if (seconds < 0 || seconds > 60) {
      return std::nullopt;
    }
    if (Skip(text, ".,")) {
      int scale = 100;
      while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
        milliseconds += (text[0] - '0') * scale;
        scale /= 10;
        text.remove_prefix(1);
      }
    }
  }
  const auto offset = Offset(text);
  if (!offset) {
    return std::nullopt;
  }
  return time + std::chrono::hours(hour) + std::chrono::minutes(minute - *offset) +
         std::chrono::seconds(seconds) + Milliseconds(milliseconds);
}

const std::vector<std::string>& DefaultTimeFields() {
  static const std::vector<std::string> kFields = {
      "time",      "@timestamp", "timestamp", "TimeCreated_SystemTime",
      "eventTime", "UtcTime",    "_time",     "Timestamp"};
  return kFields;
}

}  // namespace ringfence::sigma
