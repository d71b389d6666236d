#pragma once

// The agent's surroundings as a process of its own: HTTPS, threads, clocks and signals.

#include "agent/credentials.h"
#include "agent/surroundings.h"

namespace ringfence::agent {

// The other threads wait for boxes that the jailer ends after us, or for a server that may be gone.
// Nothing of theirs needs an orderly end: whatever they were at, the next agent takes up from the
// jailer's and the server's records, as it would after a crash.
[[noreturn]] void EndProcess(const Status& why);

class ProcessSurroundings final : public Surroundings {
 public:
  // `holder` must outlive it.
  explicit ProcessSurroundings(const CredentialHolder& holder) : holder_(holder) {}

  std::unique_ptr<Line> OpenLine() override;
  std::unique_ptr<Thread> Launch(std::function<void(const std::stop_token&)> work) override;
  void Pause(const std::stop_token& stop, Milliseconds time) override;
  bool WaitForStop(Milliseconds time) override;
  Status Poll(std::vector<os::PollItem>& items, std::optional<Milliseconds> timeout) override;
  Timestamp Now() const override { return SystemClock().Now(); }
  std::chrono::steady_clock::time_point Steady() const override {
    return std::chrono::steady_clock::now();
  }
  [[noreturn]] void Exit(const Status& why) override { EndProcess(why); }

 private:
  const CredentialHolder& holder_;
};

}  // namespace ringfence::agent
