#pragma once

#include "base/json.h"

namespace ringfence::isolate {

// The seccomp part of a box's OCI configuration: what is not named is refused with EPERM.
// docs/formats/jailer.md lists what is left out on purpose, and why.
// Without `huge_pages` no call can ask for memory of huge pages, which a memory limit does not
// count.
Json BoxSeccomp(bool huge_pages = false);

}  // namespace ringfence::isolate
