#include "os/holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <sstream>

#include "os/error.h"
#include "os/file.h"

namespace ringfence::os {
namespace {

constexpr std::size_t kMapsBytesMax = std::size_t{64} << 20U;
constexpr std::size_t kStatBytesMax = 4096;
constexpr int kStartField = 22;  // of /proc/PID/stat

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

Folder OpenNames(const std::string& path) { return {opendir(path.c_str()), closedir}; }

bool Matches(const struct stat& facts, const Holdable& wanted) {
  if (S_ISCHR(facts.st_mode)) {
    return wanted.devices.contains({major(facts.st_rdev), minor(facts.st_rdev)});
  }
  return wanted.files.contains({facts.st_dev, facts.st_ino});
}

bool HasOpen(const std::string& process, const Holdable& wanted) {
  const Folder fds = OpenNames(process + "/fd");
  while (const dirent* entry = fds == nullptr ? nullptr : readdir(fds.get())) {
    struct stat facts{};
    if (entry->d_name[0] != '.' && fstatat(dirfd(fds.get()), entry->d_name, &facts, 0) == 0 &&
        Matches(facts, wanted)) {
      return true;
    }
  }
  return false;
}

// "00400000-00452000" as a name in map_files: without the zeros in front.
std::string MapName(std::string_view range) {
  const auto stripped = [](std::string_view number) {
    const std::size_t digit = number.find_first_not_of('0');
    return std::string(number.substr(digit == std::string_view::npos ? number.size() - 1 : digit));
  };
  const std::size_t dash = range.find('-');
  return dash == std::string_view::npos || dash == 0 || dash + 1 == range.size()
             ? std::string()
             : stripped(range.substr(0, dash)) + "-" + stripped(range.substr(dash + 1));
}

// A mapping outlives its descriptor. Libraries are mapped by every process, so each file is looked
// at once: `seen` has those that were.
bool HasMapped(const std::string& process, const Holdable& wanted, std::set<std::string>& seen) {
  const auto maps = ReadText(process + "/maps", kMapsBytesMax);
  if (!maps.has_value()) {
    return false;
  }
  std::istringstream lines(*maps);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string range;
    std::string rights;
    std::string offset;
    std::string device;
    std::string inode;
    if (!(words >> range >> rights >> offset >> device >> inode) || inode == "0" ||
        seen.contains(device + " " + inode)) {
      continue;
    }
    struct stat facts{};
    if (stat((process + "/map_files/" + MapName(range)).c_str(), &facts) != 0) {
      continue;  // unmapped meanwhile
    }
    if (Matches(facts, wanted)) {
      return true;
    }
    seen.insert(device + " " + inode);
  }
  return false;
}

}  // namespace

Result<std::uint64_t> StartOf(int pid) {
  RINGFENCE_ASSIGN(const std::string text,
                   ReadText("/proc/" + std::to_string(pid) + "/stat", kStatBytesMax));
  // The second field is the name in brackets, and may hold anything.
  std::istringstream words(text.substr(std::min(text.rfind(')') + 1, text.size())));
  std::string word;
  for (int field = 3; field <= kStartField && words >> word; ++field) {
    if (field == kStartField) {
      std::uint64_t value = 0;
      (void)std::from_chars(word.data(), word.data() + word.size(), value);
      return value;
    }
  }
  return Error{Code::kCorrupt, "/proc says nothing of process " + std::to_string(pid)};
}

Result<std::vector<Holder>> FindHolders(const Holdable& wanted) {
  std::vector<Holder> holders;
  std::set<std::string> seen;
  const Folder processes = OpenNames("/proc");
  if (processes == nullptr) {
    return ErrnoError("list /proc");
  }
  const int self = getpid();
  while (const dirent* entry = readdir(processes.get())) {
    const std::string_view name = entry->d_name;
    int pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size() || pid == self) {
      continue;
    }
    const std::string process = "/proc/" + std::string(name);
    if (!HasOpen(process, wanted) && !HasMapped(process, wanted, seen)) {
      continue;
    }
    const auto started = StartOf(pid);
    if (!started.has_value()) {
      continue;  // gone meanwhile
    }
    const auto comm = ReadText(process + "/comm", kStatBytesMax);
    std::string called = comm.has_value() ? *comm : std::string("?");
    while (!called.empty() && called.back() == '\n') {
      called.pop_back();
    }
    std::replace_if(called.begin(), called.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    holders.push_back({pid, *started, called});
  }
  std::sort(holders.begin(), holders.end(),
            [](const Holder& a, const Holder& b) { return a.pid < b.pid; });
  return holders;
}

}  // namespace ringfence::os
