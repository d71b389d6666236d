#pragma once

// Files and folders. Every name is opened close-on-exec.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

// The whole file; kExhausted when it is longer than `bytes_max`.
Result<Bytes> ReadFile(const std::string& path, std::size_t bytes_max);
Result<std::string> ReadText(const std::string& path, std::size_t bytes_max);

// All or nothing, and durable when it returns: written beside, synced, renamed over, folder synced.
Status WriteFileDurable(const std::string& path, ByteView bytes, unsigned mode = 0644);
// The same without waiting for the disk.
Status WriteFile(const std::string& path, ByteView bytes, unsigned mode = 0644);
// Fails with kConflict when the path exists. Durable.
Status CreateFileDurable(const std::string& path, ByteView bytes, unsigned mode = 0644);

Status MakeDirs(const std::string& path, unsigned mode = 0755);  // like mkdir -p
Status SyncDir(const std::string& path);
Status Rename(const std::string& from,
              const std::string& to);        // durable; over a file, not a folder
Status RemoveFile(const std::string& path);  // absent is OK
Status RemoveTree(const std::string& path);  // absent is OK; links are removed, not followed
bool Exists(const std::string& path);
bool IsDirectory(const std::string& path);
Result<std::vector<std::string>> ListDir(const std::string& path);  // names, sorted
Result<std::uint64_t> FileBytes(const std::string& path);
Result<std::string> AbsolutePath(const std::string& path);  // links resolved; must exist
Status ChangeOwner(const std::string& path, unsigned uid, unsigned gid);
Status ChangeMode(const std::string& path, unsigned mode);
// Bytes that an unprivileged writer could still use on the file system of `path`.
Result<std::uint64_t> FreeBytes(const std::string& path);

// Holds an exclusive lock on `path` (made if absent) as long as the descriptor lives.
// kConflict when another process holds it.
Result<UniqueFd> LockFile(const std::string& path);

Result<UniqueFd> OpenRead(const std::string& path);
Result<UniqueFd> OpenAppend(const std::string& path, unsigned mode = 0600);  // made if absent
Result<std::size_t> ReadSome(int fd, std::span<std::byte> into);             // 0: end of file
Status WriteAll(int fd, ByteView bytes);
// Up to `bytes_max` bytes from `offset` on; fewer only at the end of the file.
Result<Bytes> ReadAt(int fd, std::uint64_t offset, std::size_t bytes_max);

// A file that only grows. Owned by one thread.
class AppendFile {
 public:
  static Result<AppendFile> Open(const std::string& path, unsigned mode = 0600);
  Status Append(ByteView bytes);
  // OK only when everything appended so far would survive a power cut.
  Status Sync();
  // Cuts the file to `size`: how a torn tail is dropped after a crash.
  Status Truncate(std::uint64_t size);

 private:
  explicit AppendFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace ringfence::os
