#pragma once

// Points in time are UTC with milliseconds. Code that must know the time is given a Clock.

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ringfence {

using Milliseconds = std::chrono::milliseconds;
using Timestamp = std::chrono::sys_time<Milliseconds>;

// "2026-11-15T08:46:30.123Z": always this shape, so that text order is time order.
std::string FormatTime(Timestamp time);
// RFC 3339 in UTC ("Z"), seconds with up to three decimals; years 1970 to 9999.
Result<Timestamp> ParseTime(std::string_view text);

// "90s", "15m", "2h", "1h30m", "7d", "250ms"; at most 10 years.
Result<Milliseconds> ParseDuration(std::string_view text);
std::string FormatDuration(Milliseconds duration);

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  virtual Timestamp Now() const = 0;  // may be called from any thread
};

class SystemClock final : public Clock {
 public:
  Timestamp Now() const override {
    return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
  }
};

}  // namespace ringfence
