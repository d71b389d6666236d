#pragma once

// Reading the API's JSON for display: what is absent or of another type shows as nothing, so that
// a newer server's answers still print.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace ringfence::cli {

const Json* Field(const Json& value, std::string_view name);   // null when there is none
std::string TextOf(const Json& value, std::string_view name);  // numbers and truth values too
std::optional<std::int64_t> IntOf(const Json& value, std::string_view name);
bool BoolOf(const Json& value, std::string_view name);
const JsonArray& ArrayOf(const Json& value, std::string_view name);  // an empty one when absent
// The elements that are text, with `between` between them.
std::string JoinOf(const Json& value, std::string_view name, std::string_view between = ", ");

}  // namespace ringfence::cli
