#include "os/commit.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "os/error.h"
#include "os/file.h"

namespace ringfence::os {

Status RenameNew(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0) {
    return ErrnoError("rename " + from + " to " + to);
  }
  const std::size_t slash = to.find_last_of('/');
  return SyncDir(slash == std::string::npos ? "." : slash == 0 ? "/" : to.substr(0, slash));
}

Status SyncFileSystem(const std::string& path) {
  RINGFENCE_ASSIGN(const UniqueFd fd, OpenRead(path));
  if (syncfs(fd.get()) != 0) {
    return ErrnoError("sync the file system of " + path);
  }
  return {};
}

}  // namespace ringfence::os
