#pragma once

// The log writer's one way to change files, so that a test can fail, tear or forget any step.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::audit {

// One thread.
class Disk {
 public:
  Disk() = default;
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  virtual ~Disk() = default;

  // True when it was made, false when it was there.
  virtual Result<bool> MakeDir(const std::string& path) = 0;
  // Makes or overwrites. Neither bytes nor name are durable yet.
  virtual Status Write(const std::string& path, ByteView bytes) = 0;
  // The bytes of a file written before through this object are durable after it.
  virtual Status SyncFile(const std::string& path) = 0;
  // The names in the folder are durable after it.
  virtual Status SyncDir(const std::string& path) = 0;
  // Both, for all of these, in no order. One after another unless a disk knows better.
  virtual Status SyncAll(const std::vector<std::string>& files,
                         const std::set<std::string>& folders);
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status RemoveTree(const std::string& path) = 0;
};

// Files are world-readable (0644, folders 0755): who may enter the log's folder is its owner's
// choice. At most kOpenFilesMax files may wait for their SyncFile.
inline constexpr std::size_t kOpenFilesMax = 64;
class RealDisk final : public Disk {
 public:
  Result<bool> MakeDir(const std::string& path) override;
  Status Write(const std::string& path, ByteView bytes) override;
  Status SyncFile(const std::string& path) override;
  Status SyncDir(const std::string& path) override;
  // At once: file systems answer many waiting syncs with one flush of the device.
  Status SyncAll(const std::vector<std::string>& files,
                 const std::set<std::string>& folders) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status RemoveTree(const std::string& path) override;

 private:
  os::UniqueFd TakeUnsynced(const std::string& path);

  std::map<std::string, os::UniqueFd> unsynced_;
};

}  // namespace ringfence::audit
