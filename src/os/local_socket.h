#pragma once

// Local sockets with a path, for two processes that a service manager starts apart from each other.
// Messages are those of os/socket_pair.h. Both sides ask the kernel who the other is.

#include <string>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

struct ListenOptions {
  std::string path;        // one that is there already is replaced
  unsigned owner_uid = 0;  // the only user (but root) who can connect
  std::size_t message_bytes_max = 0;
};
Result<UniqueFd> ListenLocal(const ListenOptions& options);  // non-blocking
// One who has connected. kUnavailable: nobody is waiting; kPermissionDenied: it was another user,
// who has been hung up on. Go on after both.
Result<UniqueFd> AcceptLocal(int listener, const ListenOptions& options);

// kPermissionDenied when the one who listens is not root.
Result<UniqueFd> ConnectToRoot(const std::string& path, std::size_t message_bytes_max);

}  // namespace ringfence::os
