#pragma once

// Indicators as the API and the database have them, and what an event that shows one is found as.

#include "base/json.h"
#include "detect/alert.h"
#include "detect/indicator.h"

namespace ringfence::detect {

inline constexpr std::size_t kIndicatorValueBytesMax = 16 * 1024;

JsonObject IndicatorToJson(const Indicator& indicator);
// kInvalidArgument for what ParseBundle and ParseList would not have given.
Result<Indicator> IndicatorFromJson(const Json& json);

Match MatchOf(const Indicator& indicator);

}  // namespace ringfence::detect
