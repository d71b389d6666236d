#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/api.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/follow.h"
#include "cli/presses.h"

namespace ringfence::cli {

// The body of POST /v1/leases that the words of `ringfence run` ask for.
Result<Json> LeaseRequestOf(const Parsed& parsed, const std::string& default_tenant);

// --wait[=TIME]: how long a request may wait for room; none: not at all.
OptionSpec WaitOption();
// --profile and --gpu-memory, into a request.
std::vector<OptionSpec> SliceOptions();
Status AddSlice(const Parsed& parsed, JsonObject& request);
Result<std::optional<Milliseconds>> WaitOf(const Parsed& parsed);

struct RunOptions {
  bool detach = false;
  FollowOptions follow{.end_on_press = true};
  Milliseconds close_wait = std::chrono::minutes(10);  // for the final lease with -o json
};

// Asks for the lease, follows the job and returns what to exit with.
Result<int> RunJob(Api& api, Console& console, Presses& presses, const Json& request,
                   const RunOptions& options);

// The lease once it is over, or as it is when `longest` has passed or a press came.
Result<Json> WaitUntilOver(Api& api, Console& console, Presses& presses, const std::string& lease,
                           Milliseconds longest);

}  // namespace ringfence::cli
