#include "cli/human.h"

#include <charconv>
#include <cstdio>
#include <limits>

namespace ringfence::cli {
namespace {

// A decimal number as thousandths, so that no floating point is involved. Takes it from the front.
bool TakeThousandths(std::string_view& text, std::uint64_t& thousandths) {
  std::size_t digits = 0;
  std::uint64_t whole = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    if (digits >= 15) {
      return false;
    }
    whole = whole * 10 + static_cast<std::uint64_t>(text[digits++] - '0');
  }
  if (digits == 0) {
    return false;
  }
  text.remove_prefix(digits);
  std::uint64_t fraction = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    std::uint64_t place = 100;
    std::size_t decimals = 0;
    for (; decimals < text.size() && text[decimals] >= '0' && text[decimals] <= '9'; ++decimals) {
      fraction += place * static_cast<std::uint64_t>(text[decimals] - '0');
      place /= 10;
    }
    if (decimals == 0 || decimals > 3) {
      return false;
    }
    text.remove_prefix(decimals);
  }
  thousandths = whole * 1000 + fraction;
  return true;
}

}  // namespace

Result<std::uint64_t> ParseSize(std::string_view text) {
  const Error bad{Code::kInvalidArgument, "not a size: \"" + std::string(text.substr(0, 40)) + "\"",
                  "write it as 512M, 4G or 1.5G (powers of 1024)"};
  std::uint64_t thousandths = 0;
  if (!TakeThousandths(text, thousandths)) {
    return bad;
  }
  constexpr std::string_view kUnits = "KMGT";
  std::uint64_t factor = 1;
  if (!text.empty()) {
    const char letter = static_cast<char>(text[0] >= 'a' ? text[0] - ('a' - 'A') : text[0]);
    const std::size_t unit = kUnits.find(letter);
    if (unit == std::string_view::npos && text != "B") {
      return bad;
    }
    if (unit != std::string_view::npos) {
      factor = std::uint64_t{1} << (10 * (unit + 1));
      text.remove_prefix(1);
    }
    if (!text.empty() && text != "B" && (text != "iB" || factor == 1)) {
      return bad;
    }
  }
  if (thousandths > std::numeric_limits<std::uint64_t>::max() / factor ||
      thousandths * factor % 1000 != 0) {
    return bad;
  }
  return thousandths * factor / 1000;
}

std::string FormatSize(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  std::uint64_t tenths = bytes <= std::numeric_limits<std::uint64_t>::max() / 10 ? bytes * 10 : 0;
  if (tenths == 0 && bytes != 0) {
    return std::to_string(bytes >> 60U) + " EiB";
  }
  while (tenths >= 10240) {
    tenths = (tenths + 512) / 1024;
    ++unit;
  }
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0 && tenths < 1000) {
    text += "." + std::to_string(tenths % 10);
  }
  return text + " " + kUnits[unit];
}

Result<std::uint32_t> ParseCpus(std::string_view text) {
  const std::string_view whole = text;
  std::uint64_t thousandths = 0;
  if (!TakeThousandths(text, thousandths) || !text.empty() || thousandths == 0 ||
      thousandths > 1024 * 1000) {
    return Error{Code::kInvalidArgument,
                 "not a number of cores: \"" + std::string(whole.substr(0, 40)) + "\"",
                 "write it as 2 or 1.5; at most 1024"};
  }
  return static_cast<std::uint32_t>(thousandths);
}

Result<std::int64_t> ParseCount(std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t count = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (text.empty() || wrong != std::errc{} || end != text.data() + text.size() || count < least ||
      count > most) {
    return Error{
        Code::kInvalidArgument, "\"" + std::string(text.substr(0, 40)) + "\" is no count",
        "write a whole number from " + std::to_string(least) + " to " + std::to_string(most)};
  }
  return count;
}

std::string RelativeTime(std::string_view rfc3339, Timestamp now) {
  if (rfc3339.empty()) {
    return "";
  }
  const auto time = ParseTime(rfc3339);
  if (!time.has_value()) {
    return std::string(rfc3339);
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - *time).count();
  const std::int64_t away = seconds < 0 ? -seconds : seconds;
  if (away < 2) {
    return "just now";
  }
  std::string text;
  if (away < 120) {
    text = std::to_string(away) + "s";
  } else if (away < 120 * 60) {
    text = std::to_string(away / 60) + "m";
  } else if (away < 48 * 3600) {
    text = std::to_string(away / 3600) + "h";
  } else {
    text = std::to_string(away / 86400) + "d";
  }
  return seconds < 0 ? "in " + text : text + " ago";
}

std::string Count(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace ringfence::cli
