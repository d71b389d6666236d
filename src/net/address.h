#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::net {

struct Address {
  std::string host;  // "127.0.0.1", "::1", "localhost"
  std::uint16_t port = 0;
};

// "127.0.0.1:8443", "[::1]:8443", "localhost:8443".
Result<Address> ParseAddress(std::string_view text);
// Servers of one database, any of which will do: "a.example:8443,b.example:8443".
inline constexpr std::size_t kServersMax = 8;
Result<std::vector<Address>> ParseAddresses(std::string_view text);
std::string FormatAddress(const Address& address);

}  // namespace ringfence::net
