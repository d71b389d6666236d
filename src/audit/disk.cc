#include "audit/disk.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "base/check.h"
#include "os/file.h"
#include "os/staged_file.h"

namespace ringfence::audit {
namespace {

// The sync of so few files is over as soon as if the disk had begun earlier (measured).
constexpr std::size_t kFewFiles = 4;
constexpr std::size_t kSyncsAtOnce = 16;

Status SyncOpen(const std::string& path, int fd) {
  const Status status = os::SyncData(fd);
  return status.has_value() ? status : Prefix(path, status.error());
}

}  // namespace

Status Disk::SyncAll(const std::vector<std::string>& files, const std::set<std::string>& folders) {
  for (const std::string& path : files) {
    RINGFENCE_TRY(SyncFile(path));
  }
  for (const std::string& path : folders) {
    RINGFENCE_TRY(SyncDir(path));
  }
  return {};
}

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

os::UniqueFd RealDisk::TakeUnsynced(const std::string& path) {
  const auto found = unsynced_.find(path);
  RINGFENCE_CHECK(found != unsynced_.end());
  os::UniqueFd fd = std::move(found->second);
  unsynced_.erase(found);
  return fd;
}

Status RealDisk::SyncFile(const std::string& path) {
  const os::UniqueFd fd = TakeUnsynced(path);
  return SyncOpen(path, fd.get());
}

Status RealDisk::SyncAll(const std::vector<std::string>& files,
                         const std::set<std::string>& folders) {
  std::vector<std::function<Status()>> syncs;
  std::vector<os::UniqueFd> open;
  open.reserve(files.size());
  for (const std::string& path : files) {
    open.push_back(TakeUnsynced(path));
    syncs.emplace_back([&path, fd = open.back().get()] { return SyncOpen(path, fd); });
  }
  for (const std::string& path : folders) {
    syncs.emplace_back([&path] { return os::SyncDir(path); });
  }
  std::vector<Status> results(syncs.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < syncs.size(); i = next++) {
      results[i] = syncs[i]();
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min(syncs.size(), kSyncsAtOnce); ++i) {
      helpers.emplace_back(work);
    }
    work();
  }
  const auto failed = std::find_if(results.begin(), results.end(),
                                   [](const Status& status) { return !status.has_value(); });
  return failed == results.end() ? Status() : *failed;
}

Status RealDisk::SyncDir(const std::string& path) { return os::SyncDir(path); }

Status RealDisk::Rename(const std::string& from, const std::string& to) {
  return os::RenameStaged(from, to);
}

Status RealDisk::RemoveTree(const std::string& path) { return os::RemoveTree(path); }

}  // namespace ringfence::audit
