#pragma once

// Requests that wait for something to happen, without holding a thread.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/time.h"

namespace ringfence::server {

// Requests that wait at once; twice the connections there can be, as one whose client has gone
// stays until its time is over. Beyond it nobody waits: the answer is what there is now.
inline constexpr std::size_t kParkedMax = 2048;

// Any thread.
class Waiters {
 public:
  // Runs a task soon, or after a delay, on some other thread (net::Server::After).
  using Later = std::function<void(Milliseconds, std::function<void()>)>;
  // Tries to answer; true when it has. `last`: the wait is over, answer with what there is.
  using Attempt = std::function<bool(bool last)>;

  void SetLater(Later later) { later_ = std::move(later); }

  // Tries at once, then after each Notify(topic), and a last time after `wait`.
  void Park(const std::string& topic, Milliseconds wait, Attempt attempt);
  void Notify(const std::string& topic);
  void NotifyAll();
  // Every waiting request gets its last attempt, and so does every later one at once: the server
  // is about to stop, and nothing may be put off any more.
  void ReleaseAll();

 private:
  struct Parked {
    std::mutex mutex;
    bool done = false;
    Attempt attempt;
  };
  static void Try(Parked& parked, bool last);

  Later later_;
  std::mutex mutex_;
  bool closed_ = false;
  std::size_t count_ = 0;  // of those in parked_
  std::map<std::string, std::vector<std::shared_ptr<Parked>>> parked_;
};

}  // namespace ringfence::server
