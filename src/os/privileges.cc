#include "os/privileges.h"

#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "os/error.h"
#include "os/file.h"

namespace ringfence::os {
namespace {

constexpr int kCapabilitiesMax = 64;

constexpr std::pair<const char*, int> kCapabilityNames[] = {
    {"CAP_CHOWN", CAP_CHOWN},
    {"CAP_DAC_OVERRIDE", CAP_DAC_OVERRIDE},
    {"CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH},
    {"CAP_FOWNER", CAP_FOWNER},
    {"CAP_FSETID", CAP_FSETID},
    {"CAP_KILL", CAP_KILL},
    {"CAP_SETGID", CAP_SETGID},
    {"CAP_SETUID", CAP_SETUID},
    {"CAP_SETPCAP", CAP_SETPCAP},
    {"CAP_SETFCAP", CAP_SETFCAP},
    {"CAP_NET_ADMIN", CAP_NET_ADMIN},
    {"CAP_NET_RAW", CAP_NET_RAW},
    {"CAP_SYS_MODULE", CAP_SYS_MODULE},
    {"CAP_SYS_RAWIO", CAP_SYS_RAWIO},
    {"CAP_SYS_BOOT", CAP_SYS_BOOT},
    {"CAP_PERFMON", CAP_PERFMON},
    {"CAP_NET_BIND_SERVICE", CAP_NET_BIND_SERVICE},
    {"CAP_SYS_CHROOT", CAP_SYS_CHROOT},
    {"CAP_SYS_PTRACE", CAP_SYS_PTRACE},
    {"CAP_SYS_ADMIN", CAP_SYS_ADMIN},
    {"CAP_SYS_RESOURCE", CAP_SYS_RESOURCE},
    {"CAP_MKNOD", CAP_MKNOD},
    {"CAP_BPF", CAP_BPF},
};

Result<int> CapabilityNumber(const std::string& name) {
  for (const auto& [known, number] : kCapabilityNames) {
    if (name == known) {
      return number;
    }
  }
  return Error{Code::kInternal, "unknown capability " + name};
}

Status LimitCapabilities(std::uint64_t keep) {
  for (int number = 0; number < kCapabilitiesMax; ++number) {
    const bool held = prctl(PR_CAPBSET_READ, number, 0, 0, 0) == 1;
    if (held && ((keep >> static_cast<unsigned>(number)) & 1U) == 0 &&
        prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0 && errno != EPERM) {
      return ErrnoError("drop a capability from the bounding set");
    }
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) {
    return ErrnoError("read capabilities");
  }
  for (unsigned half = 0; half < 2; ++half) {
    const auto mask = static_cast<std::uint32_t>(keep >> (32 * half));
    data[half].effective &= mask;
    data[half].permitted &= mask;
    data[half].inheritable = 0;
  }
  if (syscall(SYS_capset, &header, data.data()) != 0) {
    return ErrnoError("drop capabilities");
  }
  (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return {};
}

Status CheckNoCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) {
    return ErrnoError("read capabilities");
  }
  for (const __user_cap_data_struct& half : data) {
    if ((half.effective | half.permitted | half.inheritable) != 0) {
      return Error{Code::kInternal, "capabilities are left after dropping them all"};
    }
  }
  return {};
}

__rlimit_resource ResourceOf(Limit limit) {
  switch (limit) {
    case Limit::kCoreBytes:
      return RLIMIT_CORE;
    case Limit::kOpenFiles:
      return RLIMIT_NOFILE;
    case Limit::kProcesses:
      return RLIMIT_NPROC;
    case Limit::kLockedBytes:
      return RLIMIT_MEMLOCK;
  }
  return RLIMIT_CORE;
}

}  // namespace

Status BecomeUser(unsigned uid, unsigned gid) {
  // The bounding set first: it needs a capability that the change of user takes away.
  for (int number = 0; number < kCapabilitiesMax; ++number) {
    if (prctl(PR_CAPBSET_READ, number, 0, 0, 0) == 1 &&
        prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0) {
      return ErrnoError("drop a capability from the bounding set");
    }
  }
  if (setgroups(0, nullptr) != 0 || setresgid(gid, gid, gid) != 0 ||
      setresuid(uid, uid, uid) != 0) {
    return ErrnoError("become user " + std::to_string(uid));
  }
  return DropAllPrivileges();
}

Status DropAllPrivileges() {
  RINGFENCE_TRY(LimitCapabilities(0));
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return ErrnoError("set no_new_privs");
  }
  return CheckNoCapabilities();
}

Status KeepCapabilities(const std::vector<std::string>& names) {
  std::uint64_t keep = 0;
  for (const std::string& name : names) {
    RINGFENCE_ASSIGN(const int number, CapabilityNumber(name));
    keep |= std::uint64_t{1} << static_cast<unsigned>(number);
  }
  return LimitCapabilities(keep);
}

bool MayHoldCapability(const std::string& name) {
  const auto number = CapabilityNumber(name);
  return number.has_value() && prctl(PR_CAPBSET_READ, *number, 0, 0, 0) == 1;
}

Status SetLimit(Limit limit, std::uint64_t most) {
  const rlim_t wanted = std::min<rlim_t>(most, HardLimit(limit));
  const rlimit value{wanted, wanted};
  if (setrlimit(ResourceOf(limit), &value) != 0) {
    return ErrnoError("set a resource limit");
  }
  return {};
}

std::uint64_t HardLimit(Limit limit) {
  rlimit current{};
  return getrlimit(ResourceOf(limit), &current) == 0 ? current.rlim_max : 0;
}

Status SetDumpable(bool on) {
  if (prctl(PR_SET_DUMPABLE, on ? 1 : 0, 0, 0, 0) != 0) {
    return ErrnoError("set dumpable");
  }
  return {};
}

Status AdoptOrphans() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
    return ErrnoError("become a subreaper");
  }
  return {};
}

Status DieWithParent() {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
    return ErrnoError("set parent death signal");
  }
  return {};
}

void SetFileModeMask(unsigned mask) { (void)umask(mask); }

Result<std::string> BootId() {
  RINGFENCE_ASSIGN(std::string text, ReadText("/proc/sys/kernel/random/boot_id", 128));
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text;
}

}  // namespace ringfence::os
