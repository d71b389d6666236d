#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ringfence::net {

struct Address {
  std::string host;  // "127.0.0.1", "::1", "localhost"
  std::uint16_t port = 0;
};

// "127.0.0.1:8443", "[::1]:8443", "localhost:8443".
Result<Address> ParseAddress(std::string_view text);
std::string FormatAddress(const Address& address);

}  // namespace ringfence::net
