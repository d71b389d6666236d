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
    {
      const std::lock_guard lock(mutex_);
      if (on_press_) {
        on_press_();
      }
      ++count_;
    }
    changed_.notify_all();
  }
  // Called on each later press, before it is counted: whoever sees the count and begins something
  // new is not called off once more. It must not ask for presses itself.
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
