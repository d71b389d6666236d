#pragma once

// A machine as checks see it: files, and nothing else. A real one beneath a root, or one made of
// text for the tests of a check.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/root_folder.h"

namespace ringfence::assure {

class MachineView {
 public:
  MachineView() = default;
  MachineView(const MachineView&) = delete;
  MachineView& operator=(const MachineView&) = delete;
  virtual ~MachineView() = default;
  // kNotFound: there is no such file. Any other error: it cannot be told.
  virtual Result<std::string> Read(const std::string& path, std::size_t bytes_max) const = 0;
  virtual Result<std::vector<std::string>> List(const std::string& path) const = 0;
  virtual Result<os::RootFileFacts> Look(const std::string& path) const = 0;
  virtual Result<std::string> Link(const std::string& path) const = 0;
};

// The machine whose root is `folder`: "/" for this one.
Result<std::unique_ptr<MachineView>> OpenMachine(const std::string& folder);

struct MadeUpFile {
  std::string text = {};
  unsigned mode = 0644;
  unsigned uid = 0;
  unsigned gid = 0;
  std::string link = {};    // a link to there, if not empty
  bool hidden = false;      // in a folder that may not be searched
  bool unreadable = false;  // may not be read
  std::int64_t age_days = 0;
};
std::unique_ptr<MachineView> MakeMachine(std::map<std::string, MadeUpFile> files,
                                         std::int64_t now_s);

// Whether `text` is of the form `pattern`, in which '*' stands for any text.
bool GlobMatches(std::string_view pattern, std::string_view text);

struct Found {
  std::vector<std::string> paths;  // that exist
  std::string problem;             // why there may be more; else empty
};
// The paths that a pattern names; '*' stands for any text within one name.
Found FindPaths(const MachineView& machine, const std::string& pattern);

}  // namespace ringfence::assure
