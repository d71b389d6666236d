#pragma once

// One thread of the generator: its connections, the requests that are due, and what came of them.

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"
#include "load/histogram.h"
#include "load/ops.h"

namespace ringfence::bench {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

struct OpStats {
  Histogram expected;            // answered as the kind of request should be
  Histogram refused;             // 429 and 503
  std::uint64_t unanswered = 0;  // until the end, or cut off; counted as `expected` with their age
  std::uint64_t no_retry_after = 0;  // refusals that do not say when to come back
  std::map<int, std::uint64_t> statuses;
};

struct Stats {
  std::vector<OpStats> ops;    // as in Target
  std::uint64_t connects = 0;  // handshakes done
  std::uint64_t connects_failed = 0;
  std::uint64_t cut = 0;     // connections that ended in the middle of a request
  std::uint64_t unsent = 0;  // due, and no connection was free until the end
};

struct Phase {
  double rate = 0;  // of this worker; 0: as fast as the answers come
  bool fixed = false;
  double warmup = 0;
  double seconds = 0;
};

class ClientConnection;

// For the thread that calls Run.
class Worker {
 public:
  Worker(const Target& target, int connections, std::uint64_t seed);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Result<Stats> Run(const Phase& phase);

 private:
  friend class ClientConnection;
  struct Due {
    TimePoint time;
    std::size_t op;
  };

  std::size_t PickOp();
  void MakeDue(TimePoint now);
  void Assign(TimePoint now);
  void WaitForEvents(TimePoint until);
  void Answered(const Due& due, int status, bool retry_after, TimePoint now);
  void Unanswered(const Due& due, TimePoint now);
  bool Counts(const Due& due) const { return due.time >= count_from_; }

  const Target& target_;
  const int epoll_;
  std::vector<std::unique_ptr<ClientConnection>> connections_;
  std::vector<ClientConnection*> idle_;
  std::mt19937_64 random_;
  double weights_ = 0;
  Phase phase_;
  std::deque<Due> due_;
  TimePoint next_due_{};
  TimePoint count_from_{};
  TimePoint arrivals_end_{};
  Stats stats_;
};

}  // namespace ringfence::bench
