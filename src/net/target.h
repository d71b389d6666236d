#pragma once

// The request target: path and query, strictly read. What two readers could read differently is
// refused.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ringfence::net {

inline constexpr std::size_t kTargetBytesMax = 8 * 1024;
inline constexpr std::size_t kQueryPairsMax = 64;

struct Target {
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;
};

// Origin form only ("/v1/leases?tenant=acme"). Refused: absolute and authority form, fragments,
// bytes outside printable ASCII, bad percent-encoding, and paths that decode to something with
// control characters, dot segments or bytes that are not UTF-8.
Result<Target> ParseTarget(std::string_view target);

// "a=1&b=2"; '+' is a space, as forms write it. A name without '=' has an empty value.
Result<std::vector<std::pair<std::string, std::string>>> ParseQuery(std::string_view query);

// Each %XX replaced by its byte. kInvalidArgument when a '%' is not followed by two hex digits.
Result<std::string> PercentDecode(std::string_view text, bool plus_is_space);

}  // namespace ringfence::net
