#include "net/address.h"

#include <charconv>

namespace ringfence::net {

Result<Address> ParseAddress(std::string_view text) {
  constexpr std::size_t kAddressBytesMax = 300;
  const Error bad{Code::kInvalidArgument,
                  "not an address and port: \"" + std::string(text.substr(0, 80)) + "\"",
                  "write it as 127.0.0.1:8443 or [::1]:8443", "address"};
  const std::size_t colon = text.rfind(':');
  if (text.size() > kAddressBytesMax || colon == std::string_view::npos || colon == 0) {
    return bad;
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']' && host.size() > 2) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of("[]:") != std::string_view::npos) {
    return bad;
  }
  for (const char c : host) {
    if (c <= ' ' || c >= '\x7f' || c == '/') {
      return bad;
    }
  }
  Address address{std::string(host)};
  const auto [end, failure] =
      std::from_chars(port.data(), port.data() + port.size(), address.port, 10);
  if (port.empty() || failure != std::errc() || end != port.data() + port.size()) {
    return bad;
  }
  return address;
}

Result<std::vector<Address>> ParseAddresses(std::string_view text) {
  std::vector<Address> addresses;
  for (bool last = false; !last;) {
    const std::size_t comma = text.find(',');
    last = comma == std::string_view::npos;
    RINGFENCE_ASSIGN(Address address, ParseAddress(text.substr(0, comma)));
    addresses.push_back(std::move(address));
    text.remove_prefix(last ? 0 : comma + 1);
    if (!last && addresses.size() == kServersMax) {
      return Error{Code::kInvalidArgument,
                   "more than " + std::to_string(kServersMax) + " addresses",
                   "name fewer, or one that stands for all", "address"};
    }
  }
  return addresses;
}

std::string FormatAddress(const Address& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace ringfence::net
