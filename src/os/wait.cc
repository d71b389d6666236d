#include "os/wait.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <vector>

#include "os/error.h"

namespace ringfence::os {

Result<bool> WaitAny(std::span<const Wanted> wanted, Milliseconds timeout) {
  std::vector<pollfd> fds;
  fds.reserve(wanted.size());
  for (const Wanted& one : wanted) {
    const int events = (one.read ? POLLIN : 0) | (one.write ? POLLOUT : 0);
    fds.push_back({one.fd, static_cast<short>(events), 0});
  }
  const auto wait = std::clamp<std::int64_t>(timeout.count(), 0, INT_MAX);
  const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(wait));
  if (ready < 0 && errno != EINTR) {
    return ErrnoError("poll");
  }
  return ready != 0;
}

Result<Waker> Waker::Make() {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) {
    return ErrnoError("eventfd");
  }
  return Waker(std::move(fd));
}

void Waker::Wake() const {
  const std::uint64_t one = 1;
  (void)!::write(fd_.get(), &one, sizeof one);  // full means woken already
}

void Waker::Clear() const {
  std::uint64_t count = 0;
  (void)!::read(fd_.get(), &count, sizeof count);  // empty is what we want
}

}  // namespace ringfence::os
