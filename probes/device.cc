// Attacks on devices that the lease does not have: nodes that are there, nodes made for it, and the
// kernel's own memory.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "util.h"

namespace ringfence::probe {
namespace {

// Whether the kernel let an open through to the driver: also where the driver, or its absence, then
// says no.
bool PassesToDriver(const std::string& path, int& error) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  error = fd.ok() ? 0 : errno;
  return fd.ok() || error == ENXIO || error == ENODEV || error == EIO || error == EBUSY;
}

Outcome OpenAll(const std::vector<std::string>& paths, const std::string& none) {
  std::string refused = none;
  for (const std::string& path : paths) {
    int error = 0;
    if (PassesToDriver(path, error)) {
      return Leaked(0, path + ": its driver was reached" +
                           (error == 0 ? "" : ", and answered " + Words(error)));
    }
    if (error != ENOENT) {
      refused = path + ": " + Words(error);
    }
  }
  return Held(refused);
}

Outcome AttackForeignGpu(const Input& /*input*/) {
  std::vector<std::string> paths;
  for (const std::string& name : ListFolder("/dev")) {
    if (name.starts_with("nvidia") || name == "kfd" || name == "dri") {
      paths.push_back("/dev/" + name);
    }
  }
  std::erase(paths, "/dev/nvidia-caps");
  return OpenAll(paths, "a box without a GPU has no node of one");
}

Outcome AttackMigCapability(const Input& /*input*/) {
  std::vector<std::string> paths;
  for (const std::string& name : ListFolder("/dev/nvidia-caps")) {
    paths.push_back("/dev/nvidia-caps/" + name);
  }
  return OpenAll(paths, "no node of a MIG slice's capability is here");
}

// What CVE-2025-52565 put there: a node that leads out, and terminals of others.
Outcome AttackConsole(const Input& /*input*/) {
  std::vector<std::string> paths = {"/dev/console", "/dev/tty0", "/dev/tty1"};
  for (const std::string& name : ListFolder("/dev/pts")) {
    if (name != "ptmx") {
      paths.push_back("/dev/pts/" + name);
    }
  }
  return OpenAll(paths, "neither a console nor a terminal is here");
}

Outcome AttackMknod(const Input& /*input*/) {
  constexpr unsigned kNvidiaMajor = 195;
  constexpr unsigned kForeignMinor = 7;
  const std::string path = "/dev/ringfence-probe";
  if (mknod(path.c_str(), S_IFCHR | 0600, makedev(kNvidiaMajor, kForeignMinor)) != 0) {
    return Refused("mknod", errno);
  }
  int error = 0;
  const bool passes = PassesToDriver(path, error);
  (void)unlink(path.c_str());
  return passes ? Leaked(0, "a node of another GPU was made, and opens")
                : Held("a node was made, and does not open: " + Words(error));
}

Outcome AttackKernelMemory(const Input& /*input*/) {
  std::string refused;
  bool there = false;
  for (const char* path : {"/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port"}) {
    std::string bytes;
    if (ReadFile(path, 4, bytes) && !bytes.empty()) {
      return Leaked(bytes.size(), std::string(path) + " was read");
    }
    struct stat facts{};
    if (stat(path, &facts) == 0) {
      there = true;
      refused += std::string(refused.empty() ? "" : "; ") + path + " holds nothing to read here";
    }
  }
  return there ? Held(refused) : CannotTry("this kernel has none of /proc/kcore and /dev/mem");
}

constexpr Code kCodes[] = {
    {"foreign-gpu", AttackForeignGpu},
    {"mig-capability", AttackMigCapability},
    {"console", AttackConsole},
    {"mknod", AttackMknod},
    {"kernel-memory", AttackKernelMemory},
};

}  // namespace

std::span<const Code> DeviceAttacks() { return kCodes; }

}  // namespace ringfence::probe
