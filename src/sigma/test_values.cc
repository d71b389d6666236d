// What the tests compare besides text: addresses, times, numbers.

#include <charconv>
#include <chrono>
#include <cmath>

#include "sigma/expression.h"

namespace ringfence::sigma {
namespace {

using Address = std::array<std::uint8_t, 16>;

bool ParseV4(std::string_view text, std::uint8_t* out) {
  for (int i = 0; i < 4; ++i) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto used = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || value > 255 || used > 3 || (used > 1 && text[0] == '0')) {
      return false;
    }
    out[i] = static_cast<std::uint8_t>(value);
    text.remove_prefix(used);
    if (i < 3) {
      if (!text.starts_with('.')) {
        return false;
      }
      text.remove_prefix(1);
    }
  }
  return text.empty();
}

// Groups of one side of "::"; their number, or -1.
int ParseGroups(std::string_view text, std::uint8_t* out, int most) {
  int bytes = 0;
  while (!text.empty()) {
    const std::size_t end = text.find(':');
    const std::string_view group = text.substr(0, end);
    if (end == std::string_view::npos && group.find('.') != std::string_view::npos) {
      return bytes + 4 <= most && ParseV4(group, out + bytes) ? bytes + 4 : -1;
    }
    unsigned value = 0;
    const auto [stop, error] =
        std::from_chars(group.data(), group.data() + group.size(), value, 16);
    if (group.empty() || group.size() > 4 || error != std::errc() ||
        stop != group.data() + group.size() || bytes + 2 > most) {
      return -1;
    }
    out[bytes++] = static_cast<std::uint8_t>(value >> 8U);
    out[bytes++] = static_cast<std::uint8_t>(value & 0xffU);
    if (end == std::string_view::npos) {
      break;
    }
    text.remove_prefix(end + 1);
    if (text.empty()) {
      return -1;  // ends with one colon
    }
  }
  return bytes;
}

bool ParseAddress(std::string_view text, Address& out) {
  out = {};
  if (text.find(':') == std::string_view::npos) {
    out[10] = out[11] = 0xff;
    return ParseV4(text, out.data() + 12);
  }
  text = text.substr(0, text.find('%'));  // a zone
  const std::size_t gap = text.find("::");
  if (gap == std::string_view::npos) {
    return ParseGroups(text, out.data(), 16) == 16;
  }
  std::uint8_t tail[16] = {};
  const int front = ParseGroups(text.substr(0, gap), out.data(), 14);
  const int back = ParseGroups(text.substr(gap + 2), tail, 14);
  if (front < 0 || back < 0 || front + back > 14) {
    return false;
  }
  for (int i = 0; i < back; ++i) {
    out[static_cast<std::size_t>(16 - back + i)] = tail[i];
  }
  return true;
}

// Two or four digits at `at`; -1 when they are not there.
int DigitsAt(std::string_view text, std::size_t at, std::size_t count) {
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') {
      return -1;
    }
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

struct Moment {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
};

bool ParseMoment(std::string_view text, Moment& moment) {
  double number = 0;
  if (NumberOf(text, number)) {
    if (!(number >= 0 && number < 1e15)) {
      return false;
    }
    const auto seconds = static_cast<std::int64_t>(number >= 1e11 ? number / 1000 : number);
    const std::chrono::sys_seconds time{std::chrono::seconds(seconds)};
    const auto days = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(days);
    const auto rest = std::chrono::duration_cast<std::chrono::minutes>(time - days).count();
    moment = {static_cast<int>(date.year()), static_cast<int>(static_cast<unsigned>(date.month())),
              static_cast<int>(static_cast<unsigned>(date.day())), static_cast<int>(rest / 60),
              static_cast<int>(rest % 60)};
    return true;
  }
  moment.year = DigitsAt(text, 0, 4);
  moment.month = DigitsAt(text, 5, 2);
  moment.day = DigitsAt(text, 8, 2);
  if (moment.year < 0 || moment.month < 1 || moment.month > 12 || moment.day < 1 ||
      moment.day > 31 || text[4] != text[7] || (text[4] != '-' && text[4] != '/')) {
    return false;
  }
  if (text.size() == 10) {
    return true;
  }
  moment.hour = DigitsAt(text, 11, 2);
  moment.minute = DigitsAt(text, 14, 2);
  return (text[10] == 'T' || text[10] == 't' || text[10] == ' ') && moment.hour >= 0 &&
         moment.hour < 24 && moment.minute >= 0 && moment.minute < 60 && text[13] == ':';
}

