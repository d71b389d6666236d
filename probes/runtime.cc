// Attacks on what the container runtime does and leaves: descriptors, masks, its own programs, the
// environment, and what a program may become.

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "util.h"

extern char** environ;

namespace ringfence::probe {
namespace {

// CVE-2024-21626: a folder of the host that the runtime had open, as a descriptor or as the folder
// that the job starts in.
Outcome AttackLeakedDescriptor(const Input& /*input*/) {
  struct stat root{};
  struct stat here{};
  if (stat("/", &root) != 0) {
    return Refused("/", errno);
  }
  for (int fd = 3; fd < 1024; ++fd) {
    struct stat facts{};
    if (fstat(fd, &facts) != 0) {
      continue;
    }
    if (S_ISDIR(facts.st_mode)) {
      return Leaked(
          0, "descriptor " + std::to_string(fd) + " is an open folder, " +
                 (facts.st_dev == root.st_dev && facts.st_ino == root.st_ino ? "the box's own root"
                                                                             : "of the host"));
    }
    return Leaked(0, "descriptor " + std::to_string(fd) + " was left open to the job");
  }
  char folder[4096];
  const char* const own = getcwd(folder, sizeof folder);
  if (own == nullptr || own[0] != '/' || stat(own, &here) != 0) {
    return Leaked(0, "the job starts in a folder that is not beneath its root");
  }
  return Held("nothing but the standard descriptors is open, and the folder is the box's");
}

struct MaskedPath {
  const char* path;
  bool folder;
};
constexpr MaskedPath kMasked[] = {
    {"/proc/interrupts", false},
    {"/proc/keys", false},
    {"/proc/kallsyms", false},
    {"/proc/timer_list", false},
    {"/proc/key-users", false},
    {"/proc/slabinfo", false},
    {"/proc/vmallocinfo", false},
    {"/proc/config.gz", false},
    {"/proc/acpi", true},
    {"/sys/firmware", true},
    {"/sys/fs", true},
    {"/sys/kernel/debug", true},
    {"/sys/kernel/slab", true},
    {"/sys/kernel/tracing", true},
    {"/sys/kernel/security", true},
};

// CVE-2025-31133: where /dev/null was not what it should be, a mask was none.
Outcome AttackMasked(const Input& /*input*/) {
  struct stat null{};
  if (stat("/dev/null", &null) != 0 || !S_ISCHR(null.st_mode) || null.st_rdev != makedev(1, 3)) {
    return Leaked(0, "/dev/null is not the device that masks are made of");
  }
  int masked = 0;
  for (const MaskedPath& one : kMasked) {
    std::string bytes;
    struct stat facts{};
    if (stat(one.path, &facts) != 0) {
      continue;
    }
    ++masked;
    if (one.folder ? !ListFolder(one.path).empty()
                   : ReadFile(one.path, 64, bytes) && !bytes.empty()) {
      return Leaked(bytes.size(), std::string(one.path) + " is not masked");
    }
  }
  return Held(std::to_string(masked) + " paths are there, and empty");
}

// Opened for writing, and never written to.
Outcome OpenForWriting(std::initializer_list<const char*> paths) {
  std::string refused;
  for (const char* path : paths) {
    const Fd fd(open(path, O_WRONLY | O_CLOEXEC));
    if (fd.ok()) {
      return Leaked(0, std::string(path) + " can be written to");
    }
    if (errno != ENOENT) {
      refused += (refused.empty() ? "" : "; ") + std::string(path) + ": " + Words(errno);
    }
  }
  return refused.empty() ? CannotTry("this kernel has none of these files") : Held(refused);
}

// Where CVE-2025-52881 turned a write of the runtime's to.
Outcome AttackKnobs(const Input& /*input*/) {
  return OpenForWriting({"/proc/sysrq-trigger", "/proc/sys/kernel/panic",
                         "/proc/sys/vm/drop_caches", "/proc/sys/kernel/modprobe",
                         "/proc/sys/kernel/randomize_va_space", "/proc/irq/default_smp_affinity"});
}
Outcome AttackCorePattern(const Input& /*input*/) {
  return OpenForWriting({"/proc/sys/kernel/core_pattern"});
}

// CVE-2019-5736. A program that runs cannot be opened for writing, and that answer comes before
// those of some walls: it says nothing.
Outcome AttackRuntimePrograms(const Input& /*input*/) {
  std::string refused;
  for (const char* path :
       {"/run/ringfence/init", "/proc/1/exe", "/usr/sbin/runc", "/usr/bin/env", "/usr/bin/true"}) {
    const Fd fd(open(path, O_WRONLY | O_CLOEXEC));
    if (fd.ok()) {
      return Leaked(0, std::string(path) + " of the host can be written to");
    }
    refused += (refused.empty() ? "" : "; ") + std::string(path) + ": " + Words(errno);
  }
  return Held(refused);
}

// Whatever else is there came from the host, or from whoever could speak to the runtime: LD_PRELOAD
// into its hooks was CVE-2025-23266.
Outcome AttackEnvironment(const Input& /*input*/) {
  constexpr std::string_view kKnown[] = {"PATH",
                                         "HOME",
                                         "USER",
                                         "LANG",
                                         "LD_LIBRARY_PATH",
                                         "RINGFENCE_LEASE",
                                         "RINGFENCE_TENANT",
                                         "CUDA_MPS_PIPE_DIRECTORY"};
  int count = 0;
  for (char** at = environ; *at != nullptr; ++at, ++count) {
    const std::string_view variable = *at;
    const std::string_view name = variable.substr(0, variable.find('='));
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) {
      return Leaked(0, "a variable that is none of the box's: " + std::string(name));
    }
  }
  return Held(std::to_string(count) + " variables, all of them the box's own");
}

Outcome AttackHostname(const Input& /*input*/) {
  utsname facts{};
  if (uname(&facts) != 0) {
    return Refused("uname", errno);
  }
  return std::strcmp(facts.nodename, "box") == 0
             ? Held("the name is every box's")
             : Leaked(std::strlen(facts.nodename),
                      "the host's name can be read, and with the right "
                      "capability set");
}

// The effective user of a process, as everyone may read it; -1: unknown.
int EffectiveUser(pid_t pid) {
  std::string status;
  if (!ReadFile("/proc/" + std::to_string(pid) + "/status", 65536, status)) {
    return -1;
  }
  const std::size_t at = status.find("\nUid:");
  int real = -1;
  int effective = -1;
  if (at == std::string::npos ||
      std::sscanf(status.c_str() + at, "\nUid: %d %d", &real, &effective) != 2) {
    return -1;
  }
  return effective;
}

bool HasEnded(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == pid;
}

// Runs `path --help` with no room for its words, so that it stands still, and looks who it is.
int UserOnceRun(const char* path, int& error) {
  int room[2];
  int failed[2];
  if (pipe2(room, O_CLOEXEC) != 0 || pipe2(failed, O_CLOEXEC) != 0) {
    error = errno;
    return -1;
  }
  (void)fcntl(room[1], F_SETPIPE_SZ, 4096);
  (void)fcntl(room[1], F_SETFL, O_NONBLOCK);
  const char filling[4096] = {};
  while (write(room[1], filling, sizeof filling) > 0) {
  }
  (void)fcntl(room[1], F_SETFL, 0);
  const pid_t child = fork();
  if (child == 0) {
    (void)dup2(room[1], 1);
    (void)dup2(room[1], 2);
    (void)execl(path, path, "--help", nullptr);
    const int wrong = errno;
    (void)!write(failed[1], &wrong, sizeof wrong);
    _exit(127);
  }
  const Fd out(room[0]);
  const Fd why(failed[0]);
  (void)close(failed[1]);
  (void)close(room[1]);
  error = 0;
  int user = -1;
  if (read(why.get(), &error, sizeof error) == 0) {  // the program runs
    error = 0;
    user = EffectiveUser(child);
  }
  std::string rest(8192, '\0');
  while (!HasEnded(child)) {
    pollfd item{out.get(), POLLIN, 0};
    if (poll(&item, 1, 10) == 1) {
      (void)!read(out.get(), rest.data(), rest.size());
    }
  }
  (void)waitpid(child, nullptr, 0);
  return user;
}

Outcome AttackSetuid(const Input& /*input*/) {
  for (const char* path :
       {"/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/newgrp", "/usr/bin/chfn"}) {
    struct stat facts{};
    if (stat(path, &facts) != 0 || (facts.st_mode & S_ISUID) == 0) {
      continue;
    }
    int error = 0;
    const int before = static_cast<int>(geteuid());
    const int user = UserOnceRun(path, error);
    if (error != 0) {
      return Refused(path, error);
    }
    return user == 0 && before != 0
               ? Leaked(0, std::string(path) + " ran as root")
               : Held(std::string(path) + " has the set-user-id bit and ran as user " +
                      std::to_string(user));
  }
  return CannotTry("no program here has the set-user-id bit");
}

constexpr Code kCodes[] = {
    {"leaked-descriptor", AttackLeakedDescriptor},
    {"masked-paths", AttackMasked},
    {"kernel-knobs", AttackKnobs},
    {"core-pattern", AttackCorePattern},
    {"runtime-programs", AttackRuntimePrograms},
    {"environment", AttackEnvironment},
    {"hostname", AttackHostname},
    {"setuid", AttackSetuid},
};

}  // namespace

std::span<const Code> RuntimeAttacks() { return kCodes; }

}  // namespace ringfence::probe
