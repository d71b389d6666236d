#include "isolate/box_seccomp.h"

#include <initializer_list>

namespace ringfence::isolate {
namespace {

constexpr int kEperm = 1;
constexpr int kEnosys = 38;
// The clone flags that make namespaces: mount, cgroup, uts, ipc, user, pid, net.
constexpr std::int64_t kCloneNamespaceFlags = 0x7e020000;
constexpr std::int64_t kFileTypeMask = 0170000;

// What ordinary programs, the C library, language runtimes and CUDA call.
constexpr const char* kAllowed[] = {
    // files
    "access",
    "chdir",
    "chmod",
    "chown",
    "close",
    "close_range",
    "copy_file_range",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fallocate",
    "fchdir",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "fcntl",
    "fdatasync",
    "fgetxattr",
    "flistxattr",
    "flock",
    "fremovexattr",
    "fsetxattr",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "futimesat",
    "getcwd",
    "getdents",
    "getdents64",
    "getxattr",
    "ioctl",
    "lchown",
    "lgetxattr",
    "link",
    "linkat",
    "listxattr",
    "llistxattr",
    "lremovexattr",
    "lseek",
    "lsetxattr",
    "lstat",
    "mkdir",
    "mkdirat",
    "newfstatat",
    "open",
    "openat",
    "openat2",
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readahead",
    "readlink",
    "readlinkat",
    "readv",
    "removexattr",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "sendfile",
    "setxattr",
    "splice",
    "stat",
    "statfs",
    "statx",
    "symlink",
    "symlinkat",
    "sync",
    "sync_file_range",
    "syncfs",
    "tee",
    "truncate",
    "umask",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimes",
    "vmsplice",
    "write",
    "writev",
    // waiting
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_ctl_old",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "epoll_wait_old",
    "eventfd",
    "eventfd2",
    "inotify_add_watch",
    "inotify_init",
    "inotify_init1",
    "inotify_rm_watch",
    "io_cancel",
    "io_destroy",
    "io_getevents",
    "io_pgetevents",
    "io_setup",
    "io_submit",
    "pipe",
    "pipe2",
    "poll",
    "ppoll",
    "pselect6",
    "select",
    "signalfd",
    "signalfd4",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    // memory
    "brk",
    "get_mempolicy",
    "madvise",
    "mbind",
    "membarrier",
    "mincore",
    "mlock",
    "mlock2",
    "mlockall",
    "mprotect",
    "mremap",
    "msync",
    "munlock",
    "munlockall",
    "munmap",
    "pkey_alloc",
    "pkey_free",
    "pkey_mprotect",
    "set_mempolicy",
    "set_mempolicy_home_node",
    // processes and threads
    "arch_prctl",
    "capget",
    "capset",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "fork",
    "futex",
    "futex_waitv",
    "get_robust_list",
    "get_thread_area",
    "getcpu",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getitimer",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getpriority",
    "getrandom",
    "getresgid",
    "getresuid",
    "getrlimit",
    "getrusage",
    "getsid",
    "gettid",
    "getuid",
    "kill",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "pause",
    "pidfd_open",
    "pidfd_send_signal",
    "prctl",
    "prlimit64",
    "restart_syscall",
    "rseq",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_tgsigqueueinfo",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getaffinity",
    "sched_getattr",
    "sched_getparam",
    "sched_getscheduler",
    "sched_rr_get_interval",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
    "sched_yield",
    "seccomp",
    "set_robust_list",
    "set_thread_area",
    "set_tid_address",
    "setfsgid",
    "setfsuid",
    "setgid",
    "setgroups",
    "setitimer",
    "setpgid",
    "setpriority",
    "setregid",
    "setresgid",
    "setresuid",
    "setreuid",
    "setrlimit",
    "setsid",
    "setuid",
    "sigaltstack",
    "tgkill",
    "time",
    "times",
    "tkill",
    "uname",
    "vfork",
    "wait4",
    "waitid",
    "sysinfo",
    "alarm",
    // time
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "gettimeofday",
    "nanosleep",
    "timer_create",
    "timer_delete",
    "timer_getoverrun",
    "timer_gettime",
    "timer_settime",
    // sockets (made by the rules below), queues, shared memory
    "accept",
    "accept4",
    "bind",
    "connect",
    "getpeername",
    "getsockname",
    "getsockopt",
    "listen",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    "mq_getsetattr",
    "mq_notify",
    "mq_open",
    "mq_timedreceive",
    "mq_timedsend",
    "mq_unlink",
    "msgctl",
    "msgget",
    "msgrcv",
    "msgsnd",
    "semctl",
    "semget",
    "semop",
    "semtimedop",
    "shmat",
    "shmctl",
    "shmdt",
};

constexpr std::int64_t kMapHugeTlb = 0x40000;
constexpr std::int64_t kMemfdHugeTlb = 4;
constexpr std::int64_t kShmHugeTlb = 04000;

JsonObject Rule(std::initializer_list<const char*> names, const char* action) {
  JsonArray list;
  for (const char* name : names) {
    list.emplace_back(name);
  }
  return JsonObject{{"names", std::move(list)}, {"action", action}};
}

JsonObject AllowWhen(const char* name, JsonObject argument) {
  JsonObject rule = Rule({name}, "SCMP_ACT_ALLOW");
  rule["args"] = JsonArray{std::move(argument)};
  return rule;
}

JsonObject Equals(int index, std::int64_t value) {
  return JsonObject{{"index", index}, {"value", value}, {"op", "SCMP_CMP_EQ"}};
}

JsonObject MaskedEquals(int index, std::int64_t mask, std::int64_t value) {
  return JsonObject{
      {"index", index}, {"value", mask}, {"valueTwo", value}, {"op", "SCMP_CMP_MASKED_EQ"}};
}

}  // namespace

Json BoxSeccomp(bool huge_pages) {
  JsonArray rules;
  JsonArray allowed;
  for (const char* name : kAllowed) {
    allowed.emplace_back(name);
  }
  rules.push_back(JsonObject{{"names", std::move(allowed)}, {"action", "SCMP_ACT_ALLOW"}});
  if (huge_pages) {
    rules.push_back(Rule({"mmap", "memfd_create", "shmget"}, "SCMP_ACT_ALLOW"));
  } else {
    rules.push_back(AllowWhen("mmap", MaskedEquals(3, kMapHugeTlb, 0)));
    rules.push_back(AllowWhen("memfd_create", MaskedEquals(1, kMemfdHugeTlb, 0)));
    rules.push_back(AllowWhen("shmget", MaskedEquals(2, kShmHugeTlb, 0)));
  }
  // Processes and threads, but no namespace. clone3 hides its flags from a filter: it must seem
  // not to exist, and the C library then uses clone.
  rules.push_back(AllowWhen("clone", MaskedEquals(0, kCloneNamespaceFlags, 0)));
  JsonObject clone3 = Rule({"clone3"}, "SCMP_ACT_ERRNO");
  clone3["errnoRet"] = kEnosys;
  rules.push_back(std::move(clone3));
  // Plain files, pipes and sockets may be made, device nodes not.
  for (const std::int64_t type : {0, 0100000, 0010000, 0140000}) {
    rules.push_back(AllowWhen("mknod", MaskedEquals(1, kFileTypeMask, type)));
    rules.push_back(AllowWhen("mknodat", MaskedEquals(2, kFileTypeMask, type)));
  }
  // Unix, IPv4, IPv6, netlink. Not: vsock (reaches a hypervisor), packet, Bluetooth, XDP, ALG, ...
  for (const std::int64_t family : {1, 2, 10, 16}) {
    rules.push_back(AllowWhen("socket", Equals(0, family)));
  }
  rules.push_back(AllowWhen("socketpair", Equals(0, 1)));
  // The ordinary personality, and asking for the present one.
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{0xffffffff}}) {
    rules.push_back(AllowWhen("personality", Equals(0, value)));
  }
  return JsonObject{
      {"defaultAction", "SCMP_ACT_ERRNO"},
      {"defaultErrnoRet", kEperm},
      {"architectures", JsonArray{"SCMP_ARCH_X86_64"}},
      {"syscalls", std::move(rules)},
  };
}

}  // namespace ringfence::isolate
