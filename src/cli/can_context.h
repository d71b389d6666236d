#pragma once

// What --at and --context say of the circumstances of a request.

#include <vector>

#include "cedar/value.h"
#include "cli/command.h"
#include "cli/console.h"
#include "model/tenant.h"
#include "policy/authorizer.h"

namespace ringfence::cli {

// Only what was said: nothing else is known.
Result<cedar::ValueRecord> KnownContext(const Invocation& invocation);
// With the time of now, where none was said.
Result<cedar::ValueRecord> ContextAtOrNow(const Invocation& invocation);

// What the action is about, when that is not what was named: said, and "/" returned.
model::TenantPath AboutWhat(Console& console, policy::Action action,
                            const model::TenantPath& named);

// --policy, --in-force, --at, --context.
std::vector<OptionSpec> KnownContextOptions();

}  // namespace ringfence::cli
