#pragma once

// TCP sockets, close-on-exec and non-blocking from their first moment: no program started by
// another thread inherits one.

#include <optional>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

enum class IpVersion { kV4, kV6 };

Result<UniqueFd> TcpSocket(IpVersion version);

// The next connection waiting at `listener`; none when no one waits or the one that did is gone.
// kExhausted when this process or machine has no descriptor or memory left for it.
Result<std::optional<UniqueFd>> AcceptTcp(int listener);

}  // namespace ringfence::os
