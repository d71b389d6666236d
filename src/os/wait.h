#pragma once

#include <span>

#include "base/result.h"
#include "base/time.h"
#include "os/unique_fd.h"

namespace ringfence::os {

// A descriptor, and what it is waited for.
struct Wanted {
  int fd = -1;
  bool read = false;
  bool write = false;
};
// Waits until one of them is ready or `timeout` has passed; false: nothing was. It may say true too
// early: who reads or writes next must not block on it.
Result<bool> WaitAny(std::span<const Wanted> wanted, Milliseconds timeout);

// Lets one thread end another's WaitAny. Any thread may call Wake; one waits and clears.
class Waker {
 public:
  static Result<Waker> Make();
  int fd() const { return fd_.get(); }  // readable from Wake to Clear
  void Wake() const;
  void Clear() const;

 private:
  explicit Waker(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace ringfence::os
