// ringfence-init: process 1 of every box. It runs inside, as the job's user, with the box's
// seccomp filter already on it, and does four things:
//   1. starts the job's command under Landlock, or not at all;
//   2. passes signals on to it and reaps what it leaves behind;
//   3. tells the jailer, over descriptor 3, that signals reach it, and how the command ended;
//   4. ends, and with it every process of the box, when the command ends or the jailer does.
//
//   ringfence-init [--ls PATH] [--ro PATH] [--rx PATH] [--rw PATH] [--dev PATH]...
//       [--network wait] [--unconfined probe] -- COMMAND [ARGUMENT]...
//
// Exit status: the command's (128 + N when signal N ended it), 125 when the box could not be
// confined, 126 when the command cannot be executed, 127 when it is not there.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "isolate/walls_away.h"
#include "os/failpoint.h"
#include "os/landlock_abi.h"

namespace landlock = ringfence::os::landlock;

namespace {

constexpr int kStatusFd = 3;
constexpr int kExitNotConfined = 125;
constexpr int kExitNotExecutable = 126;
constexpr int kExitNotFound = 127;
constexpr int kExitJailerGone = 137;
constexpr int kForwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};

[[noreturn]] void Refuse(const char* what) {
  (void)std::fprintf(stderr, "ringfence: the box cannot be confined: %s: %s\n", what,
                     std::strerror(errno));
  _exit(kExitNotConfined);
}

// With this option (and a value that says what it does) the box gets a network: the command starts
// once the jailer says that it is there, and may use ports.
constexpr const char* kNetworkOption = "--network";
// Taken for our own probe alone, whoever asks: its command runs without a Landlock domain.
constexpr const char* kUnconfinedOption = "--unconfined";

std::uint64_t RightsOf(const char* option) {
  if (std::strcmp(option, "--rx") == 0) {
    return landlock::kReadExecRights;
  }
  if (std::strcmp(option, "--ls") == 0) {
    return landlock::kReadDir;
  }
  if (std::strcmp(option, "--ro") == 0) {
    return landlock::kReadRights;
  }
  if (std::strcmp(option, "--rw") == 0) {
    return landlock::kWriteRights;
  }
  if (std::strcmp(option, "--dev") == 0) {
    return landlock::kDeviceRights;
  }
  return 0;
}

void Allow(int ruleset, int abi, const char* path, std::uint64_t rights) {
  const int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) {
      return;  // what is not there needs no right
    }
    Refuse(path);
  }
  struct stat facts{};
  if (fstat(fd, &facts) != 0 ||
      landlock::AllowFd(ruleset, abi, fd, S_ISDIR(facts.st_mode), rights) != 0) {
    Refuse(path);
  }
  (void)close(fd);
}

bool IsNetwork(const char* option) { return std::strcmp(option, kNetworkOption) == 0; }
bool IsUnconfined(const char* option) { return std::strcmp(option, kUnconfinedOption) == 0; }

bool HasOption(char** options, bool (*is)(const char*)) {
  for (char** at = options; std::strcmp(*at, "--") != 0; at += 2) {
    if (is(*at)) {
      return true;
    }
  }
  return false;
}
bool WantsNetwork(char** options) { return HasOption(options, IsNetwork); }

// The command's own domain: the places named, no signal or abstract socket out, and without a
// network no TCP port.
void ConfineCommand(int abi, char** options) {
  landlock::RulesetAttr attr{landlock::FsRightsOf(abi), landlock::NetRightsOf(abi),
                             landlock::ScopesOf(abi)};
  if (WantsNetwork(options)) {
    attr.handled_access_net = 0;  // which ports is the firewall's to say
  }
  const int ruleset = static_cast<int>(syscall(landlock::kSysCreateRuleset, &attr, sizeof attr, 0));
  if (ruleset < 0) {
    Refuse("Landlock ruleset");
  }
  for (char** at = options; std::strcmp(*at, "--") != 0; at += 2) {
    if (!IsNetwork(*at)) {
      Allow(ruleset, abi, at[1], RightsOf(at[0]));
    }
  }
  if (landlock::RestrictSelf(ruleset) != 0) {
    Refuse("Landlock");
  }
  (void)close(ruleset);
}

// This process itself needs no file at all. It keeps the right to signal, which a scope would take.
void ConfineInit(int abi) {
  const landlock::RulesetAttr attr{landlock::FsRightsOf(abi), landlock::NetRightsOf(abi), 0};
  const int ruleset = static_cast<int>(syscall(landlock::kSysCreateRuleset, &attr, sizeof attr, 0));
  if (ruleset < 0 || landlock::RestrictSelf(ruleset) != 0) {
    Refuse("Landlock for init");
  }
  (void)close(ruleset);
}

// If memory runs out, the job goes before this process, which must still say so.
void OfferToOomKiller() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    (void)!write(fd, "1000", 4);
    (void)close(fd);
  }
}

