#pragma once

#include <string>

#include "base/result.h"
#include "base/secret.h"

namespace ringfence::os {

// Asks at the terminal of this process, whatever its standard input is, without showing what is
// typed. kFailedPrecondition when there is no terminal, kUnavailable when it is given up (Ctrl-C,
// Ctrl-D). The terminal is as it was when this returns.
Result<SecretBytes> AskSecret(const std::string& prompt, std::size_t bytes_max);

}  // namespace ringfence::os
