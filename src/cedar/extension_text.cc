// Extension values from text and back.

#include <charconv>

#include "cedar/extension.h"

namespace ringfence::cedar {
namespace {

Error Wrong(Extension type, std::string_view text, std::string_view why) {
  return Error{Code::kInvalidArgument,
               std::string(ConstructorName(type)) + "(" + Quoted(text) + "): " + std::string(why)};
}

bool Digit(char c) { return c >= '0' && c <= '9'; }

// Reads exactly `count` digits off the front.
bool TakeDigits(std::string_view& text, std::size_t count, int& out) {
  if (text.size() < count) {
    return false;
  }
  out = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!Digit(text[i])) {
      return false;
    }
    out = out * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return true;
}

bool Take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

template <typename T>
bool Number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// -?digits.digits with at most four after the point.
Result<ExtensionValue> ParseDecimal(std::string_view text) {
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) {
    return Wrong(Extension::kDecimal, text, "needs digits on both sides of a point");
  }
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = text.substr(point + 1);
  const bool negative = whole.starts_with('-');
  std::int64_t left = 0;
  std::uint64_t right = 0;
  for (const char c : whole.substr(negative ? 1 : 0)) {
    if (!Digit(c)) {
      return Wrong(Extension::kDecimal, text, "is not a decimal number");
    }
  }
  for (const char c : part) {
    if (!Digit(c)) {
      return Wrong(Extension::kDecimal, text, "is not a decimal number");
    }
  }
  if (whole.size() == (negative ? 1U : 0U) || part.empty()) {
    return Wrong(Extension::kDecimal, text, "needs digits on both sides of the point");
  }
  if (part.size() > 4) {
    return Wrong(Extension::kDecimal, text, "has more than four digits after the point");
  }
  std::int64_t value = 0;
  if (!Number(whole, left) || !Number(part, right) ||
      __builtin_mul_overflow(left, std::int64_t{10000}, &value)) {
    return Wrong(Extension::kDecimal, text, "is out of range");
  }
  for (std::size_t i = part.size(); i < 4; ++i) {
    right *= 10;
  }
  const auto fraction = static_cast<std::int64_t>(right);
  if (negative ? __builtin_sub_overflow(value, fraction, &value)
               : __builtin_add_overflow(value, fraction, &value)) {
    return Wrong(Extension::kDecimal, text, "is out of range");
  }
  return ExtensionValue{.type = Extension::kDecimal, .number = value};
}