[[noreturn]] void RunCommand(int abi, char** options, char** command) {
  sigset_t none;
  (void)sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)setsid();
  OfferToOomKiller();
  if (!HasOption(options, IsUnconfined)) {
    ConfineCommand(abi, options);
  }
  (void)execvp(command[0], command);
  const int failed = errno;
  const bool has_path = std::strchr(command[0], '/') != nullptr;
  if (failed == ENOENT && !(has_path && access(command[0], F_OK) == 0)) {
    (void)std::fprintf(stderr, "ringfence: %s: command not found in the box\n", command[0]);
    _exit(kExitNotFound);
  }
  (void)std::fprintf(stderr, "ringfence: %s: cannot be executed in the box: %s\n", command[0],
                     failed == ENOENT ? "its interpreter is not there" : std::strerror(failed));
  _exit(kExitNotExecutable);
}

[[noreturn]] void Finish(int status) {
  char line[32];
  int code = 0;
  if (WIFSIGNALED(status)) {
    code = 128 + WTERMSIG(status);
    (void)std::snprintf(line, sizeof line, "signalled %d\n", WTERMSIG(status));
  } else {
    code = WEXITSTATUS(status);
    (void)std::snprintf(line, sizeof line, "exited %d\n", code);
  }
  RINGFENCE_FAILPOINT("init.command_ended");
  (void)!write(kStatusFd, line, std::strlen(line));
  RINGFENCE_FAILPOINT("init.said_ending");
  _exit(code);  // and the kernel ends everything else in this PID namespace
}

void ReapAll(pid_t command) {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) {
      return;
    }
    if (pid == command) {
      Finish(status);
    }
  }
}

[[noreturn]] void Attend(pid_t command, int signals) {
  pollfd fds[2] = {{signals, POLLIN, 0}, {kStatusFd, POLLIN, 0}};
  for (;;) {
    if (poll(fds, 2, -1) < 0 && errno != EINTR) {
      _exit(kExitNotConfined);
    }
    // The jailer never writes here: whatever happens on this descriptor is its end.
    if (fds[1].revents != 0) {
      _exit(kExitJailerGone);
    }
    signalfd_siginfo info{};
    while (read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) {
        ReapAll(command);
      } else {
        // To its whole group, or to it alone before it has made one.
        if (kill(-command, number) != 0) {
          (void)kill(command, number);
        }
      }
    }
  }
}

// Where the command starts in argv; options come in pairs before it.
char** FindCommand(int argc, char** argv) {
  int at = 1;
  bool unconfined = false;
  while (at < argc && std::strcmp(argv[at], "--") != 0) {
    const bool known = RightsOf(argv[at]) != 0 || IsNetwork(argv[at]) || IsUnconfined(argv[at]);
    if (!known || at + 1 >= argc) {
      return nullptr;
    }
    unconfined = unconfined || IsUnconfined(argv[at]);
    at += 2;
  }
  if (at + 1 >= argc ||
      (unconfined && std::strcmp(argv[at + 1], ringfence::isolate::kBoxProbePath) != 0)) {
    return nullptr;
  }
  return argv + at + 1;
}

// Until the jailer has put the wire in: before, nothing would be counted, and a job that tries at
// once would find no network. Nothing but "go" lets it run.
void AwaitNetwork() {
  char word[8] = {};
  ssize_t got = 0;
  do {
    got = read(kStatusFd, word, sizeof word);
  } while (got < 0 && errno == EINTR);
  if (got != 3 || std::memcmp(word, "go\n", 3) != 0) {
    _exit(kExitJailerGone);
  }
}

}  // namespace

int main(int argc, char** argv) {
  char** command = FindCommand(argc, argv);
  if (command == nullptr || fcntl(kStatusFd, F_SETFD, FD_CLOEXEC) != 0) {
    (void)std::fprintf(stderr, "ringfence-init runs inside a box and is started by the jailer\n");
    return kExitNotConfined;
  }
#ifdef RINGFENCE_FAILPOINTS
  ringfence::os::failpoint::TakeFrom(ringfence::os::failpoint::kBoxFd);
#endif
  RINGFENCE_FAILPOINT("init.begin");
  const int abi = landlock::Abi();
  if (abi < 1) {
    Refuse("this kernel has no Landlock");
  }
  sigset_t handled;
  (void)sigemptyset(&handled);
  (void)sigaddset(&handled, SIGCHLD);
  for (const int number : kForwarded) {
    (void)sigaddset(&handled, number);
  }
  (void)sigprocmask(SIG_BLOCK, &handled, nullptr);
  const int signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) {
    Refuse("signalfd");
  }
  if (WantsNetwork(argv + 1)) {
    AwaitNetwork();
  }
  const pid_t child = fork();
  if (child < 0) {
    Refuse("fork");
  }
  if (child == 0) {
    RunCommand(abi, argv + 1, command);
  }
  (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  RINGFENCE_FAILPOINT("init.forked");
  // Until here a signal to this process would have been lost, as to any process 1.
  (void)!write(kStatusFd, "ready\n", 6);
  RINGFENCE_FAILPOINT("init.ready");
  ConfineInit(abi);
  // The job's output must end when the job closes it, not when this process ends.
  for (int fd = 0; fd < 3; ++fd) {
    (void)close(fd);
  }
  Attend(child, signals);
}
