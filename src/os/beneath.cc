#include "os/beneath.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>

#include "os/error.h"

namespace ringfence::os {
namespace {

constexpr unsigned kOthersMayWrite = S_IWGRP | S_IWOTH;
constexpr int kDepthMax = 64;
constexpr int kAgainMax = 64;
constexpr std::string_view kStagedStart = ".ringfence-";
constexpr std::string_view kStagedEnd = ".staged";
constexpr std::uint64_t kNoLinks = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

Result<UniqueFd> Open(int folder, const std::string& path, std::uint64_t flags,
                      std::uint64_t resolve) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = resolve;
  for (int attempt = 0;; ++attempt) {
    UniqueFd fd(static_cast<int>(syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how)));
    if (fd.valid()) {
      return fd;
    }
    // The kernel could not tell, as something was renamed meanwhile.
    if ((errno == EAGAIN || errno == EINTR) && attempt < kAgainMax) {
      continue;
    }
    if (errno == ELOOP || errno == EXDEV) {
      return Error{Code::kPermissionDenied,
                   "open " + path + ": a link is on the way, or it leads out of its folder"};
    }
    return ErrnoError("open " + path);
  }
}

OpenFacts FromStat(const struct stat& facts) {
  OpenFacts out;
  out.kind = S_ISREG(facts.st_mode)   ? Kind::kFile
             : S_ISDIR(facts.st_mode) ? Kind::kFolder
             : S_ISLNK(facts.st_mode) ? Kind::kLink
             : S_ISCHR(facts.st_mode) ? Kind::kCharacterDevice
             : S_ISBLK(facts.st_mode) ? Kind::kBlockDevice
                                      : Kind::kOther;
  out.uid = facts.st_uid;
  out.mode = facts.st_mode & 07777U;
  out.file_system = facts.st_dev;
  out.inode = facts.st_ino;
  if (out.kind == Kind::kCharacterDevice || out.kind == Kind::kBlockDevice) {
    out.major = major(facts.st_rdev);
    out.minor = minor(facts.st_rdev);
  }
  return out;
}

std::string OwnLink(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// An O_PATH descriptor made readable. It is the same file, whatever its name leads to by now.
Result<UniqueFd> Readable(int fd, int flags) {
  UniqueFd readable(open(OwnLink(fd).c_str(), flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!readable.valid()) {
    return ErrnoError("open for reading");
  }
  return readable;
}

Status WriteWhole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) {
      continue;
    }
    if (wrote <= 0) {
      return ErrnoError("write");
    }
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

Status SyncFolder(int folder) {
  RINGFENCE_ASSIGN(const UniqueFd readable, Readable(folder, O_DIRECTORY));
  if (fsync(readable.get()) != 0) {
    return ErrnoError("sync the folder");
  }
  return {};
}

// Why somebody other than root could change what lies in this folder; empty: nobody could.
std::string WhyNotRoots(const struct stat& facts, bool itself) {
  if (facts.st_uid != 0) {
    return "belongs to user " + std::to_string(facts.st_uid);
  }
  const bool sticky = (facts.st_mode & S_ISVTX) != 0;
  if ((facts.st_mode & kOthersMayWrite) != 0 && (itself || !sticky)) {
    return "can be written to by others than root";
  }
  return {};
}

}  // namespace

Result<UniqueFd> OpenFolder(const std::string& path) {
  return Open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
}

