#pragma once

// Files beneath a folder that stands for a machine's root. Links are resolved inside it: "/etc/x"
// within it is its own, and nothing outside can be reached. Nothing is ever written, no pipe or
// device is opened.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

struct RootFileFacts {
  bool folder = false;
  unsigned mode = 0;  // permission bits, with set-id and sticky
  unsigned uid = 0;
  unsigned gid = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_s = 0;  // seconds since 1970
};

// Const calls from any thread.
class RootFolder {
 public:
  static Result<RootFolder> Open(const std::string& folder);

  // The whole file; kExhausted when it is longer, kInvalidArgument when it is no regular file.
  Result<std::string> Read(const std::string& path, std::size_t bytes_max) const;
  Result<std::vector<std::string>> List(const std::string& path, std::size_t count_max) const;
  Result<RootFileFacts> Look(const std::string& path) const;  // of what a link leads to
  Result<std::string> Link(const std::string& path) const;    // where the link itself points

 private:
  explicit RootFolder(UniqueFd fd) : fd_(std::move(fd)) {}
  Result<UniqueFd> OpenAt(const std::string& path, std::uint64_t flags) const;
  UniqueFd fd_;
};

}  // namespace ringfence::os
