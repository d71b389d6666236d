#pragma once

// A program that is waited for, but not for ever.

#include <chrono>
#include <string>

#include "base/result.h"
#include "os/process.h"

namespace ringfence::os {

struct BoundedRun {
  std::size_t bytes_max = 64 * 1024;  // of what it prints
  std::chrono::milliseconds time_max{60'000};
  bool with_errors = true;  // its standard error too
};
struct Finished {
  std::string text;  // what it printed
  Ended ended;
};
// Starts it in a session of its own, with its output to us, and returns when it has ended. When
// time is up or it prints too much, it and its whole session's group are killed: kUnavailable or
// kExhausted.
Result<Finished> RunBounded(SpawnOptions spawn, const BoundedRun& bounds);

}  // namespace ringfence::os
