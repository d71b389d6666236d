#include "os/signals.h"

#include <signal.h>
#include <time.h>

namespace ringfence::os {
namespace {

sigset_t HeldSet() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGCHLD);
  return set;
}

}  // namespace

void HoldSignals() {
  const sigset_t set = HeldSet();
  (void)pthread_sigmask(SIG_BLOCK, &set, nullptr);
  (void)signal(SIGPIPE, SIG_IGN);
}

void ReleaseSignals() {
  const sigset_t set = HeldSet();
  (void)pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  (void)signal(SIGPIPE, SIG_DFL);
}

Signal WaitForSignal(std::chrono::milliseconds timeout) {
  const sigset_t set = HeldSet();
  timespec limit{};
  limit.tv_sec = timeout.count() / 1000;
  limit.tv_nsec = timeout.count() % 1000 * 1000000;
  switch (sigtimedwait(&set, nullptr, &limit)) {
    case SIGTERM:
    case SIGINT:
      return Signal::kStop;
    case SIGHUP:
      return Signal::kReload;
    case SIGCHLD:
      return Signal::kChild;
    default:
      return Signal::kNone;
  }
}

}  // namespace ringfence::os
