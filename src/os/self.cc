#include "os/self.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "os/error.h"
#include "os/file.h"

namespace ringfence::os {

Result<std::string> CurrentFolder() {
  std::error_code wrong;
  const std::filesystem::path path = std::filesystem::current_path(wrong);
  if (wrong) {
    return ErrnoError("the current folder", wrong.value());
  }
  return path.string();
}

std::map<std::string, std::string> AllVariables() {
  std::map<std::string, std::string> variables;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view line(*at);
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) {
      variables.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
  }
  return variables;
}

bool IsTerminal(int fd) { return ::isatty(fd) == 1; }

void IgnoreBrokenPipes() { (void)std::signal(SIGPIPE, SIG_IGN); }

Result<TempFolder> TempFolder::Create(std::string_view prefix) {
  std::error_code wrong;
  const std::filesystem::path base = std::filesystem::temp_directory_path(wrong);
  if (wrong) {
    return ErrnoError("the temporary folder", wrong.value());
  }
  std::string path = base.string() + "/" + std::string(prefix) + "-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    return ErrnoError(path);
  }
  return TempFolder(std::move(path));
}

TempFolder::~TempFolder() {
  if (!path_.empty()) {
    (void)RemoveTree(path_);  // what is left under the temporary folder is the system's to clear
  }
}

}  // namespace ringfence::os
