#pragma once

// The commands of `ringfence assess` that speak with a server.

#include "base/result.h"
#include "cli/command.h"

namespace ringfence::cli {

Result<int> AssessSend(Invocation& invocation);

}  // namespace ringfence::cli
