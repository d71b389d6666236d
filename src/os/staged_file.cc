#include "os/staged_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "os/error.h"

namespace ringfence::os {

Result<UniqueFd> OpenForWrite(const std::string& path, unsigned mode) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd.valid() || fchmod(fd.get(), mode) != 0) {
    return ErrnoError("write " + path);
  }
  return fd;
}

void StartWriting(int fd) { (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE); }

Status SyncData(int fd) {
  if (fdatasync(fd) != 0) {
    return ErrnoError("sync");
  }
  return {};
}

Status RenameStaged(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoError("rename " + from + " to " + to);
  }
  return {};
}

Result<bool> MakeDir(const std::string& path, unsigned mode) {
  if (mkdir(path.c_str(), mode) == 0) {
    if (chmod(path.c_str(), mode) != 0) {
      return ErrnoError("make folder " + path);
    }
    return true;
  }
  if (errno == EEXIST) {
    return false;
  }
  return ErrnoError("make folder " + path);
}

Result<RegularFile> OpenRegular(const std::string& path) {
  RegularFile file;
  file.fd = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts{};
  if (!file.fd.valid()) {
    if (errno == ELOOP) {
      return Error{Code::kInvalidArgument, "open " + path + ": it is a link"};
    }
    return ErrnoError("open " + path);
  }
  if (fstat(file.fd.get(), &facts) != 0) {
    return ErrnoError("look at " + path);
  }
  if (!S_ISREG(facts.st_mode)) {
    return Error{Code::kInvalidArgument, "open " + path + ": it is not a plain file"};
  }
  file.bytes = static_cast<std::uint64_t>(facts.st_size);
  return file;
}

}  // namespace ringfence::os
