// Attacks by way of cgroups: the host's program that version 1 starts (CVE-2022-0492), the box's
// own limits, and what the tree tells about neighbours.

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "util.h"

namespace ringfence::probe {
namespace {

constexpr const char* kPlace = "/tmp/ringfence-probe-cgroup";

// Opens `name` of a newly mounted hierarchy for writing, and writes nothing.
Outcome OpenIn(const char* type, const std::string& options, const std::string& name,
               const char* what) {
  if (mkdir(kPlace, 0700) != 0 && errno != EEXIST) {
    return Refused("mkdir", errno);
  }
  if (mount("none", kPlace, type, 0, options.c_str()) != 0) {
    return Refused(std::string("mount of ") + type, errno, {ENODEV, EINVAL});
  }
  const Fd file(open((std::string(kPlace) + "/" + name).c_str(), O_WRONLY | O_CLOEXEC));
  const int error = errno;
  (void)umount2(kPlace, MNT_DETACH);
  return file.ok() ? Leaked(0, what) : Refused(name, error);
}

Outcome AttackReleaseAgent(const Input& /*input*/) {
  std::string own;
  (void)ReadFile("/proc/self/cgroup", 65536, own);
  // Lines are "4:memory:/path"; version 2 is "0::/path".
  std::size_t at = 0;
  Outcome last = CannotTry("this machine has no cgroup hierarchy of version 1");
  while (at < own.size()) {
    const std::size_t end = std::min(own.find('\n', at), own.size());
    const std::string line = own.substr(at, end - at);
    at = end + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos || second == first + 1) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const Outcome outcome = OpenIn("cgroup", controllers, "release_agent",
                                   "the program that the host runs as root can be named");
    if (outcome.result != Outcome::Result::kCannotTry) {
      last = outcome;
    }
    if (outcome.result == Outcome::Result::kLeaked) {
      return outcome;
    }
  }
  return last;
}

Outcome AttackLimits(const Input& /*input*/) {
  return OpenIn("cgroup2", "", "cgroup.procs",
                "the box's cgroup can be written to: it can change its limits and leave them");
}

Outcome AttackView(const Input& /*input*/) {
  std::string own;
  if (!ReadFile("/proc/self/cgroup", 65536, own)) {
    return Refused("/proc/self/cgroup", errno);
  }
  std::size_t at = own.find(":/");
  while (at != std::string::npos) {
    const std::size_t end = std::min(own.find('\n', at), own.size());
    if (end - at > 2) {
      return Leaked(end - at - 1, "the host's tree shows: " + own.substr(at + 1, end - at - 1));
    }
    at = own.find(":/", end);
  }
  return Held("every cgroup of the box is the root of what it sees");
}

constexpr Code kCodes[] = {
    {"release-agent", AttackReleaseAgent},
    {"cgroup-limits", AttackLimits},
    {"cgroup-view", AttackView},
};

}  // namespace

std::span<const Code> CgroupAttacks() { return kCodes; }

}  // namespace ringfence::probe
