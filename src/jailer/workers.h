#pragma once

// Worker processes under way: their output, their deadline, and who waits for them.

#include <chrono>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "isolate/worker.h"
#include "os/process.h"

namespace ringfence::jailer {

inline constexpr std::size_t kWorkersMax = 64;

class Workers {
 public:
  // The worker's document when it ended with 0; otherwise its own error, or what happened to it.
  using Done = std::function<void(Result<std::string>)>;
  using TimePoint = std::chrono::steady_clock::time_point;

  // kExhausted when as many as allowed are under way.
  Status Add(isolate::StartedWorker worker, TimePoint deadline, Done done);
  bool full() const { return workers_.size() >= kWorkersMax; }
  bool empty() const { return workers_.empty(); }

  void AddPollItems(std::vector<os::PollItem>& items) const;
  void ReadOutput();
  bool OnEnded(const os::Ended& ended);
  // Kills what has overstayed and hands over what is complete.
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;
  void KillAll();

 private:
  struct Worker {
    int pid = 0;
    os::UniqueFd process;
    os::UniqueFd out;  // closed at end of file
    std::string text;
    TimePoint deadline;
    bool killed = false;
    bool too_long = false;
    std::optional<os::Ended> ended;
    Done done;
  };
  static void Kill(Worker& worker);
  static Result<std::string> Outcome(Worker& worker);

  std::list<Worker> workers_;
};

}  // namespace ringfence::jailer
