// Attacks on a neighbour's processes: its memory, environment, files, descriptors, and by signals.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "hex.h"
#include "util.h"

namespace ringfence::probe {
namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kFileBytesMax = 65536;

std::string Path(const Target& target, const std::string& name) {
  return "/proc/" + std::to_string(target.pid) + "/" + name;
}

Outcome Judge(const Input& input, const std::string& where, const std::string& bytes) {
  const std::uint64_t found = input.FindSecret(bytes);
  return found > 0 ? Leaked(found, "the secret was in " + where)
                   : Held(where + " was read, and the secret is not in it");
}

Outcome ReadOf(const Input& input, const std::string& name) {
  const Target target = FindVictim(input);
  if (target.pid == 0) {
    return NotVisible(target);
  }
  std::string bytes;
  if (!ReadFile(Path(target, name), kFileBytesMax, bytes)) {
    return Refused(Path(target, name), errno);
  }
  return Judge(input, Path(target, name), bytes);
}

// The secret, at an address that is told.
void PlantInMemory(Victim& victim) {
  char* const place = new char[kSecretBytes];  // for as long as we live
  std::memcpy(place, victim.secret.data(), kSecretBytes);
  victim.facts["address"] = std::to_string(reinterpret_cast<std::uintptr_t>(place));
}

Outcome AttackProcMem(const Input& input) {
  const Target target = FindVictim(input);
  if (target.pid == 0) {
    return NotVisible(target);
  }
  const Fd memory(open(Path(target, "mem").c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory.ok()) {
    return Refused(Path(target, "mem"), errno);
  }
  std::string bytes(kSecretBytes, '\0');
  if (pread(memory.get(), bytes.data(), bytes.size(), input.Number("address")) !=
      static_cast<ssize_t>(kSecretBytes)) {
    return Refused(Path(target, "mem"), errno);
  }
  return Judge(input, Path(target, "mem"), bytes);
}

Outcome AttackProcessVmReadv(const Input& input) {
  const Target target = FindVictim(input);
  if (target.pid == 0) {
    return NotVisible(target);
  }
  std::string bytes(kSecretBytes, '\0');
  const iovec here{bytes.data(), bytes.size()};
  const iovec there{reinterpret_cast<void*>(input.Number("address")), bytes.size()};
  if (process_vm_readv(target.pid, &here, 1, &there, 1, 0) != static_cast<ssize_t>(kSecretBytes)) {
    return Refused("process_vm_readv", errno, {ENOSYS});
  }
  return Judge(input, "its memory, by process_vm_readv", bytes);
}

Outcome AttackPtrace(const Input& input) {
  const Target target = FindVictim(input);
  if (target.pid == 0) {
    return NotVisible(target);
  }
  if (ptrace(PTRACE_SEIZE, target.pid, nullptr, nullptr) != 0) {
    return Refused("ptrace(PTRACE_SEIZE)", errno, {ENOSYS});
  }
  std::string bytes;
  int error = 0;
  if (ptrace(PTRACE_INTERRUPT, target.pid, nullptr, nullptr) == 0 &&
      waitpid(target.pid, nullptr, __WALL) == target.pid) {
    for (std::size_t at = 0; at < kSecretBytes; at += sizeof(long)) {
      errno = 0;
      const long word =
          ptrace(PTRACE_PEEKDATA, target.pid, input.Number("address") + static_cast<long>(at), 0);
      error = errno;
      bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
    }
  }
  (void)ptrace(PTRACE_DETACH, target.pid, nullptr, nullptr);
  return error != 0 ? Refused("ptrace(PTRACE_PEEKDATA)", error)
                    : Judge(input, "its memory, by ptrace", bytes);
}

// The kernel shows the environment that a program was started with: so it starts itself again.
void PlantInEnvironment(Victim& victim) {
  constexpr const char* kVariable = "RINGFENCE_PROBE_SECRET";
  if (getenv(kVariable) != nullptr) {
    return;
  }
  (void)setenv(kVariable, ToHex(victim.secret).c_str(), 1);
  const std::string secret = "secret=" + ToHex(victim.secret);
  (void)execl("/proc/self/exe", "ringfence-probe", "proc-environ", "victim", secret.c_str(),
              nullptr);
  victim.CouldNotPlant("execve", errno);
}

Outcome AttackEnviron(const Input& input) { return ReadOf(input, "environ"); }
Outcome AttackCommandLine(const Input& input) { return ReadOf(input, "cmdline"); }

constexpr const char* kHomeFile = "/home/job/secret";

void PlantInHome(Victim& victim) {
  if (!WriteFile(kHomeFile, victim.secret)) {
    victim.CouldNotPlant("open", errno);
  }
}

Outcome AttackProcRoot(const Input& input) {
  return ReadOf(input, std::string("root") + kHomeFile);
}

// A file that has no name anywhere but in its holder's folder of descriptors.
void PlantInDescriptor(Victim& victim) {
  const int fd = memfd_create("secret", MFD_CLOEXEC);
  if (fd < 0 || write(fd, victim.secret.data(), victim.secret.size()) !=
                    static_cast<ssize_t>(victim.secret.size())) {
    victim.CouldNotPlant("memfd_create", errno);
    return;
  }
  victim.facts["fd"] = std::to_string(fd);
}

Outcome AttackProcFd(const Input& input) { return ReadOf(input, "fd/" + input.Get("fd")); }

Outcome AttackPidfdGetfd(const Input& input) {
  const Target target = FindVictim(input);
  if (target.pid == 0) {
    return NotVisible(target);
  }
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, target.pid, 0)));
  if (!process.ok()) {
    return Refused("pidfd_open", errno, {ENOSYS});
  }
  const Fd stolen(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), input.Number("fd"), 0)));
  if (!stolen.ok()) {
    return Refused("pidfd_getfd", errno, {ENOSYS});
  }
  std::string bytes(kSecretBytes, '\0');
  if (pread(stolen.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(kSecretBytes)) {
    return Refused("pread", errno);
  }
  return Judge(input, "a descriptor taken from it", bytes);
}

Outcome AttackSignal(const Input& input) {
  const Target target = FindVictim(input);
  if (target.pid == 0) {
    return NotVisible(target);
  }
  if (kill(target.pid, SIGUSR1) != 0) {
    return Refused("kill", errno);
  }
  return Leaked(0, "a signal was sent to process " + std::to_string(target.pid));
}

constexpr Code kCodes[] = {
    {"proc-cmdline", AttackCommandLine},
    {"proc-environ", AttackEnviron, PlantInEnvironment},
    {"proc-mem", AttackProcMem, PlantInMemory},
    {"proc-root", AttackProcRoot, PlantInHome},
    {"proc-fd", AttackProcFd, PlantInDescriptor},
    {"ptrace", AttackPtrace, PlantInMemory},
    {"process-vm-readv", AttackProcessVmReadv, PlantInMemory},
    {"pidfd-getfd", AttackPidfdGetfd, PlantInDescriptor},
    {"signal", AttackSignal},
};

}  // namespace

std::span<const Code> ProcessAttacks() { return kCodes; }

}  // namespace ringfence::probe