// -?(Nd)?(Nh)?(Nm)?(Ns)?(Nms)? with at least one of them.
Result<ExtensionValue> ParseDuration(std::string_view text) {
  std::string_view rest = text;
  const bool negative = Take(rest, '-');
  if (rest.empty()) {
    return Wrong(Extension::kDuration, text, "needs at least one quantity with its unit");
  }
  struct Unit {
    std::string_view name;
    std::int64_t ms;
  };
  static constexpr std::array<Unit, 5> kUnits = {
      {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
  std::array<std::uint64_t, 5> quantity{};
  bool overflow = false;
  std::size_t next = 0;
  while (!rest.empty()) {
    std::size_t digits = 0;
    while (digits < rest.size() && Digit(rest[digits])) {
      ++digits;
    }
    std::size_t letters = digits;
    while (letters < rest.size() && rest[letters] >= 'a' && rest[letters] <= 'z') {
      ++letters;
    }
    const std::string_view unit = rest.substr(digits, letters - digits);
    std::size_t found = next;
    while (found < kUnits.size() && kUnits[found].name != unit) {
      ++found;
    }
    if (digits == 0 || found == kUnits.size()) {
      return Wrong(Extension::kDuration, text,
                   "is not quantities with units d, h, m, s, ms in this order");
    }
    overflow = overflow || !Number(rest.substr(0, digits), quantity[found]);
    next = found + 1;
    rest.remove_prefix(letters);
  }
  // Milliseconds first, then the larger units; each step must fit, as in the reference.
  const std::uint64_t most = static_cast<std::uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  overflow = overflow || quantity.back() > most;
  auto total = static_cast<std::int64_t>(negative ? 0 - quantity.back() : quantity.back());
  for (std::size_t i = kUnits.size() - 1; i-- > 0 && !overflow;) {
    std::int64_t term = 0;
    overflow =
        quantity[i] > static_cast<std::uint64_t>(INT64_MAX) ||
        __builtin_mul_overflow(static_cast<std::int64_t>(quantity[i]), kUnits[i].ms, &term) ||
        (negative ? __builtin_sub_overflow(total, term, &total)
                  : __builtin_add_overflow(total, term, &total));
  }
  if (overflow) {
    return Wrong(Extension::kDuration, text, "is out of range");
  }
  return ExtensionValue{.type = Extension::kDuration, .number = total};
}

// Days since 1970-01-01 of a proleptic Gregorian date (Howard Hinnant's days_from_civil).
std::int64_t DaysFromCivil(int year, int month, int day) {
  const int y = year - (month <= 2 ? 1 : 0);
  const int era = (y >= 0 ? y : y - 399) / 400;
  const int year_of_era = y - era * 400;
  const int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return std::int64_t{era} * 146097 + day_of_era - 719468;
}

bool ValidDate(int year, int month, int day) {
  static constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month >= 1 && month <= 12 && day >= 1 &&
         day <= kDays[static_cast<std::size_t>(month - 1)] + (leap && month == 2 ? 1 : 0);
}

// YYYY-MM-DD, or that with THH:MM:SS[.SSS] and Z or +hhmm or -hhmm.
Result<ExtensionValue> ParseDatetime(std::string_view text) {
  constexpr Extension kType = Extension::kDatetime;
  std::string_view rest = text;
  int year = 0;
  int month = 0;
  int day = 0;
  if (!TakeDigits(rest, 4, year) || !Take(rest, '-') || !TakeDigits(rest, 2, month) ||
      !Take(rest, '-') || !TakeDigits(rest, 2, day)) {
    return Wrong(kType, text, "must begin with YYYY-MM-DD");
  }
  int hour = 0;
  int minute = 0;
  int second = 0;
  int ms = 0;
  std::int64_t offset_s = 0;
  if (!rest.empty()) {
    if (!Take(rest, 'T') || !TakeDigits(rest, 2, hour) || !Take(rest, ':') ||
        !TakeDigits(rest, 2, minute) || !Take(rest, ':') || !TakeDigits(rest, 2, second)) {
      return Wrong(kType, text, "must have THH:MM:SS after the date");
    }
    if (Take(rest, '.') && !TakeDigits(rest, 3, ms)) {
      return Wrong(kType, text, "must have three digits of milliseconds");
    }
    if (rest != "Z") {
      const bool east = rest.starts_with('+');
      int hours = 0;
      int minutes = 0;
      if (!(Take(rest, '+') || Take(rest, '-')) || !TakeDigits(rest, 2, hours) ||
          !TakeDigits(rest, 2, minutes) || !rest.empty()) {
        return Wrong(kType, text, "must end with Z, +hhmm or -hhmm");
      }
      if (hours >= 24 || minutes >= 60) {
        return Wrong(kType, text, "has an offset out of range");
      }
      offset_s = (hours * 3600 + minutes * 60) * (east ? 1 : -1);
    }
  }
  if (!ValidDate(year, month, day) || hour > 23 || minute > 59 || second > 59) {
    return Wrong(kType, text, "is no date and time");
  }
  const std::int64_t seconds =
      DaysFromCivil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset_s;
  return ExtensionValue{.type = kType, .number = seconds * 1000 + ms};
}

bool ParseV4(std::string_view text, IpRange& ip) {
  for (std::size_t i = 0; i < 4; ++i) {
    std::size_t digits = 0;
    int octet = 0;
    while (digits < text.size() && digits < 4 && Digit(text[digits])) {
      octet = octet * 10 + (text[digits] - '0');
      ++digits;
    }
    if (digits == 0 || digits > 3 || octet > 255 || (digits > 1 && text[0] == '0')) {
      return false;
    }
    ip.address[i] = static_cast<std::uint8_t>(octet);
    text.remove_prefix(digits);
    if (i < 3 && !Take(text, '.')) {
      return false;
    }
  }
  return text.empty();
}

// Up to `most` groups of hex digits with colons between; how many there were.
std::size_t TakeGroups(std::string_view& text, std::size_t most,
                       std::array<std::uint16_t, 8>& groups) {
  std::size_t count = 0;
  while (count < most) {
    std::string_view rest = text;
    if (count > 0 && !Take(rest, ':')) {
      break;
    }
    std::size_t digits = 0;
    while (digits < rest.size() && digits < 5 &&
           std::isxdigit(static_cast<unsigned char>(rest[digits])) != 0) {
      ++digits;
    }
    if (digits == 0 || digits > 4) {
      break;
    }
    std::from_chars(rest.data(), rest.data() + digits, groups[count], 16);
    rest.remove_prefix(digits);
    text = rest;
    ++count;
  }
  return count;
}

bool ParseV6(std::string_view text, IpRange& ip) {
  std::array<std::uint16_t, 8> head{};
  std::array<std::uint16_t, 8> tail{};
  const std::size_t front = TakeGroups(text, 8, head);
  if (front < 8) {
    if (!text.starts_with("::")) {
      return false;
    }
    text.remove_prefix(2);
    const std::size_t back = TakeGroups(text, 7 - front, tail);
    for (std::size_t i = 0; i < back; ++i) {
      head[8 - back + i] = tail[i];
    }
  }
  for (std::size_t i = 0; i < 8; ++i) {
    ip.address[2 * i] = static_cast<std::uint8_t>(head[i] >> 8U);
    ip.address[2 * i + 1] = static_cast<std::uint8_t>(head[i] & 0xffU);
  }
  return text.empty();
}

// An IPv4 or IPv6 address, perhaps with /prefix. No IPv4 inside IPv6, no leading zeros.
Result<ExtensionValue> ParseIp(std::string_view text) {
  constexpr Extension kType = Extension::kIp;
  const bool v6 = text.find(':') != std::string_view::npos;
  if (text.size() > 43) {
    return Wrong(kType, text, "is too long for an address");
  }
  if (v6 && text.find('.') != std::string_view::npos) {
    return Wrong(kType, text, "mixes the notations of IPv4 and IPv6");
  }
  const std::size_t slash = text.find('/');
  ExtensionValue out{.type = kType};
  out.ip.v6 = v6;
  const std::string_view address = text.substr(0, slash);
  if (!(v6 ? ParseV6(address, out.ip) : ParseV4(address, out.ip))) {
    return Wrong(kType, text, "is no IP address");
  }
  const unsigned most = v6 ? 128 : 32;
  unsigned prefix = most;
  if (slash != std::string_view::npos) {
    const std::string_view given = text.substr(slash + 1);
    if (given.empty() || given.size() > (v6 ? 3U : 2U) || !Digit(given[0]) ||
        (given.size() > 1 && given[0] == '0') || !Number(given, prefix) || prefix > most) {
      return Wrong(kType, text, "has no valid prefix length");
    }
  }
  out.ip.prefix = static_cast<std::uint8_t>(prefix);
  return out;
}

}  // namespace

std::string_view ConstructorName(Extension type) {
  return type == Extension::kIp ? "ip" : Name(type);
}

Result<ExtensionValue> ParseExtension(Extension type, std::string_view text) {
  switch (type) {
    case Extension::kDecimal:
      return ParseDecimal(text);
    case Extension::kIp:
      return ParseIp(text);
    case Extension::kDatetime:
      return ParseDatetime(text);
    case Extension::kDuration:
      return ParseDuration(text);
  }
  return Wrong(type, text, "is of no known type");
}

}  // namespace ringfence::cedar
