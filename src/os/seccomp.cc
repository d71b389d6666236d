#include "os/seccomp.h"

#include <linux/sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "os/error.h"

namespace ringfence::os {
namespace {

using Filter = std::unique_ptr<void, void (*)(void*)>;

constexpr std::uint64_t kSocketTypeMask = 0xf;
// The kernel looks at the low half of an int argument; so must the filter, or a caller passes it
// with rubbish in the high half.
constexpr std::uint64_t kIntMask = 0xffffffff;
constexpr int kFamiliesMax = 64;

Status AddRule(void* filter, const SeccompRule& rule) {
  const int number = seccomp_syscall_resolve_name(rule.call.c_str());
  if (number == __NR_SCMP_ERROR || number < 0) {
    return {};  // not of this architecture: nobody can call it
  }
  std::vector<scmp_arg_cmp> compares;
  for (const SeccompArgument& argument : rule.when) {
    compares.push_back(
        scmp_arg_cmp{argument.index, SCMP_CMP_MASKED_EQ, argument.mask, argument.value});
  }
  const std::uint32_t action = rule.error == 0
                                   ? SCMP_ACT_KILL_PROCESS
                                   : SCMP_ACT_ERRNO(static_cast<std::uint32_t>(rule.error));
  const int failed = seccomp_rule_add_array(
      filter, action, number, static_cast<unsigned>(compares.size()), compares.data());
  if (failed != 0) {
    return ErrnoError("seccomp: rule for " + rule.call, -failed);
  }
  return {};
}

SeccompRule Always(std::string call, int error) { return SeccompRule{std::move(call), error, {}}; }

}  // namespace

bool SeccompAvailable() { return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0; }

Status EnterSeccompDenyList(const std::vector<SeccompRule>& rules) {
  const Filter filter(seccomp_init(SCMP_ACT_ALLOW), [](void* context) {
    if (context != nullptr) {
      seccomp_release(context);
    }
  });
  if (filter == nullptr) {
    return Error{Code::kInternal, "seccomp: no memory for a filter"};
  }
  int failed = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_NNP, 1);
  failed = failed != 0 ? failed : seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1);
  failed = failed != 0
               ? failed
               : seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  if (failed != 0) {
    return ErrnoError("seccomp: set attributes", -failed);
  }
  for (const SeccompRule& rule : rules) {
    RINGFENCE_TRY(AddRule(filter.get(), rule));
  }
  failed = seccomp_load(filter.get());
  if (failed != 0) {
    return ErrnoError("seccomp: load filter", -failed);
  }
  return {};
}

std::vector<SeccompRule> DenySocketsExcept(const std::vector<int>& families) {
  std::vector<SeccompRule> rules;
  for (int family = 0; family < kFamiliesMax; ++family) {
    if (std::find(families.begin(), families.end(), family) != families.end()) {
      continue;
    }
    const SeccompArgument is_family{0, kIntMask, static_cast<std::uint64_t>(family)};
    rules.push_back({"socket", EAFNOSUPPORT, {is_family}});
    rules.push_back({"socketpair", EAFNOSUPPORT, {is_family}});
  }
  return rules;
}

std::vector<SeccompRule> DenySystemAdministration() {
  std::vector<SeccompRule> rules;
  for (const char* call : {"acct",
                           "add_key",
                           "bpf",
                           "chroot",
                           "clock_settime",
                           "clock_adjtime",
                           "adjtimex",
                           "settimeofday",
                           "delete_module",
                           "finit_module",
                           "init_module",
                           "fsconfig",
                           "fsmount",
                           "fsopen",
                           "fspick",
                           "io_uring_setup",
                           "io_uring_enter",
                           "io_uring_register",
                           "ioperm",
                           "iopl",
                           "kcmp",
                           "kexec_file_load",
                           "kexec_load",
                           "keyctl",
                           "lookup_dcookie",
                           "mknod",
                           "mknodat",
                           "modify_ldt",
                           "mount",
                           "mount_setattr",
                           "move_mount",
                           "move_pages",
                           "name_to_handle_at",
                           "nfsservctl",
                           "open_by_handle_at",
                           "open_tree",
                           "perf_event_open",
                           "personality",
                           "pidfd_getfd",
                           "pivot_root",
                           "process_madvise",
                           "process_vm_readv",
                           "process_vm_writev",
                           "ptrace",
                           "quotactl",
                           "quotactl_fd",
                           "reboot",
                           "request_key",
                           "sethostname",
                           "setdomainname",
                           "setns",
                           "swapoff",
                           "swapon",
                           "syslog",
                           "umount",
                           "umount2",
                           "unshare",
                           "userfaultfd",
                           "uselib",
                           "vhangup"}) {
    rules.push_back(Always(call, EPERM));
  }
  return rules;
}

std::vector<SeccompRule> DenyNewProcesses() {
  std::vector<SeccompRule> rules = {
      Always("fork", EPERM),
      Always("vfork", EPERM),
      Always("clone3", ENOSYS),
      {"clone", EPERM, {{0, CLONE_THREAD, 0}}},
  };
  for (const std::uint64_t flag :
       {std::uint64_t{CLONE_NEWNS}, std::uint64_t{CLONE_NEWUSER}, std::uint64_t{CLONE_NEWPID},
        std::uint64_t{CLONE_NEWNET}, std::uint64_t{CLONE_NEWIPC}, std::uint64_t{CLONE_NEWUTS},
        std::uint64_t{CLONE_NEWCGROUP}}) {
    rules.push_back({"clone", EPERM, {{0, flag, flag}}});
  }
  return rules;
}

std::vector<SeccompRule> DenyExec() { return {Always("execve", EPERM), Always("execveat", EPERM)}; }

std::vector<SeccompRule> DenyRawSockets() {
  std::vector<SeccompRule> rules;
  for (const int type : {SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, SOCK_DCCP, SOCK_PACKET}) {
    for (const int family : {AF_INET, AF_INET6}) {
      rules.push_back({"socket",
                       EPERM,
                       {{0, kIntMask, static_cast<std::uint64_t>(family)},
                        {1, kSocketTypeMask, static_cast<std::uint64_t>(type)}}});
    }
  }
  return rules;
}

}  // namespace ringfence::os
