#pragma once

// Time that passes only when nothing is left to do now, and threads that run one at a time: each
// blocking call hands the baton back. What happens is then a function of the seed alone.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/time.h"
#include "chance.h"

namespace ringfence::simulation {

// Thrown through a thread whose process was killed. Nothing may catch it on its way.
struct Killed {};

// Sleeps at once, where std::binary_semaphore would first spin and yield: the other side is never
// about to be done.
class Turn {
 public:
  void Give() {
    {
      const std::lock_guard lock(mutex_);
      mine_ = true;
    }
    changed_.notify_one();
  }
  void Take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return mine_; });
    mine_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool mine_ = false;
};

class Scheduler {
 public:
  struct Task;
  using TaskRef = std::shared_ptr<Task>;
  using Group = std::uint64_t;

  explicit Scheduler(std::uint64_t seed) : chance_(seed) {}
  ~Scheduler();
  // Drops what is due and unwinds every thread. The world that they refer to must still be there.
  void Finish();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  Milliseconds now() const { return now_; }
  std::uint64_t steps() const { return steps_; }
  Chance& chance() { return chance_; }

  // Calls `work` on the scheduler's own thread after `delay`. It must not block.
  void After(Milliseconds delay, std::function<void()> work);
  // Runs the next thing that is due; false when nothing is, or its time is after `until`.
  bool Step(Milliseconds until);

  Group NewGroup() { return next_group_++; }
  // A thread of the process `group`; it begins with the next steps. `work` may block.
  TaskRef Launch(Group group, std::function<void()> work);
  // Every thread of the group unwinds (Killed) from where it waits.
  void Kill(Group group);
  bool HasTasks(Group group) const;
  std::size_t TaskCount() const { return tasks_.size(); }

  // For the running task only:
  void Sleep(Milliseconds time);
  // Waits until Wake(ticket) or for `time`; true: woken. Take the ticket, give it away, wait.
  struct Ticket {
    TaskRef task;
    std::uint64_t number = 0;
  };
  Ticket TakeTicket();
  bool Wait(const Ticket& ticket, std::optional<Milliseconds> time);
  void Join(const TaskRef& task);  // goes on even when killed
  bool InTask() const { return current_ != nullptr; }
  [[noreturn]] void KillMe();

  // From anywhere; a ticket that is no longer waited for is passed over.
  void Wake(const Ticket& ticket);

  // The last lines and a hash of all of them: two runs are the same when their hashes are.
  void Trace(std::string line);
  std::uint64_t trace_hash() const { return trace_hash_; }
  const std::deque<std::string>& trace() const { return trace_; }
  void SetTraceKept(std::size_t lines) { trace_kept_ = lines; }

 private:
  void Resume(const TaskRef& task, std::uint64_t number, bool woken);
  void HandBack();  // the running task waits for its turn

  Chance chance_;
  Milliseconds now_{0};
  std::uint64_t steps_ = 0;
  std::uint64_t sequence_ = 0;
  std::map<std::pair<Milliseconds, std::uint64_t>, std::function<void()>> due_;
  std::map<std::uint64_t, TaskRef> tasks_;
  std::uint64_t next_task_ = 1;
  Group next_group_ = 1;
  TaskRef current_;
  Turn turn_;  // the scheduler's own
  std::deque<std::string> trace_;
  std::size_t trace_kept_ = 60;
  std::uint64_t trace_hash_ = 0xcbf29ce484222325ULL;
};

struct Scheduler::Task {
  std::uint64_t id = 0;
  Group group = 0;
  Turn turn;
  std::thread thread;
  std::uint64_t ticket = 0;  // what it waits for
  bool woken = false;
  bool killed = false;
  bool done = false;
  std::vector<Ticket> joiners;
};

}  // namespace ringfence::simulation
