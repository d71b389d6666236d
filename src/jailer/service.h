#pragma once

// The jailer's loop and its closed table of requests. One thread.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "isolate/worker.h"
#include "jailer/boxes.h"
#include "jailer/identity.h"
#include "jailer/pair.h"
#include "jailer/records.h"
#include "jailer/workers.h"

namespace ringfence::jailer {

// Exit status when the agent broke the protocol and the pair was ended.
inline constexpr int kExitPairEnded = 70;

struct ServiceParts {
  std::string node;
  Identity identity;
  std::vector<std::string> missing;  // why no box can run here; empty: they can
  isolate::WorkerPlace worker_place;
  os::UniqueFd socket;   // our end of the pair, non-blocking
  os::UniqueFd signals;  // SIGCHLD, SIGTERM, SIGINT
  int agent_pid = 0;     // our child; 0: it connected, and is the service manager's to end
};

class Service {
 public:
  // The references must outlive this.
  Service(ServiceParts parts, Records& records, Boxes& boxes, const Clock& clock);

  // Serves until the agent has ended and nothing of its boxes is left; returns the exit status.
  int Run();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  using AfterInventory = std::function<void(const Status&)>;

  void Wait();
  void HandleSignals();
  void HandleEnded(const os::Ended& ended);
  void HandleRequests();
  void Handle(const isolate::Request& request);
  Status KeepIncident(const std::string& what, const std::string& detail);
  void BreakPair(const Error& breach);
  void BeginShutdown(int signal);
  bool agent_is_child() const { return parts_.agent_pid != 0; }

  void HandleStart(std::uint32_t id, const isolate::StartRequest& request);
  void StartGranted(std::uint32_t id, const isolate::Grant& grant, const std::string& digest);
  void HandleEnd(std::uint32_t id, const std::string& lease);
  void HandleScrub(std::uint32_t id, const isolate::ScrubRequest& request);
  void ScrubUnstarted(std::uint32_t id, const isolate::ScrubRequest& request);
  void ScrubCards(std::uint32_t id, const std::string& lease,
                  const std::vector<gpu::WantedGpu>& gpus);
  void FinishScrub(std::uint32_t id, const std::string& lease,
                   const std::vector<gpu::WantedGpu>& gpus, Result<std::string> report);
  void HandleInventory(std::uint32_t id);
  void HandleList(std::uint32_t id);
  void HandleForget(std::uint32_t id, const std::string& lease);
  void HandleIncidents(std::uint32_t id);

  // Runs the inventory worker; `text` gets its document. Remembers the cards' minors.
  void RunInventory(std::function<void(Result<std::string>)> done);
  // Calls `then` once the minors of all these cards are known, or why they cannot be.
  void WithMinors(const std::vector<std::string>& uuids, AfterInventory then);
  Result<std::vector<gpu::WantedGpu>> Wanted(const std::vector<std::string>& uuids) const;

  Result<isolate::Grant> CheckGrant(const std::string& envelope) const;
  Status CheckCards(const isolate::Grant& grant) const;
  Status CheckCanRun() const;

  void Answer(std::uint32_t id, isolate::RequestType type, Status status);
  void AnswerFile(std::uint32_t id, isolate::RequestType type, ByteView bytes);

  ServiceParts parts_;
  Records* records_;
  Boxes* boxes_;
  const Clock* clock_;
  Pair pair_;
  Workers workers_;
  os::UniqueFd agent_process_;
  std::map<std::string, std::uint32_t> minors_;  // by UUID, from our own worker
  std::set<std::string> scrubbing_;              // UUIDs
  bool agent_running_ = true;
  bool shutting_down_ = false;
  std::optional<TimePoint> kill_agent_at_;
  int exit_status_ = 0;
};

}  // namespace ringfence::jailer
