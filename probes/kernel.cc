// Attacks on the kernel's own interfaces: calls that ordinary jobs have no use for, and that either
// reach beyond a box or have been the way in of published exploits. Each asks for the thing itself
// and gives it back at once.

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "util.h"

namespace ringfence::probe {
namespace {

Outcome AttackUserNamespace(const Input& /*input*/) {
  return InChild([]() -> Outcome {
    if (unshare(CLONE_NEWUSER) != 0) {
      return Refused("unshare(CLONE_NEWUSER)", errno, {ENOSYS});
    }
    return Leaked(0, "a user namespace was made, and we are its root");
  });
}

Outcome AttackBpf(const Input& /*input*/) {
  bpf_insn program[2] = {};
  program[0].code = BPF_ALU64 | BPF_MOV | BPF_K;  // return 0
  program[1].code = BPF_JMP | BPF_EXIT;
  const char license[] = "GPL";
  bpf_attr request;
  std::memset(&request, 0, sizeof request);
  request.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  request.insn_cnt = 2;
  request.insns = reinterpret_cast<std::uintptr_t>(program);
  request.license = reinterpret_cast<std::uintptr_t>(license);
  const Fd loaded(static_cast<int>(syscall(SYS_bpf, BPF_PROG_LOAD, &request, sizeof request)));
  return loaded.ok() ? Leaked(0, "a BPF program was loaded into the kernel")
                     : Refused("bpf(BPF_PROG_LOAD)", errno, {ENOSYS});
}

// Of a whole processor: what its other users do, not only we.
Outcome AttackPerfEvent(const Input& /*input*/) {
  perf_event_attr request{};
  request.type = PERF_TYPE_SOFTWARE;
  request.size = sizeof request;
  request.config = PERF_COUNT_SW_CPU_CLOCK;
  request.exclude_kernel = 1;
  const Fd event(static_cast<int>(syscall(SYS_perf_event_open, &request, -1, 0, -1, 0)));
  return event.ok() ? Leaked(0, "events of all processes on processor 0 can be counted")
                    : Refused("perf_event_open", errno, {ENOSYS, ENOENT});
}

Outcome AttackIoUring(const Input& /*input*/) {
  io_uring_params request{};
  const Fd ring(static_cast<int>(syscall(SYS_io_uring_setup, 4, &request)));
  return ring.ok() ? Leaked(0, "an io_uring was made: its requests pass no system call filter")
                   : Refused("io_uring_setup", errno, {ENOSYS});
}

Outcome AttackUserfaultfd(const Input& /*input*/) {
  constexpr int kUserModeOnly = 1;
  const Fd faults(
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | kUserModeOnly)));
  return faults.ok() ? Leaked(0, "page faults can be held up, which makes kernel races easy to win")
                     : Refused("userfaultfd", errno, {ENOSYS});
}

// Readable to every process of the same user, as programs often set it.
void PlantInKeyring(Victim& victim) {
  constexpr long kOfHolderAndUser = 0x3f3f0000;
  const long key = syscall(SYS_add_key, "user", "ringfence-probe", victim.secret.data(),
                           victim.secret.size(), KEY_SPEC_PROCESS_KEYRING);
  if (key < 0 || syscall(SYS_keyctl, KEYCTL_SETPERM, key, kOfHolderAndUser) != 0) {
    victim.CouldNotPlant("add_key", errno);
    return;
  }
  victim.facts["key"] = std::to_string(key);
}

Outcome AttackKeyring(const Input& input) {
  const std::int64_t key = input.Number("key");
  std::string bytes(64, '\0');
  const long got = syscall(SYS_keyctl, KEYCTL_READ, key < 0 ? KEY_SPEC_USER_KEYRING : key,
                           bytes.data(), bytes.size());
  if (got < 0) {
    return Refused("keyctl(KEYCTL_READ)", errno, {ENOSYS});
  }
  bytes.resize(std::min(bytes.size(), static_cast<std::size_t>(got)));
  return input.IsSecret(bytes) ? Leaked(bytes.size(), "the neighbour's key was read")
                               : Held("a key was read that is not the neighbour's");
}

// An image that no kernel takes: refused before it is looked at, or for what it is.
Outcome AttackModule(const Input& /*input*/) {
  char image[64] = {};
  if (syscall(SYS_init_module, image, sizeof image, "") == 0 || errno == ENOEXEC ||
      errno == EINVAL) {
    return Leaked(0, "the kernel looked at the module it was given: a right one would run in it");
  }
  return Refused("init_module", errno, {ENOSYS});
}

Outcome AttackKexec(const Input& /*input*/) {
  constexpr unsigned long kNoSuchFlag = 0x8000;
  (void)syscall(SYS_kexec_load, 0UL, 1UL, nullptr, kNoSuchFlag);
  if (errno == EINVAL) {
    return Leaked(0, "the kernel looked at the image it was given: it would start another kernel");
  }
  return Refused("kexec_load", errno, {ENOSYS});
}

Outcome OpenSocket(int family, int type, int protocol, const char* call, const char* what) {
  const Fd made(socket(family, type | SOCK_CLOEXEC, protocol));
  return made.ok() ? Leaked(0, what) : Refused(call, errno, {EAFNOSUPPORT, EPROTONOSUPPORT});
}

Outcome AttackRawSocket(const Input& /*input*/) {
  return OpenSocket(AF_PACKET, SOCK_RAW, 0, "socket(AF_PACKET)",
                    "frames can be sent and received past every rule of the network");
}
Outcome AttackVsock(const Input& /*input*/) {
  return OpenSocket(AF_VSOCK, SOCK_STREAM, 0, "socket(AF_VSOCK)",
                    "the hypervisor can be talked to, past every network namespace");
}
Outcome AttackAlg(const Input& /*input*/) {
  return OpenSocket(AF_ALG, SOCK_SEQPACKET, 0, "socket(AF_ALG)",
                    "the kernel's crypto interface is open");
}

constexpr Code kCodes[] = {
    {"user-namespace", AttackUserNamespace},
    {"bpf", AttackBpf},
    {"perf-event", AttackPerfEvent},
    {"io-uring", AttackIoUring},
    {"userfaultfd", AttackUserfaultfd},
    {"keyring", AttackKeyring, PlantInKeyring},
    {"kernel-module", AttackModule},
    {"kexec", AttackKexec},
    {"raw-socket", AttackRawSocket},
    {"vsock", AttackVsock},
    {"af-alg", AttackAlg},
};

}  // namespace

std::span<const Code> KernelAttacks() { return kCodes; }

}  // namespace ringfence::probe
