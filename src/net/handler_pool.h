#pragma once

// The threads that run handlers, and the bounded queue before them. Waking a thread costs more than
// a short handler, so a task wakes one only when no other is already looking for work, and the one
// that slept last, whose caches are warm.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ringfence::net {

// Any thread.
class HandlerPool {
 public:
  using Task = std::function<void()>;

  HandlerPool(std::size_t threads, std::size_t queued_max);
  ~HandlerPool();  // as Stop()
  HandlerPool(const HandlerPool&) = delete;
  HandlerPool& operator=(const HandlerPool&) = delete;

  // Takes the task; false, and the task left where it is, when `queued_max` tasks wait already or
  // the pool has stopped.
  bool TryPush(Task& task);
  // For timers, whose number their makers bound: refused only by a stopped pool.
  void Push(Task task);
  // Drops what still waits and returns when what runs has ended. Not from a task.
  void Stop();

  std::size_t queued() const;

 private:
  struct Sleeper {
    std::condition_variable wake;
    bool called = false;
  };

  void Run();
  Task Next();  // empty when stopped
  void WakeOne();

  const std::size_t queued_max_;
  mutable std::mutex mutex_;  // guards all that follows, except the threads
  std::deque<Task> tasks_;
  std::vector<Sleeper*> asleep_;  // the last one slept last
  bool looking_ = false;          // a thread is awake and will look at the queue before it sleeps
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace ringfence::net
