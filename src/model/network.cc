#include "model/network.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace ringfence::model {
namespace {

constexpr std::size_t kDnsNameBytesMax = 253;
constexpr std::size_t kDnsLabelBytesMax = 63;
constexpr std::uint32_t kNoPrefix = 99;

Error Bad(std::string_view text, std::string what, std::string hint) {
  return Error{Code::kInvalidArgument, "\"" + std::string(text) + "\" " + std::move(what),
               std::move(hint)};
}

// Decimal without sign, blank or leading zero.
std::optional<std::uint32_t> Number(std::string_view text, std::uint32_t most) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end || value > most ||
      (text.size() > 1 && text[0] == '0')) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::uint32_t> Address(std::string_view text) {
  std::uint32_t address = 0;
  for (int part = 0; part < 4; ++part) {
    const std::size_t dot = part < 3 ? text.find('.') : text.size();
    if (dot == std::string_view::npos) {
      return std::nullopt;
    }
    const auto value = Number(text.substr(0, dot), 255);
    if (!value.has_value()) {
      return std::nullopt;
    }
    address = address << 8U | *value;
    text.remove_prefix(part < 3 ? dot + 1 : dot);
  }
  return address;
}

constexpr std::uint32_t MaskOf(unsigned prefix) {
  return prefix == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix);
}

bool IsLabel(std::string_view label) {
  return !label.empty() && label.size() <= kDnsLabelBytesMax && label.front() != '-' &&
         label.back() != '-' && std::all_of(label.begin(), label.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

}  // namespace

Result<Ipv4Network> Ipv4Network::Parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (text.find(':') != std::string_view::npos) {
    return Bad(text, "is IPv6, and boxes speak IPv4 only", "name the IPv4 addresses");
  }
  const auto address = Address(text.substr(0, slash));
  const std::uint32_t prefix =
      Number(slash == std::string_view::npos ? "" : text.substr(slash + 1), 32).value_or(kNoPrefix);
  if (!address.has_value() || prefix == kNoPrefix) {
    return Bad(text, "is no network", "write it as 10.20.0.0/16, one address as 10.20.0.5/32");
  }
  const Ipv4Network network(*address & MaskOf(prefix), prefix);
  if (network.address_ != *address) {
    return Bad(text, "has bits set behind its prefix", "write " + network.text());
  }
  return network;
}

std::string FormatIpv4(std::uint32_t address) {
  return std::to_string(address >> 24U) + "." + std::to_string(address >> 16U & 255U) + "." +
         std::to_string(address >> 8U & 255U) + "." + std::to_string(address & 255U);
}

std::string Ipv4Network::text() const {
  return FormatIpv4(address_) + "/" + std::to_string(prefix_);
}

bool Ipv4Network::Contains(const Ipv4Network& other) const {
  return prefix_ <= other.prefix_ && (other.address_ & MaskOf(prefix_)) == address_;
}

std::span<const Ipv4Network> NeverReachable() {
  static constexpr std::array<Ipv4Network, 5> kNever = {
      Ipv4Network(0x00000000, 8),   // 0.0.0.0/8: this host
      Ipv4Network(0x7f000000, 8),   // 127.0.0.0/8: loopback
      Ipv4Network(0xa9fe0000, 16),  // 169.254.0.0/16: link-local
      Ipv4Network(0xe0000000, 4),   // 224.0.0.0/4: multicast
      Ipv4Network(0xf0000000, 4),   // 240.0.0.0/4: reserved, broadcast
  };
  return kNever;
}

std::string_view Name(Protocol protocol) {
  switch (protocol) {
    case Protocol::kTcp:
      return "tcp";
    case Protocol::kUdp:
      return "udp";
    case Protocol::kIcmp:
      return "icmp";
  }
  return "?";
}

Result<PortRange> PortRange::Parse(std::string_view text) {
  constexpr const char* kHint = "write tcp/443, udp/5000-5100 or icmp";
  if (text == "icmp") {
    return PortRange(Protocol::kIcmp, 0, 0);
  }
  const bool tcp = text.starts_with("tcp/");
  if (!tcp && !text.starts_with("udp/")) {
    return Bad(text, "is no port", kHint);
  }
  const std::string_view ports = text.substr(4);
  const std::size_t dash = ports.find('-');
  const auto first = Number(ports.substr(0, dash), 65535);
  const auto last = dash == std::string_view::npos ? first : Number(ports.substr(dash + 1), 65535);
  if (!first.has_value() || !last.has_value() || *first == 0 || *last < *first) {
    return Bad(text, "is no port or range of ports", kHint);
  }
  return PortRange(tcp ? Protocol::kTcp : Protocol::kUdp, static_cast<std::uint16_t>(*first),
                   static_cast<std::uint16_t>(*last));
}

std::string PortRange::text() const {
  if (protocol_ == Protocol::kIcmp) {
    return "icmp";
  }
  std::string text = std::string(Name(protocol_)) + "/" + std::to_string(first_);
  return first_ == last_ ? text : text + "-" + std::to_string(last_);
}

bool PortRange::Contains(const PortRange& other) const {
  return protocol_ == other.protocol_ && first_ <= other.first_ && last_ >= other.last_;
}

std::optional<PortRange> PortRange::Meet(const PortRange& other) const {
  const std::uint16_t first = std::max(first_, other.first_);
  const std::uint16_t last = std::min(last_, other.last_);
  if (protocol_ != other.protocol_ || first > last) {
    return std::nullopt;
  }
  return PortRange(protocol_, first, last);
}

bool IsDnsName(std::string_view text) {
  if (text.size() > kDnsNameBytesMax) {
    return false;
  }
  int labels = 0;
  bool number = false;
  for (;;) {
    const std::size_t dot = text.find('.');
    const std::string_view label = text.substr(0, dot);
    if (!IsLabel(label)) {
      return false;
    }
    ++labels;
    number = std::all_of(label.begin(), label.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (dot == std::string_view::npos) {
      return labels >= 2 && !number;
    }
    text.remove_prefix(dot + 1);
  }
}

}  // namespace ringfence::model
