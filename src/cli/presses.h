#pragma once

// How often the user asked to stop (Ctrl-C), and a sleep that such a press cuts short.

#include <condition_variable>
#include <functional>
#include <mutex>

#include "base/time.h"

namespace ringfence::cli {

// Any thread.
class Presses {
 public:
  void Press() {
    std::function<void()> call;
    {
      const std::lock_guard lock(mutex_);
      ++count_;
      call = on_press_;
    }
    changed_.notify_all();
    if (call) {
      call();
    }
  }
  // Called on each later press, after it is counted.
  void OnPress(std::function<void()> call) {
    const std::lock_guard lock(mutex_);
    on_press_ = std::move(call);
  }
  int count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  // Returns after `time`, or as soon as there are more than `seen` presses.
  void Sleep(Milliseconds time, int seen) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [&] { return count_ > seen; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
  std::function<void()> on_press_;
};

}  // namespace ringfence::cli
