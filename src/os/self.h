#pragma once

// What a process finds around it: folders, the environment, a terminal.

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace ringfence::os {

Result<std::string> CurrentFolder();
std::map<std::string, std::string> AllVariables();  // of the environment

bool IsTerminal(int fd);

// A write to a pipe without a reader fails with EPIPE instead of ending the process.
void IgnoreBrokenPipes();

// An empty folder of mode 0700 under the system's temporary one, removed with all in it.
class TempFolder {
 public:
  static Result<TempFolder> Create(std::string_view prefix);
  TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempFolder& operator=(TempFolder&&) = delete;
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TempFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace ringfence::os
