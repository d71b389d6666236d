#include "os/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "os/error.h"
#include "os/failpoint.h"
#include "os/file.h"
#include "os/memory_file.h"

namespace ringfence::os {
namespace {

constexpr int kExecFailed = 127;
constexpr std::size_t kReasonBytesMax = 4096;

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) {
    pointers.push_back(const_cast<char*>(text.c_str()));  // execve does not write through it
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Moves the wanted descriptors out of the way of their targets first, so that no order of pairs
// can overwrite one that is still needed.
Status PlaceFds(const SpawnOptions& options, int& report, int& program) {
  int beyond = 3;
  for (const auto& [ours, theirs] : options.fds) {
    beyond = std::max(beyond, theirs + 1);
  }
  const auto lift = [beyond](int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, beyond); };
  report = lift(report);
  program = program < 0 ? -1 : lift(program);
  std::vector<std::pair<int, int>> lifted;
  for (const auto& [ours, theirs] : options.fds) {
    lifted.emplace_back(lift(ours), theirs);
  }
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) {
    if (null < 0 || dup2(null, fd) < 0) {
      return ErrnoError("open /dev/null");
    }
  }
  for (const auto& [ours, theirs] : lifted) {
    if (dup2(ours, theirs) < 0) {
      return ErrnoError("place a descriptor");
    }
  }
  return {};
}

// Nothing of ours leaks into another program; a kernel that cannot promise that (before Linux 5.11)
// starts none.
Status CloseOthersOnExec(const SpawnOptions& options) {
  int last = 2;
  for (const auto& [ours, theirs] : options.fds) {
    last = std::max(last, theirs);
  }
  constexpr unsigned kCloseRangeCloexec = 4;
  if (syscall(SYS_close_range, static_cast<unsigned>(last + 1), UINT_MAX, kCloseRangeCloexec) !=
      0) {
    return ErrnoError("close descriptors to another program");
  }
  return {};
}

Status DieWith(pid_t parent, int signal) {
  if (signal != 0 && prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) != 0) {
    return ErrnoError("set parent death signal");
  }
  // It may have ended before it could be watched.
  if (signal != 0 && getppid() != parent) {
    return Error{Code::kUnavailable, "the parent has ended"};
  }
  return {};
}

Status RunProgram(const SpawnOptions& options, pid_t parent, int& report) {
  RINGFENCE_TRY(DieWith(parent, options.parent_death_signal));
  sigset_t none;
  sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)signal(SIGPIPE, SIG_DFL);
  if (options.new_session) {
    (void)setsid();
  }
  int program = options.exec_fd;
  RINGFENCE_TRY(PlaceFds(options, report, program));
  RINGFENCE_TRY(CloseOthersOnExec(options));
#ifdef RINGFENCE_FAILPOINTS
  failpoint::HandOn();
#endif
  if (options.before_exec) {
    RINGFENCE_TRY(options.before_exec());
  }
  RINGFENCE_TRY(DieWith(parent, options.parent_death_signal));  // a change of user cleared it
  const std::vector<char*> arguments = Pointers(options.arguments);
  const std::vector<char*> environment = Pointers(options.environment);
  if (program >= 0) {
    (void)syscall(SYS_execveat, program, "", arguments.data(), environment.data(), AT_EMPTY_PATH);
  } else {
    (void)execve(options.path.c_str(), arguments.data(), environment.data());
  }
  return ErrnoError("execute " + (options.path.empty() ? options.arguments[0] : options.path));
}

}  // namespace

Result<int> Spawn(const SpawnOptions& options) {
  RINGFENCE_ASSIGN(Pipe report, MakePipe());
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return ErrnoError("start a process");
  }
  if (pid == 0) {
    int report_fd = report.write.get();
    const Status failed = RunProgram(options, parent, report_fd);
    (void)WriteAll(report_fd, AsBytes(failed.error().message));
    _exit(kExecFailed);
  }
  report.write.Reset();
  std::array<std::byte, kReasonBytesMax> reason{};
  const Result<std::size_t> got = ReadSome(report.read.get(), reason);
  if (got.has_value() && *got == 0) {
    return pid;
  }
  (void)WaitFor(pid);
  return Error{Code::kUnavailable,
               got.has_value() ? ToText(ByteView(reason).first(*got)) : got.error().message};
}

namespace {

Ended FromStatus(int pid, int status) {
  if (WIFSIGNALED(status)) {
    return Ended{pid, true, WTERMSIG(status)};
  }
  return Ended{pid, false, WEXITSTATUS(status)};
}

}  // namespace

std::vector<Ended> ReapChildren() {
  std::vector<Ended> ended;
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) {
      return ended;
    }
    ended.push_back(FromStatus(pid, status));
  }
}

Ended WaitFor(int pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return FromStatus(pid, status);
}

Result<UniqueFd> OpenProcess(int pid) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.valid()) {
    return ErrnoError("open process " + std::to_string(pid));
  }
  return fd;
}

Status SendSignal(int pidfd, int signal) {
  if (syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) != 0 && errno != ESRCH) {
    return ErrnoError("send a signal");
  }
  return {};
}

Result<UniqueFd> OpenSignals(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    sigaddset(&set, signal);
  }
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) {
    return ErrnoError("block signals");
  }
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) {
    return ErrnoError("open signals");
  }
  return fd;
}

int ReadSignal(int signals_fd) {
  signalfd_siginfo info{};
  const ssize_t got = read(signals_fd, &info, sizeof info);
  return got == static_cast<ssize_t>(sizeof info) ? static_cast<int>(info.ssi_signo) : 0;
}

Status Poll(std::vector<PollItem>& items, std::optional<std::chrono::milliseconds> timeout) {
  std::vector<pollfd> fds;
  fds.reserve(items.size());
  for (const PollItem& item : items) {
    fds.push_back(pollfd{item.fd, static_cast<short>(item.write ? POLLOUT : POLLIN), 0});
  }
  int wait = -1;
  if (timeout.has_value()) {
    wait = static_cast<int>(std::clamp<std::int64_t>(timeout->count(), 0, INT_MAX));
  }
  if (poll(fds.data(), fds.size(), wait) < 0 && errno != EINTR) {
    return ErrnoError("poll");
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    const int got = fds[i].revents;
    items[i].ready = (got & (POLLIN | POLLOUT)) != 0;
    items[i].hung_up = (got & (POLLHUP | POLLERR | POLLNVAL)) != 0;
  }
  return {};
}

}  // namespace ringfence::os
