#include "os/cgroup.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <set>
#include <sstream>
#include <thread>

#include "os/error.h"
#include "os/file.h"

namespace ringfence::os {
namespace {

constexpr std::size_t kMountInfoBytesMax = 1024 * 1024;
constexpr std::size_t kProcsBytesMax = 4 * 1024 * 1024;
constexpr int kDepthMax = 8;
// The caller may have others to look after: it is not kept for long, and tries again.
constexpr int kKillPassesMax = 40;
constexpr auto kKillPause = std::chrono::milliseconds(5);

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

// "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue"
std::optional<CgroupHierarchy> FromMountLine(const std::string& line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string::npos) {
    return std::nullopt;
  }
  const std::vector<std::string> left = Split(line.substr(0, dash), ' ');
  const std::vector<std::string> right = Split(line.substr(dash + 3), ' ');
  if (left.size() < 5 || right.size() < 3 || (right[0] != "cgroup" && right[0] != "cgroup2")) {
    return std::nullopt;
  }
  CgroupHierarchy hierarchy;
  hierarchy.mount = left[4];
  hierarchy.unified = right[0] == "cgroup2";
  if (hierarchy.unified) {
    const auto text = ReadText(hierarchy.mount + "/cgroup.controllers", 4096);
    if (text.has_value()) {
      std::istringstream words(*text);
      for (std::string word; words >> word;) {
        hierarchy.controllers.push_back(word);
      }
    }
  } else {
    hierarchy.controllers = Split(right[2], ',');
  }
  return hierarchy;
}

void CollectProcesses(const std::string& folder, int depth, std::set<int>& pids) {
  const auto text = ReadText(folder + "/cgroup.procs", kProcsBytesMax);
  if (!text.has_value()) {
    return;
  }
  for (const std::string& line : Split(*text, '\n')) {
    int pid = 0;
    const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), pid);
    if (failed == std::errc() && pid > 0) {
      pids.insert(pid);
    }
  }
  const auto names = ListDir(folder);
  for (const std::string& name : names.has_value() ? *names : std::vector<std::string>()) {
    if (depth < kDepthMax && IsDirectory(folder + "/" + name)) {
      CollectProcesses(folder + "/" + name, depth + 1, pids);
    }
  }
}

// Control files are written in place: they are not files that could be replaced.
void WriteControl(const std::string& path, std::string_view value) {
  if (!Exists(path)) {
    return;
  }
  FILE* file = fopen(path.c_str(), "we");
  if (file != nullptr) {
    (void)fwrite(value.data(), 1, value.size(), file);
    (void)fclose(file);
  }
}

Status RemoveFolder(const std::string& folder, int depth) {
  const auto names = ListDir(folder);
  for (const std::string& name : names.has_value() ? *names : std::vector<std::string>()) {
    if (depth < kDepthMax && IsDirectory(folder + "/" + name)) {
      RINGFENCE_TRY(RemoveFolder(folder + "/" + name, depth + 1));
    }
  }
  for (int pass = 0;; ++pass) {
    if (rmdir(folder.c_str()) == 0 || errno == ENOENT) {
      return {};
    }
    // A process that has just ended can hold its group for a moment.
    if (errno != EBUSY || pass >= kKillPassesMax) {
      return ErrnoError("remove cgroup " + folder);
    }
    std::this_thread::sleep_for(kKillPause);
  }
}

std::uint64_t CountIn(const std::string& path, std::string_view name) {
  const auto text = ReadText(path, 4096);
  if (!text.has_value()) {
    return 0;
  }
  for (const std::string& line : Split(*text, '\n')) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t value = 0;
    if (words >> key >> value && key == name) {
      return value;
    }
  }
  return 0;
}

}  // namespace

Result<std::vector<CgroupHierarchy>> CgroupHierarchies() {
  RINGFENCE_ASSIGN(const std::string text, ReadText("/proc/self/mountinfo", kMountInfoBytesMax));
  std::vector<CgroupHierarchy> found;
  for (const std::string& line : Split(text, '\n')) {
    auto hierarchy = FromMountLine(line);
    if (!hierarchy.has_value() || !Exists(hierarchy->mount + "/cgroup.procs")) {
      continue;  // not one, or covered by another mount
    }
    const bool seen = std::any_of(found.begin(), found.end(), [&](const CgroupHierarchy& other) {
      return other.mount == hierarchy->mount;
    });
    if (!seen) {
      found.push_back(std::move(*hierarchy));
    }
  }
  return found;
}

