#include "detect/ip_range.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace ringfence::detect {
namespace {

std::optional<unsigned> Decimal(std::string_view text, unsigned most) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text.size() > 3 || (text.size() > 1 && text[0] == '0') ||
      error != std::errc() || end != text.data() + text.size() || value > most) {
    return std::nullopt;
  }
  return value;
}

bool ReadV4(std::string_view text, std::uint8_t* into) {
  for (int i = 0; i < 4; ++i) {
    const std::size_t dot = text.find('.');
    const auto octet = Decimal(text.substr(0, dot), 255);
    if (!octet || (dot == std::string_view::npos) != (i == 3)) {
      return false;
    }
    into[i] = static_cast<std::uint8_t>(*octet);
    text.remove_prefix(i == 3 ? text.size() : dot + 1);
  }
  return true;
}

// The groups of one side of "::", as bytes.
bool ReadGroups(std::string_view text, std::vector<std::uint8_t>& bytes) {
  while (!text.empty()) {
    const std::size_t colon = text.find(':');
    const std::string_view group = text.substr(0, colon);
    if (colon == std::string_view::npos && group.find('.') != std::string_view::npos) {
      std::uint8_t v4[4];
      if (!ReadV4(group, v4)) {
        return false;
      }
      bytes.insert(bytes.end(), v4, v4 + 4);
      return bytes.size() <= 16;
    }
    unsigned value = 0;
    const auto [end, error] = std::from_chars(group.data(), group.data() + group.size(), value, 16);
    if (group.empty() || group.size() > 4 || error != std::errc() ||
        end != group.data() + group.size() || bytes.size() >= 16) {
      return false;
    }
    bytes.push_back(static_cast<std::uint8_t>(value >> 8U));
    bytes.push_back(static_cast<std::uint8_t>(value & 0xffU));
    if (colon == std::string_view::npos) {
      return true;
    }
    text.remove_prefix(colon + 1);
    if (text.empty()) {
      return false;  // ends in a single colon
    }
  }
  return true;
}

bool ReadV6(std::string_view text, std::array<std::uint8_t, 16>& into) {
  const std::size_t gap = text.find("::");
  std::vector<std::uint8_t> head;
  std::vector<std::uint8_t> tail;
  if (gap == std::string_view::npos) {
    if (!ReadGroups(text, head) || head.size() != 16) {
      return false;
    }
  } else if (text.find("::", gap + 1) != std::string_view::npos ||
             !ReadGroups(text.substr(0, gap), head) || !ReadGroups(text.substr(gap + 2), tail) ||
             head.size() + tail.size() > 14) {
    return false;
  }
  std::copy(head.begin(), head.end(), into.begin());
  std::copy(tail.begin(), tail.end(), into.end() - static_cast<long>(tail.size()));
  return true;
}

}  // namespace

IpRange IpRange::Widened(unsigned to) const {
  IpRange wide = *this;
  wide.bits = static_cast<std::uint8_t>(to);
  for (unsigned i = 0; i < 16; ++i) {
    const unsigned kept = to > i * 8 ? std::min(8U, to - i * 8) : 0;
    wide.address[i] = static_cast<std::uint8_t>(wide.address[i] & (0xff00U >> kept));
  }
  return wide;
}

bool IpRange::Contains(const IpRange& other) const {
  return v6 == other.v6 && bits <= other.bits && other.Widened(bits) == *this;
}

std::optional<IpRange> ParseIpRange(std::string_view text) {
  if (text.size() > 64) {
    return std::nullopt;
  }
  IpRange range;
  const std::size_t slash = text.find('/');
  const std::string_view address = text.substr(0, slash);
  range.v6 = address.find(':') != std::string_view::npos;
  if (!(range.v6 ? ReadV6(address, range.address) : ReadV4(address, range.address.data()))) {
    return std::nullopt;
  }
  unsigned bits = range.width();
  if (slash != std::string_view::npos) {
    const auto given = Decimal(text.substr(slash + 1), range.width());
    if (!given) {
      return std::nullopt;
    }
    bits = *given;
  }
  return range.Widened(bits);
}

}  // namespace ringfence::detect
