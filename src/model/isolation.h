#pragma once

#include <string_view>

#include "base/result.h"

namespace ringfence::model {

// How a slice is separated from its neighbours, weakest first.
enum class IsolationClass { kMps, kTime, kMig, kGpu, kNode };
std::string_view Name(IsolationClass isolation);
Result<IsolationClass> ParseIsolationClass(std::string_view text);

}  // namespace ringfence::model
