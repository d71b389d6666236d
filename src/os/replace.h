#pragma once

#include "base/result.h"
#include "os/process.h"

namespace ringfence::os {

// Becomes another program: same process, `path`, `arguments` and `environment` of the options and
// the descriptors 0, 1 and 2; every other one of ours is close-on-exec. Returns only an error.
Error ReplaceSelf(const SpawnOptions& options);

}  // namespace ringfence::os
