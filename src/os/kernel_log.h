#pragma once

// The kernel's own log, as it grows.

#include <optional>
#include <string>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

// From now on. kPermissionDenied where the kernel keeps it from us, kNotFound where there is none.
Result<UniqueFd> OpenKernelLog();
// The text of the next message; nullopt when there is none now. Messages that were overwritten
// before we came to them are passed over.
std::optional<std::string> NextKernelMessage(int fd);

}  // namespace ringfence::os