bool HasController(const std::vector<CgroupHierarchy>& hierarchies, const std::string& name) {
  return std::any_of(hierarchies.begin(), hierarchies.end(), [&](const CgroupHierarchy& one) {
    return std::find(one.controllers.begin(), one.controllers.end(), name) != one.controllers.end();
  });
}

bool HasDeviceControl(const std::vector<CgroupHierarchy>& hierarchies) {
  // With v2 alone the runtime attaches a BPF program; beside v1 it uses the v1 controller.
  const bool only_unified =
      !hierarchies.empty() && std::all_of(hierarchies.begin(), hierarchies.end(),
                                          [](const CgroupHierarchy& one) { return one.unified; });
  return only_unified || HasController(hierarchies, "devices");
}

Result<std::vector<int>> CgroupProcesses(const std::string& group) {
  RINGFENCE_ASSIGN(const auto hierarchies, CgroupHierarchies());
  std::set<int> pids;
  for (const CgroupHierarchy& hierarchy : hierarchies) {
    CollectProcesses(hierarchy.mount + group, 0, pids);
  }
  return std::vector<int>(pids.begin(), pids.end());
}

Status KillCgroup(const std::string& group) {
  RINGFENCE_ASSIGN(const auto hierarchies, CgroupHierarchies());
  for (int pass = 0; pass < kKillPassesMax; ++pass) {
    RINGFENCE_ASSIGN(const std::vector<int> pids, CgroupProcesses(group));
    if (pids.empty()) {
      return {};
    }
    for (const CgroupHierarchy& hierarchy : hierarchies) {
      WriteControl(hierarchy.mount + group + "/cgroup.kill", "1");
      // Frozen, nothing can fork away from the signal; thawed, it is delivered.
      WriteControl(hierarchy.mount + group + "/freezer.state", "FROZEN");
    }
    for (const int pid : pids) {
      (void)kill(pid, SIGKILL);
    }
    for (const CgroupHierarchy& hierarchy : hierarchies) {
      WriteControl(hierarchy.mount + group + "/freezer.state", "THAWED");
    }
    std::this_thread::sleep_for(kKillPause);
  }
  return Error{Code::kUnavailable, "processes in cgroup " + group + " do not end",
               "look for processes in state D: ps -eo pid,stat,cgroup,cmd"};
}

Status RemoveCgroup(const std::string& group) {
  RINGFENCE_ASSIGN(const auto hierarchies, CgroupHierarchies());
  for (const CgroupHierarchy& hierarchy : hierarchies) {
    if (IsDirectory(hierarchy.mount + group)) {
      RINGFENCE_TRY(RemoveFolder(hierarchy.mount + group, 0));
    }
  }
  return {};
}

void RemoveCgroupIfUnused(const std::string& group) {
  const auto hierarchies = CgroupHierarchies();
  for (const CgroupHierarchy& hierarchy :
       hierarchies.has_value() ? *hierarchies : std::vector<CgroupHierarchy>()) {
    (void)rmdir((hierarchy.mount + group).c_str());
  }
}

bool CgroupExists(const std::string& group) {
  const auto hierarchies = CgroupHierarchies();
  return hierarchies.has_value() &&
         std::any_of(hierarchies->begin(), hierarchies->end(),
                     [&](const CgroupHierarchy& one) { return IsDirectory(one.mount + group); });
}

std::uint64_t CgroupOomKills(const std::string& group) {
  const auto hierarchies = CgroupHierarchies();
  std::uint64_t kills = 0;
  for (const CgroupHierarchy& hierarchy :
       hierarchies.has_value() ? *hierarchies : std::vector<CgroupHierarchy>()) {
    kills += CountIn(hierarchy.mount + group + "/memory.oom_control", "oom_kill");
    kills += CountIn(hierarchy.mount + group + "/memory.events", "oom_kill");
  }
  return kills;
}

}  // namespace ringfence::os
