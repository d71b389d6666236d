#pragma once

// What --at and --context say of the circumstances of a request.

#include <vector>

#include "cedar/value.h"
#include "cli/command.h"

namespace ringfence::cli {

// Only what was said: nothing else is known.
Result<cedar::ValueRecord> KnownContext(const Invocation& invocation);
// With the time of now, where none was said.
Result<cedar::ValueRecord> ContextAtOrNow(const Invocation& invocation);

// --policy, --at, --context.
std::vector<OptionSpec> KnownContextOptions();

}  // namespace ringfence::cli
