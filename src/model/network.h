#pragma once

// The words of network rules: addresses, ports, names. Values that were parsed are valid.

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::model {

// "10.0.0.0/8". Boxes speak IPv4 only: IPv6 is closed altogether.
class Ipv4Network {
 public:
  // Strict: four decimal numbers without leading zeros and a prefix, no bit set behind it.
  static Result<Ipv4Network> Parse(std::string_view text);

  std::uint32_t address() const { return address_; }  // host order
  unsigned prefix() const { return prefix_; }
  std::string text() const;
  bool Contains(const Ipv4Network& other) const;  // all of it, or itself
  auto operator<=>(const Ipv4Network&) const = default;

 private:
  friend std::span<const Ipv4Network> NeverReachable();
  constexpr Ipv4Network(std::uint32_t address, unsigned prefix)
      : address_(address), prefix_(prefix) {}
  std::uint32_t address_;
  unsigned prefix_;
};

std::string FormatIpv4(std::uint32_t address);  // host order

// What no rule opens, whatever it says: this machine, link-local (where clouds keep the metadata
// service), multicast, reserved.
std::span<const Ipv4Network> NeverReachable();

enum class Protocol : std::uint8_t { kTcp, kUdp, kIcmp };
std::string_view Name(Protocol protocol);

// "tcp/443", "udp/5000-5100", "icmp" (echo requests, and nothing else of it).
class PortRange {
 public:
  static Result<PortRange> Parse(std::string_view text);

  Protocol protocol() const { return protocol_; }
  std::uint16_t first() const { return first_; }  // 0 for icmp
  std::uint16_t last() const { return last_; }
  std::string text() const;
  bool Contains(const PortRange& other) const;
  // What both have in common.
  std::optional<PortRange> Meet(const PortRange& other) const;
  auto operator<=>(const PortRange&) const = default;

 private:
  PortRange(Protocol protocol, std::uint16_t first, std::uint16_t last)
      : protocol_(protocol), first_(first), last_(last) {}
  Protocol protocol_;
  std::uint16_t first_;
  std::uint16_t last_;
};

// What a box tried and the firewall did not let through.
inline constexpr std::size_t kDeniedFlowsMax = 8;
struct DeniedFlow {
  std::string to;        // address
  std::string protocol;  // "tcp" or "udp"
  std::uint16_t port = 0;
  std::uint64_t packets = 0;
};
struct Denied {
  std::uint64_t packets = 0;  // of every protocol
  std::uint64_t bytes = 0;
  std::vector<DeniedFlow> flows;  // the most frequent first, kDeniedFlowsMax at most
};

// Two or more labels of a-z, 0-9 and '-', at most 63 bytes each and 253 in all; the last is not
// a number, so that no address passes for a name.
bool IsDnsName(std::string_view text);

}  // namespace ringfence::model