// ISO 8601: week 1 has the year's first Thursday.
int WeekOf(const Moment& moment) {
  using namespace std::chrono;  // NOLINT(google-build-using-namespace)
  const sys_days day = year(moment.year) / month(static_cast<unsigned>(moment.month)) /
                       std::chrono::day(static_cast<unsigned>(moment.day));
  const auto weekday_index = static_cast<int>(weekday(day).iso_encoding());  // Monday is 1
  const sys_days thursday = day + days(4 - weekday_index);
  const year_month_day date(thursday);
  const sys_days first = date.year() / January / 1;
  return static_cast<int>((thursday - first).count() / 7) + 1;
}

}  // namespace

Result<Cidr> Cidr::Parse(std::string_view text) {
  const Error wrong{Code::kInvalidArgument,
                    "\"" + std::string(text) + "\" is no range of addresses",
                    "as in 10.0.0.0/8 or fe80::/10",
                    {}};
  const std::size_t slash = text.find('/');
  Cidr cidr;
  if (!ParseAddress(text.substr(0, slash), cidr.address)) {
    return wrong;
  }
  const bool v4 = text.substr(0, slash).find(':') == std::string_view::npos;
  const int most = v4 ? 32 : 128;
  cidr.bits = most;
  if (slash != std::string_view::npos) {
    const std::string_view bits = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), cidr.bits);
    if (error != std::errc() || end != bits.data() + bits.size() || cidr.bits < 0 ||
        cidr.bits > most) {
      return wrong;
    }
  }
  cidr.bits += v4 ? 96 : 0;
  return cidr;
}

bool Cidr::Has(std::string_view text) const {
  Address other;
  if (!ParseAddress(text, other)) {
    return false;
  }
  for (int bit = 0; bit < bits; bit += 8) {
    const auto index = static_cast<std::size_t>(bit / 8);
    const auto mask = static_cast<std::uint8_t>(bits - bit >= 8 ? 0xff : 0xff00 >> (bits - bit));
    if (((address[index] ^ other[index]) & mask) != 0) {
      return false;
    }
  }
  return true;
}

bool NumberOf(std::string_view text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() &&
         std::isfinite(number);
}

bool PartOfTime(std::string_view text, TimePart part, double& number) {
  Moment moment;
  if (!ParseMoment(text, moment)) {
    return false;
  }
  switch (part) {
    case TimePart::kMinute:
      number = moment.minute;
      return true;
    case TimePart::kHour:
      number = moment.hour;
      return true;
    case TimePart::kDay:
      number = moment.day;
      return true;
    case TimePart::kWeek:
      number = WeekOf(moment);
      return true;
    case TimePart::kMonth:
      number = moment.month;
      return true;
    case TimePart::kYear:
      number = moment.year;
      return true;
    case TimePart::kNone:
      break;
  }
  return false;
}

namespace {
std::string Exact(double number) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr};
}
}  // namespace

std::string Test::Key() const {
  std::string key;
  const auto add = [&](std::string_view text) {
    key += std::to_string(text.size());
    key += ':';
    key += text;
  };
  key += std::to_string(static_cast<int>(kind)) + (cased ? "c" : "f");
  add(field);
  for (const Pattern::Part& one : pattern.parts) {
    key += std::to_string(static_cast<int>(one.kind));
    add(one.text);
  }
  add(regex);
  add(std::string_view(reinterpret_cast<const char*>(cidr.address.data()), cidr.address.size()));
  key += std::to_string(cidr.bits) + "," + std::to_string(static_cast<int>(bound.op)) + "," +
         Exact(bound.value) + "," + std::to_string(static_cast<int>(part)) + "," +
         std::to_string(static_cast<int>(place)) + (exists ? "e" : "a");
  add(other);
  return key;
}

}  // namespace ringfence::sigma
