#pragma once

// Addresses and ranges of them, IPv4 and IPv6, as indicators and events write them.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ringfence::detect {

struct IpRange {
  std::array<std::uint8_t, 16> address = {};  // IPv4 in the first four; bits beyond `bits` are 0
  std::uint8_t bits = 0;                      // of the prefix
  bool v6 = false;

  unsigned width() const { return v6 ? 128 : 32; }
  bool single() const { return bits == width(); }
  bool Contains(const IpRange& other) const;
  // The range of `to` bits around this one, `to` <= bits.
  IpRange Widened(unsigned to) const;
  friend bool operator==(const IpRange&, const IpRange&) = default;
};

// "192.0.2.1", "192.0.2.0/24", "2001:db8::1", "2001:db8::/32". Octets have no leading zeros: some
// programs read them as octal.
std::optional<IpRange> ParseIpRange(std::string_view text);

}  // namespace ringfence::detect
