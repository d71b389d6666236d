#pragma once

// One value of an object against the constants of a comparison.

#include "base/json.h"
#include "detect/pattern.h"

namespace ringfence::detect {

// Whether the value satisfies the comparison, its NOT included. `value` is what the path
// led to; `name` is the last property on the way, which says how bytes are written
// ("..._hex", "..._bin").
bool Satisfies(const Comparison& comparison, const Json& value, std::string_view name);

// LIKE: % is any number of characters, _ is one. The whole text must match.
bool Like(std::string_view text, std::string_view pattern);

}  // namespace ringfence::detect