Result<UniqueFd> OpenFolderInRoot(int root, const std::string& path) {
  return Open(root, path, O_PATH | O_DIRECTORY, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

Result<UniqueFd> OpenFolderOfRoot(const std::string& path) {
  RINGFENCE_ASSIGN(UniqueFd folder, OpenFolder(path));
  UniqueFd at(dup(folder.get()));
  for (int depth = 0; depth < kDepthMax; ++depth) {
    struct stat here{};
    if (!at.valid() || fstat(at.get(), &here) != 0) {
      return ErrnoError("look at " + path);
    }
    if (const std::string why = WhyNotRoots(here, depth == 0); !why.empty()) {
      RINGFENCE_ASSIGN(const std::string name, PathOf(at.get()));
      return Error{Code::kFailedPrecondition,
                   name + " " + why + ", so what lies in " + path + " cannot be vouched for",
                   "chown root:root " + name + " && chmod go-w " + name};
    }
    UniqueFd above(openat(at.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat parent{};
    if (!above.valid() || fstat(above.get(), &parent) != 0) {
      return ErrnoError("look above " + path);
    }
    if (parent.st_dev == here.st_dev && parent.st_ino == here.st_ino) {
      return folder;
    }
    at = std::move(above);
  }
  return Error{Code::kInvalidArgument, path + " lies too deep"};
}

Result<UniqueFd> OpenBeneath(int folder, const std::string& path) {
  return Open(folder, path, O_PATH, kNoLinks);
}

Result<OpenFacts> FactsOf(int fd) {
  struct stat facts{};
  if (fstat(fd, &facts) != 0) {
    return ErrnoError("look at an open file");
  }
  return FromStat(facts);
}

Result<OpenFacts> FactsBeneath(int folder, const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return Error{Code::kInvalidArgument, name + " is a path, not a name"};
  }
  struct stat facts{};
  if (fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    return ErrnoError("look at " + name);
  }
  return FromStat(facts);
}

Result<std::vector<std::string>> NamesIn(int folder, std::size_t count_max) {
  RINGFENCE_ASSIGN(UniqueFd readable, Readable(folder, O_DIRECTORY));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(readable.get()), closedir);
  if (stream == nullptr) {
    return ErrnoError("list a folder");
  }
  (void)readable.Release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(stream.get());
    if (entry == nullptr) {
      if (errno != 0) {
        return ErrnoError("list a folder");
      }
      break;
    }
    std::string name = entry->d_name;
    if (name == "." || name == "..") {
      continue;
    }
    if (names.size() >= count_max) {
      return Error{Code::kExhausted,
                   "a folder holds more than " + std::to_string(count_max) + " names"};
    }
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> ReadBeneath(int folder, const std::string& path, std::size_t bytes_max) {
  RINGFENCE_ASSIGN(const UniqueFd found, OpenBeneath(folder, path));
  RINGFENCE_ASSIGN(const OpenFacts facts, FactsOf(found.get()));
  if (facts.kind != Kind::kFile) {
    return Error{Code::kInvalidArgument, path + " is not a regular file"};
  }
  RINGFENCE_ASSIGN(const UniqueFd file, Readable(found.get(), 0));
  std::string text;
  char chunk[16384];
  for (;;) {
    const ssize_t got = read(file.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return ErrnoError("read " + path);
    }
    if (got == 0) {
      return text;
    }
    text.append(chunk, static_cast<std::size_t>(got));
    if (text.size() > bytes_max) {
      return Error{Code::kExhausted,
                   path + " is longer than " + std::to_string(bytes_max) + " bytes"};
    }
  }
}

std::string StagedName(const std::string& name) {
  return std::string(kStagedStart) + name + std::string(kStagedEnd);
}

bool IsStagedName(std::string_view name) {
  return name.starts_with(kStagedStart) && name.ends_with(kStagedEnd);
}

Status ReplaceBeneath(int folder, const std::string& name, std::string_view text, unsigned mode) {
  const std::string staged = StagedName(name);
  RINGFENCE_TRY(RemoveBeneath(folder, staged));  // of a writer that was killed
  const UniqueFd file(
      openat(folder, staged.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) {
    return ErrnoError("make " + staged);
  }
  const auto write_and_name = [&]() -> Status {
    RINGFENCE_TRY(WriteWhole(file.get(), text));
    if (fchmod(file.get(), mode) != 0 || fsync(file.get()) != 0) {
      return ErrnoError("write " + staged);
    }
    return RenameBeneath(folder, staged, name);
  };
  Status written = write_and_name();
  if (!written.has_value()) {
    (void)unlinkat(folder, staged.c_str(), 0);
  }
  return written;
}

Status RemoveBeneath(int folder, const std::string& name) {
  if (unlinkat(folder, name.c_str(), 0) != 0) {
    return errno == ENOENT ? Status() : Status(ErrnoError("remove " + name));
  }
  return SyncFolder(folder);
}

Status RenameBeneath(int folder, const std::string& from, const std::string& to) {
  if (renameat(folder, from.c_str(), folder, to.c_str()) != 0) {
    return ErrnoError("rename " + from + " to " + to);
  }
  return SyncFolder(folder);
}

Status MakeFolderBeneath(int folder, const std::string& name, unsigned mode) {
  if (mkdirat(folder, name.c_str(), mode) != 0) {
    return errno == EEXIST ? Status() : Status(ErrnoError("make folder " + name));
  }
  return SyncFolder(folder);
}

Status RemoveFolderBeneath(int folder, const std::string& name) {
  if (unlinkat(folder, name.c_str(), AT_REMOVEDIR) != 0) {
    return errno == ENOENT ? Status() : Status(ErrnoError("remove folder " + name));
  }
  return SyncFolder(folder);
}

Result<std::string> PathOf(int fd) {
  char path[PATH_MAX];
  const ssize_t bytes = readlink(OwnLink(fd).c_str(), path, sizeof path);
  if (bytes <= 0 || static_cast<std::size_t>(bytes) >= sizeof path) {
    return ErrnoError("name an open file");
  }
  return std::string(path, static_cast<std::size_t>(bytes));
}

}  // namespace ringfence::os
