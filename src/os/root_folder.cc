#include "os/root_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "os/error.h"
#include "os/file.h"

namespace ringfence::os {
namespace {

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};

std::string Relative(const std::string& path) {
  const std::size_t first = path.find_first_not_of('/');
  return first == std::string::npos ? "." : path.substr(first);
}

}  // namespace

Result<RootFolder> RootFolder::Open(const std::string& folder) {
  UniqueFd fd(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    return ErrnoError("open the root " + folder);
  }
  return RootFolder(std::move(fd));
}

Result<UniqueFd> RootFolder::OpenAt(const std::string& path, std::uint64_t flags) const {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const std::string relative = Relative(path);
  UniqueFd fd(
      static_cast<int>(syscall(SYS_openat2, fd_.get(), relative.c_str(), &how, sizeof how)));
  if (!fd.valid()) {
    if (errno == ENOTDIR) {
      return Error{Code::kNotFound, path + ": a part of it is no folder"};
    }
    return ErrnoError(path);
  }
  return fd;
}

Result<std::string> RootFolder::Read(const std::string& path, std::size_t bytes_max) const {
  // Looked at before it is opened for reading: opening a pipe or a device may act.
  RINGFENCE_ASSIGN(const UniqueFd place, OpenAt(path, O_PATH));
  struct stat facts{};
  if (fstat(place.get(), &facts) != 0) {
    return ErrnoError(path);
  }
  if (!S_ISREG(facts.st_mode)) {
    return Error{Code::kInvalidArgument, path + ": no regular file"};
  }
  RINGFENCE_ASSIGN(const UniqueFd fd, OpenAt(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat again{};
  if (fstat(fd.get(), &again) != 0 || again.st_ino != facts.st_ino ||
      again.st_dev != facts.st_dev) {
    return Error{Code::kUnavailable, path + ": changed while it was read"};
  }
  std::string text;
  std::array<char, 16384> piece{};
  for (;;) {
    const ssize_t got = read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return ErrnoError(path);
    }
    if (got == 0) {
      return text;
    }
    if (text.size() + static_cast<std::size_t>(got) > bytes_max) {
      return Error{Code::kExhausted,
                   path + ": longer than " + std::to_string(bytes_max) + " bytes"};
    }
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

Result<std::vector<std::string>> RootFolder::List(const std::string& path,
                                                  std::size_t count_max) const {
  RINGFENCE_ASSIGN(UniqueFd fd, OpenAt(path, O_RDONLY | O_DIRECTORY));
  const std::unique_ptr<DIR, CloseDir> dir(fdopendir(fd.get()));
  if (dir == nullptr) {
    return ErrnoError(path);
  }
  (void)fd.Release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(dir.get());
    if (entry == nullptr) {
      if (errno != 0) {
        return ErrnoError(path);
      }
      break;
    }
    const std::string name(static_cast<const char*>(entry->d_name));
    if (name == "." || name == "..") {
      continue;
    }
    if (names.size() >= count_max) {
      return Error{Code::kExhausted,
                   path + ": more than " + std::to_string(count_max) + " entries"};
    }
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<RootFileFacts> RootFolder::Look(const std::string& path) const {
  RINGFENCE_ASSIGN(const UniqueFd fd, OpenAt(path, O_PATH));
  struct stat facts{};
  if (fstat(fd.get(), &facts) != 0) {
    return ErrnoError(path);
  }
  RootFileFacts result;
  result.folder = S_ISDIR(facts.st_mode);
  result.mode = facts.st_mode & 07777U;
  result.uid = facts.st_uid;
  result.gid = facts.st_gid;
  result.bytes = static_cast<std::uint64_t>(facts.st_size);
  result.modified_s = facts.st_mtim.tv_sec;
  return result;
}

Result<std::string> RootFolder::Link(const std::string& path) const {
  RINGFENCE_ASSIGN(const UniqueFd fd, OpenAt(path, O_PATH | O_NOFOLLOW));
  std::array<char, PATH_MAX> target{};
  const ssize_t size = readlinkat(fd.get(), "", target.data(), target.size());
  if (size < 0) {
    return Error{Code::kInvalidArgument, path + ": no link"};
  }
  return std::string(target.data(), static_cast<std::size_t>(size));
}

}  // namespace ringfence::os
