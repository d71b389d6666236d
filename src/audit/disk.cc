#include "audit/disk.h"

#include "base/check.h"
#include "os/file.h"
#include "os/staged_file.h"

namespace ringfence::audit {
namespace {

// The sync of so few files is over as soon as if the disk had begun earlier (measured).
constexpr std::size_t kFewFiles = 4;

}  // namespace

Result<bool> RealDisk::MakeDir(const std::string& path) { return os::MakeDir(path, 0755); }

Status RealDisk::Write(const std::string& path, ByteView bytes) {
  RINGFENCE_CHECK(unsynced_.size() < kOpenFilesMax);
  RINGFENCE_ASSIGN(os::UniqueFd fd, os::OpenForWrite(path, 0644));
  if (const Status status = os::WriteAll(fd.get(), bytes); !status.has_value()) {
    return Prefix(path, status.error());
  }
  if (unsynced_.size() >= kFewFiles) {
    os::StartWriting(fd.get());
  }
  // Kept open, so that an error of a write-back that happens meanwhile is seen by SyncFile.
  unsynced_[path] = std::move(fd);
  return {};
}

Status RealDisk::SyncFile(const std::string& path) {
  const auto found = unsynced_.find(path);
  RINGFENCE_CHECK(found != unsynced_.end());
  const os::UniqueFd fd = std::move(found->second);
  unsynced_.erase(found);
  if (const Status status = os::SyncData(fd.get()); !status.has_value()) {
    return Prefix(path, status.error());
  }
  return {};
}

Status RealDisk::SyncDir(const std::string& path) { return os::SyncDir(path); }

Status RealDisk::Rename(const std::string& from, const std::string& to) {
  return os::RenameStaged(from, to);
}

Status RealDisk::RemoveTree(const std::string& path) { return os::RemoveTree(path); }

}  // namespace ringfence::audit
