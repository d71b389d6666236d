#include "os/gate.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace ringfence::os {
namespace {

void Wake(const std::atomic<std::uint32_t>& word, int most) {
  (void)syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
}

}  // namespace

bool Gate::Wait(std::optional<std::chrono::seconds> most) {
  timespec end{};  // on the monotonic clock
  if (most.has_value()) {
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += most->count();
  }
  while (open_ == 0) {
    const long slept = syscall(SYS_futex, &open_, FUTEX_WAIT_BITSET_PRIVATE, 0,
                               most.has_value() ? &end : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
    if (slept < 0 && errno == ETIMEDOUT && open_ == 0) {
      return false;
    }
  }
  if (!others_woken_.exchange(true)) {
    Wake(open_, INT_MAX);
  }
  return true;
}

void Gate::Open() {
  open_ = 1;
  Wake(open_, 1);
}

}  // namespace ringfence::os
