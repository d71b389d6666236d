#pragma once

#include "base/json.h"

namespace ringfence::isolate {

// The seccomp part of a box's OCI configuration: what is not named is refused with EPERM.
// docs/formats/jailer.md lists what is left out on purpose, and why.
Json BoxSeccomp();

}  // namespace ringfence::isolate
