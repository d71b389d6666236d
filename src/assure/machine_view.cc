#include "assure/machine_view.h"

#include <set>

namespace ringfence::assure {
namespace {

constexpr std::size_t kEntriesMax = 100'000;
constexpr std::size_t kPathsMax = 5'000;

class RealMachine final : public MachineView {
 public:
  explicit RealMachine(os::RootFolder root) : root_(std::move(root)) {}
  Result<std::string> Read(const std::string& path, std::size_t bytes_max) const override {
    return root_.Read(path, bytes_max);
  }
  Result<std::vector<std::string>> List(const std::string& path) const override {
    return root_.List(path, kEntriesMax);
  }
  Result<os::RootFileFacts> Look(const std::string& path) const override {
    return root_.Look(path);
  }
  Result<std::string> Link(const std::string& path) const override { return root_.Link(path); }

 private:
  os::RootFolder root_;
};

class MadeUpMachine final : public MachineView {
 public:
  MadeUpMachine(std::map<std::string, MadeUpFile> files, std::int64_t now_s)
      : files_(std::move(files)), now_s_(now_s) {}

  Result<std::string> Read(const std::string& path, std::size_t) const override {
    RINGFENCE_ASSIGN(const MadeUpFile* file, Find(path));
    if (file->unreadable || file->hidden) {
      return Error{Code::kPermissionDenied, path + ": Permission denied"};
    }
    return file->text;
  }
  Result<std::vector<std::string>> List(const std::string& path) const override {
    const auto own = files_.find(path);
    if (own != files_.end() && own->second.hidden) {
      return Error{Code::kPermissionDenied, path + ": Permission denied"};
    }
    const std::string prefix = path == "/" ? "/" : path + "/";
    std::set<std::string> names;
    for (const auto& [name, file] : files_) {
      if (name.starts_with(prefix) && name.size() > prefix.size()) {
        const std::string rest = name.substr(prefix.size());
        names.insert(rest.substr(0, rest.find('/')));
      }
    }
    if (names.empty()) {
      return Missing(path);
    }
    return std::vector<std::string>(names.begin(), names.end());
  }
  Result<os::RootFileFacts> Look(const std::string& path) const override {
    os::RootFileFacts facts;
    const auto found = Find(path);
    if (!found.has_value()) {
      RINGFENCE_TRY(List(path));
      facts.folder = true;
      facts.mode = 0755;
      return facts;
    }
    if ((*found)->hidden) {
      return Error{Code::kPermissionDenied, path + ": Permission denied"};
    }
    facts.mode = (*found)->mode;
    facts.uid = (*found)->uid;
    facts.gid = (*found)->gid;
    facts.bytes = (*found)->text.size();
    facts.modified_s = now_s_ - (*found)->age_days * 86'400;
    return facts;
  }
  Result<std::string> Link(const std::string& path) const override {
    const auto found = files_.find(path);
    if (found == files_.end()) {
      return Missing(path);
    }
    if (found->second.link.empty()) {
      return Error{Code::kInvalidArgument, path + ": no link"};
    }
    return found->second.link;
  }

 private:
  static Error Missing(const std::string& path) {
    return {Code::kNotFound, path + ": No such file or directory"};
  }
  Result<const MadeUpFile*> Find(const std::string& path) const {
    std::string at = path;
    for (int hops = 0; hops < 8; ++hops) {
      const auto found = files_.find(at);
      if (found == files_.end()) {
        return Missing(path);
      }
      if (found->second.link.empty()) {
        return &found->second;
      }
      at = found->second.link;
    }
    return Error{Code::kUnavailable, path + ": Too many levels of symbolic links"};
  }

  std::map<std::string, MadeUpFile> files_;
  std::int64_t now_s_;
};

void Descend(const MachineView& machine, const std::string& so_far, std::string_view rest,
             Found& found) {
  while (rest.starts_with('/')) {
    rest.remove_prefix(1);
  }
  if (found.paths.size() >= kPathsMax) {
    found.problem = "more than 5000 files";
    return;
  }
  const std::size_t slash = rest.find('/');
  const std::string name(rest.substr(0, slash));
  const std::string_view below = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  if (name.find('*') == std::string::npos) {
    const std::string path = so_far + "/" + name;
    if (!below.empty() && below.find('*') != std::string_view::npos) {
      Descend(machine, path, below, found);
      return;
    }
    const std::string whole = below.empty() ? path : path + "/" + std::string(below);
    const auto facts = machine.Look(whole);
    if (facts.has_value()) {
      found.paths.push_back(whole);
    } else if (facts.error().code != Code::kNotFound) {
      found.problem = facts.error().message;
    }
    return;
  }
  const auto names = machine.List(so_far.empty() ? "/" : so_far);
  if (!names.has_value()) {
    if (names.error().code != Code::kNotFound) {
      found.problem = names.error().message;
    }
    return;
  }
  for (const std::string& entry : *names) {
    if (!GlobMatches(name, entry)) {
      continue;
    }
    if (below.empty()) {
      found.paths.push_back(so_far + "/" + entry);
    } else {
      Descend(machine, so_far + "/" + entry, below, found);
    }
  }
}

}  // namespace

Result<std::unique_ptr<MachineView>> OpenMachine(const std::string& folder) {
  RINGFENCE_ASSIGN(os::RootFolder root, os::RootFolder::Open(folder));
  return std::unique_ptr<MachineView>(std::make_unique<RealMachine>(std::move(root)));
}

std::unique_ptr<MachineView> MakeMachine(std::map<std::string, MadeUpFile> files,
                                         std::int64_t now_s) {
  return std::make_unique<MadeUpMachine>(std::move(files), now_s);
}

bool GlobMatches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

Found FindPaths(const MachineView& machine, const std::string& pattern) {
  Found found;
  Descend(machine, "", pattern, found);
  return found;
}

}  // namespace ringfence::assure
