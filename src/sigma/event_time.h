#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace ringfence::sigma {

// A time as events write it: ISO 8601 (a blank for the T, any number of decimals, Z, an offset or
// nothing, which means UTC), or a number of seconds or (from 10^11 on) milliseconds since 1970.
std::optional<Timestamp> ParseEventTime(std::string_view text);

// Fields that are looked at for an event's time, the first one that has one wins.
const std::vector<std::string>& DefaultTimeFields();

}  // namespace ringfence::sigma
