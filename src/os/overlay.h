#pragma once

#include <string>

#include "base/result.h"

namespace ringfence::os {

// Shows at `to`, read-only, the folder `upper` over the folder `lower`: where both have something,
// it is upper's, and folders show what is in both. Nothing can be written, no device works, no
// set-user-id bit counts. Paths without ':', ',' and '\'.
Status MountLayers(const std::string& upper, const std::string& lower, const std::string& to);

}  // namespace ringfence::os
