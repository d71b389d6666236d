#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ringfence::net {

// The certificate, among those a server (or the first of several that is there) shows, whose
// SHA-256 is `fingerprint` (hex). Nothing else about the server is believed and nothing is sent to
// it: with the certificate in hand, a Client then verifies the server in the usual way.
// kUnavailable when it is not there.
Result<std::string> FetchCa(const std::string& address, std::string_view fingerprint);

}  // namespace ringfence::net
