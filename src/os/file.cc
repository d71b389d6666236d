#include "os/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "os/error.h"

namespace ringfence::os {
namespace {

std::string ParentOf(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status RemoveTreeAt(int parent, const char* name, const std::string& shown, int depth) {
  if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) {
    return {};
  }
  if (errno != EISDIR && errno != EPERM) {
    return ErrnoError("remove " + shown);
  }
  if (depth > 64) {
    return Error{Code::kExhausted, "remove " + shown + ": nested too deep"};
  }
  UniqueFd fd(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    return ErrnoError("remove " + shown);
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(fdopendir(fd.get()), &closedir);
  if (dir == nullptr) {
    return ErrnoError("remove " + shown);
  }
  const int open_fd = fd.Release();  // closedir owns it now
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view entry_name = entry->d_name;
    if (entry_name != "." && entry_name != "..") {
      RINGFENCE_TRY(RemoveTreeAt(open_fd, entry->d_name, shown + "/" + entry->d_name, depth + 1));
    }
  }
  if (unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
    return ErrnoError("remove " + shown);
  }
  return {};
}

enum class Over { kAnything, kAnythingNotDurable, kNothing };

// Whole or not at all, whenever we die.
Status WriteBeside(const std::string& path, ByteView bytes, unsigned mode, Over over) {
  const bool durable = over != Over::kAnythingNotDurable;
  const std::string temporary =
      path + ".new." + std::to_string(getpid()) + "." + std::to_string(gettid());
  UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd.valid()) {
    return ErrnoError("write " + path);
  }
  Status status = WriteAll(fd.get(), bytes);
  if (status.has_value() && durable && fsync(fd.get()) != 0) {
    status = ErrnoError("sync " + path);
  }
  if (status.has_value() && over == Over::kNothing) {
    if (link(temporary.c_str(), path.c_str()) != 0) {
      status = ErrnoError("create " + path);
    }
    (void)unlink(temporary.c_str());
  } else if (status.has_value() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoError("rename over " + path);
  }
  if (!status.has_value()) {
    (void)unlink(temporary.c_str());
    return Prefix(path, status.error());
  }
  return durable ? SyncDir(ParentOf(path)) : Status();
}

}  // namespace

void UniqueFd::Reset() {
  if (fd_ >= 0) {
    (void)close(fd_);
    fd_ = -1;
  }
}

Result<std::size_t> ReadSome(int fd, std::span<std::byte> into) {
  for (;;) {
    const ssize_t got = read(fd, into.data(), into.size());
    if (got >= 0) {
      return static_cast<std::size_t>(got);
    }
    if (errno != EINTR) {
      return ErrnoError("read");
    }
  }
}

Result<Bytes> ReadAt(int fd, std::uint64_t offset, std::size_t bytes_max) {
  Bytes bytes(bytes_max);
  std::size_t have = 0;
  while (have < bytes_max) {
    const ssize_t got =
        pread(fd, bytes.data() + have, bytes_max - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return ErrnoError("read");
    }
    if (got == 0) {
      break;
    }
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

Status WriteAll(int fd, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0) {
      if (errno == EINTR) {
        continue;
      }
      return ErrnoError("write");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Result<UniqueFd> OpenRead(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return ErrnoError("open " + path);
  }
  return fd;
}

Result<UniqueFd> OpenAppend(const std::string& path, unsigned mode) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, mode));
  if (!fd.valid()) {
    return ErrnoError("open " + path);
  }
  return fd;
}

Result<Bytes> ReadFile(const std::string& path, std::size_t bytes_max) {
  RINGFENCE_ASSIGN(const UniqueFd fd, OpenRead(path));
  Bytes bytes;
  std::array<std::byte, 65536> chunk{};
  for (;;) {
    const Result<std::size_t> got = ReadSome(fd.get(), chunk);
    if (!got.has_value()) {
      return Prefix(path, got.error());
    }
    if (*got == 0) {
      return bytes;
    }
    if (bytes.size() + *got > bytes_max) {
      return Error{Code::kExhausted,
                   path + " is longer than the " + std::to_string(bytes_max) + " bytes allowed"};
    }
    Append(bytes, ByteView(chunk).first(*got));
  }
}

