#pragma once

#include <string>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

// Holds a lock on `path` (which must be there) beside others who do; LockFile on it is kConflict
// meanwhile. kConflict when LockFile holds it.
Result<UniqueFd> LockShared(const std::string& path);

}  // namespace ringfence::os
