#include "os/file_owner.h"

#include <sys/stat.h>
#include <unistd.h>

#include "os/error.h"

namespace ringfence::os {

Result<FileOwner> OwnerOf(const std::string& path) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0) {
    return ErrnoError("look at " + path);
  }
  return FileOwner{facts.st_uid, facts.st_gid, facts.st_mode & 07777U};
}

Status ChangeOwner(int fd, unsigned uid, unsigned gid) {
  if (fchown(fd, uid, gid) != 0) {
    return ErrnoError("change owner of an open file");
  }
  return {};
}

}  // namespace ringfence::os
