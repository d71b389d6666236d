#pragma once

// All that the agent needs from outside its own memory, apart from its jailer: threads, time, the
// line to the server, and waiting. In the program this is the process it runs in (process.h); in
// tests/simulation a world without real time or network.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "os/process.h"

namespace ringfence::agent {

// One thread's line to the server.
class Line {
 public:
  Line() = default;
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  virtual ~Line() = default;
  // One try. An HTTP error is the Error in its body; kUnavailable when no answer came.
  virtual Result<Json> Send(const std::string& method, const std::string& target,
                            const Json& body) = 0;
};

// A thread under way. The destructor asks it to stop and waits for it.
class Thread {
 public:
  Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  virtual ~Thread() = default;
  virtual void RequestStop() = 0;
};

// Any thread.
class Surroundings {
 public:
  Surroundings() = default;
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;
  virtual ~Surroundings() = default;

  virtual std::unique_ptr<Line> OpenLine() = 0;
  // Returns at once, whatever `work` does.
  virtual std::unique_ptr<Thread> Launch(std::function<void(const std::stop_token&)> work) = 0;
  // Sleeps, or returns early when a stop is asked for.
  virtual void Pause(const std::stop_token& stop, Milliseconds time) = 0;
  // True when the process was told to stop within this time.
  virtual bool WaitForStop(Milliseconds time) = 0;
  // As os::Poll.
  virtual Status Poll(std::vector<os::PollItem>& items, std::optional<Milliseconds> timeout) = 0;
  virtual Timestamp Now() const = 0;  // of the wall's clock, which may jump
  virtual std::chrono::steady_clock::time_point Steady() const = 0;
  // Ends the process, and with it every thread wherever it is.
  [[noreturn]] virtual void Exit(const Status& why) = 0;
};

}  // namespace ringfence::agent
