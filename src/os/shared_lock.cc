#include "os/shared_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "os/error.h"

namespace ringfence::os {

Result<UniqueFd> LockShared(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) {
    return ErrnoError("open lock " + path);
  }
  if (flock(fd.get(), LOCK_SH | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return Error{Code::kConflict, path + " is locked by another process"};
    }
    return ErrnoError("lock " + path);
  }
  return fd;
}

}  // namespace ringfence::os
