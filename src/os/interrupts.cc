#include "os/interrupts.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>
#include <utility>

#include "os/error.h"
#include "os/unique_fd.h"

namespace ringfence::os {
namespace {

sigset_t Caught() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

struct Interrupts::State {
  UniqueFd signals;
  UniqueFd stop;
  sigset_t before{};
  int handled_max = 0;
  std::function<void(int)> pressed;
  std::thread watcher;

  void Watch() const {
    for (int count = 1;; ++count) {
      std::array<pollfd, 2> ready{{{signals.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}}};
      while (::poll(ready.data(), ready.size(), -1) < 0) {
      }
      if ((ready[1].revents & POLLIN) != 0) {
        return;
      }
      signalfd_siginfo info{};
      if (::read(signals.get(), &info, sizeof info) != sizeof info) {
        --count;
        continue;
      }
      if (count > handled_max) {
        const int number = static_cast<int>(info.ssi_signo);
        (void)std::signal(number, SIG_DFL);
        const sigset_t caught = Caught();
        (void)pthread_sigmask(SIG_UNBLOCK, &caught, nullptr);
        (void)pthread_kill(pthread_self(), number);
        return;
      }
      pressed(count);
    }
  }
};

Interrupts::Interrupts(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Interrupts>> Interrupts::Catch(int handled_max,
                                                      std::function<void(int count)> pressed) {
  auto state = std::make_unique<State>();
  state->handled_max = handled_max;
  state->pressed = std::move(pressed);
  const sigset_t caught = Caught();
  state->signals = UniqueFd(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
  state->stop = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  if (!state->signals.valid() || !state->stop.valid()) {
    return ErrnoError("signals");
  }
  if (const int wrong = pthread_sigmask(SIG_BLOCK, &caught, &state->before); wrong != 0) {
    return ErrnoError("signals", wrong);
  }
  state->watcher = std::thread([raw = state.get()] { raw->Watch(); });
  return std::unique_ptr<Interrupts>(new Interrupts(std::move(state)));
}

Interrupts::~Interrupts() {
  const std::uint64_t one = 1;
  (void)!::write(state_->stop.get(), &one, sizeof one);  // an eventfd takes eight bytes always
  state_->watcher.join();
  (void)pthread_sigmask(SIG_SETMASK, &state_->before, nullptr);
}

}  // namespace ringfence::os