Result<std::string> ReadText(const std::string& path, std::size_t bytes_max) {
  RINGFENCE_ASSIGN(const Bytes bytes, ReadFile(path, bytes_max));
  return ToText(bytes);
}

Status WriteFileDurable(const std::string& path, ByteView bytes, unsigned mode) {
  return WriteBeside(path, bytes, mode, Over::kAnything);
}

Status WriteFile(const std::string& path, ByteView bytes, unsigned mode) {
  return WriteBeside(path, bytes, mode, Over::kAnythingNotDurable);
}

Status CreateFileDurable(const std::string& path, ByteView bytes, unsigned mode) {
  return WriteBeside(path, bytes, mode, Over::kNothing);
}

Status MakeDirs(const std::string& path, unsigned mode) {
  if (path.empty() || path == "/" || path == "." || IsDirectory(path)) {
    return {};
  }
  RINGFENCE_TRY(MakeDirs(ParentOf(path), mode));
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    return ErrnoError("make folder " + path);
  }
  return {};
}

Status SyncDir(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || fsync(fd.get()) != 0) {
    return ErrnoError("sync folder " + path);
  }
  return {};
}

Status Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoError("rename " + from + " to " + to);
  }
  return SyncDir(ParentOf(to));
}

Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return ErrnoError("remove " + path);
  }
  return {};
}

Status RemoveTree(const std::string& path) { return RemoveTreeAt(AT_FDCWD, path.c_str(), path, 0); }

bool Exists(const std::string& path) {
  struct stat facts{};
  return lstat(path.c_str(), &facts) == 0;
}

bool IsDirectory(const std::string& path) {
  struct stat facts{};
  return stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

Result<std::vector<std::string>> ListDir(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(path.c_str()), &closedir);
  if (dir == nullptr) {
    return ErrnoError("list " + path);
  }
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::uint64_t> FileBytes(const std::string& path) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0) {
    return ErrnoError("look at " + path);
  }
  return static_cast<std::uint64_t>(facts.st_size);
}

Result<std::string> AbsolutePath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(realpath(path.c_str(), nullptr), &free);
  if (resolved == nullptr) {
    return ErrnoError("resolve " + path);
  }
  return std::string(resolved.get());
}

Status ChangeOwner(const std::string& path, unsigned uid, unsigned gid) {
  if (lchown(path.c_str(), uid, gid) != 0) {
    return ErrnoError("change owner of " + path);
  }
  return {};
}

Status ChangeMode(const std::string& path, unsigned mode) {
  if (chmod(path.c_str(), mode) != 0) {
    return ErrnoError("change mode of " + path);
  }
  return {};
}

Result<std::uint64_t> FreeBytes(const std::string& path) {
  struct statvfs facts{};
  if (statvfs(path.c_str(), &facts) != 0) {
    return ErrnoError("look at the file system of " + path);
  }
  return static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize;
}

Result<UniqueFd> LockFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    return ErrnoError("open lock " + path);
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return Error{Code::kConflict, path + " is locked by another process"};
    }
    return ErrnoError("lock " + path);
  }
  return fd;
}

Result<AppendFile> AppendFile::Open(const std::string& path, unsigned mode) {
  RINGFENCE_ASSIGN(UniqueFd fd, OpenAppend(path, mode));
  RINGFENCE_TRY(SyncDir(ParentOf(path)));
  return AppendFile(std::move(fd));
}

Status AppendFile::Append(ByteView bytes) { return WriteAll(fd_.get(), bytes); }

Status AppendFile::Sync() {
  if (fdatasync(fd_.get()) != 0) {
    return ErrnoError("sync");
  }
  return {};
}

Status AppendFile::Truncate(std::uint64_t size) {
  if (ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) {
    return ErrnoError("truncate");
  }
  return Sync();
}

}  // namespace ringfence::os
