#pragma once

// The real server behind a simulated network: its routes, records, policy, audit log and sweeper,
// with simulated time, and a life that can end at any write.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "judge.h"
#include "net/http.h"
#include "scheduler.h"
#include "server/core.h"

namespace ringfence::simulation {

// A wall clock that can be wrong.
class SimClock final : public Clock {
 public:
  explicit SimClock(const Scheduler& scheduler) : scheduler_(scheduler) {}
  Timestamp Now() const override {
    return Timestamp(std::chrono::sys_days(std::chrono::year{2026} / 1 / 1)) + scheduler_.now() +
           offset;
  }
  Milliseconds offset{0};

 private:
  const Scheduler& scheduler_;
};

class SimServer {
 public:
  // Called at most once: the answer, or why the connection broke.
  using Done = std::function<void(Result<net::Response>)>;

  SimServer(Scheduler& scheduler, Judge& judge, std::shared_ptr<const policy::Policy> policy,
            std::string folder);
  ~SimServer() {
    ++life_;  // what still waits is not answered
    core_ = nullptr;
  }
  SimServer(const SimServer&) = delete;
  SimServer& operator=(const SimServer&) = delete;

  void Start();
  void Crash(const std::string& why);
  bool up() const { return core_ != nullptr; }
  SimClock& clock() { return clock_; }
  server::Core& core() { return *core_; }

  void Handle(const net::Request& request, Done done);
  std::string MintToken(const std::string& principal);
  // Every committed entry is in the log when this returns; the log's entries.
  Result<std::vector<Bytes>> FinishLog();
  std::string log_folder() const { return folder_ + "/log"; }
  std::string log_vkey() const;
  std::string server_address() const { return "server.sim:1"; }

  // Faults.
  int writes_failing_in_1000 = 0;
  int killed_at_write_in_1000 = 0;
  std::uint64_t crashes = 0;
  std::uint64_t requests = 0;
  // Called after a crash, so that somebody starts it again.
  std::function<void()> on_crash;

 private:
  server::ServerKeys Keys() const;
  WriteFate FateOfWrite();
  void Guarded(std::uint64_t life, const std::function<void()>& work);
  bool TendLog();
  void ScheduleSweep();
  void ScheduleSequencer();

  Scheduler& scheduler_;
  Judge& judge_;
  std::shared_ptr<const policy::Policy> policy_;
  const std::string folder_;
  SimClock clock_;
  Bytes grant_seed_;
  Bytes log_seed_;
  Bytes token_key_;
  crypto::KeyAndCertificate ca_;
  std::unique_ptr<server::Core> core_;
  std::uint64_t life_ = 0;
  bool sequencer_due_ = false;
  std::uint64_t next_request_ = 1;
  std::map<std::uint64_t, Done> open_;  // requests not answered yet
};

}  // namespace ringfence::simulation
