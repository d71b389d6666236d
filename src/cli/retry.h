#pragma once

#include <algorithm>
#include <chrono>

#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/presses.h"

namespace ringfence::cli {

// Decides how long to go on trying to reach a server that has gone away, and tells the user once
// that it went and once that it is back.
class Retry {
 public:
  Retry(Console& console, Milliseconds give_up, Milliseconds first_pause)
      : console_(console), give_up_(give_up), first_pause_(first_pause), pause_(first_pause) {}

  // Worth another try: the server is away, going away (it may drop what it was doing) or busy.
  static bool Helps(const Error& error) {
    return error.code == Code::kUnavailable || error.code == Code::kExhausted ||
           error.code == Code::kInternal;
  }
  // After a failure. False when the time is over; else it has slept (or a press cut that short).
  bool Again(const Error& error, Presses& presses, int seen) {
    const auto now = std::chrono::steady_clock::now();
    if (!away_) {
      away_ = true;
      since_ = now;
      console_.Warn(error.message + "; trying again for " + FormatDuration(give_up_));
    }
    // A defect does not go away: it gets only as long as a server takes to go down.
    const Milliseconds longest =
        error.code == Code::kInternal ? std::min(give_up_, kGoingDown) : give_up_;
    if (now - since_ + pause_ > longest) {
      return false;
    }
    presses.Sleep(pause_, seen);
    pause_ = std::min(pause_ * 2, Milliseconds(5000));
    return true;
  }
  void Worked() {
    if (away_) {
      away_ = false;
      pause_ = first_pause_;
      console_.Warn("the server is back");
    }
  }

 private:
  static constexpr Milliseconds kGoingDown{5000};

  Console& console_;
  Milliseconds give_up_;
  Milliseconds first_pause_;
  Milliseconds pause_;
  bool away_ = false;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace ringfence::cli
