#pragma once

// The jailer's loop: requests in and answers out, children, signals and deadlines. What it decides
// is the desk's. One thread.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "isolate/image_import.h"
#include "isolate/worker.h"
#include "jailer/boxes.h"
#include "jailer/desk.h"
#include "jailer/held_leases.h"
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
  isolate::ImagePlace images;
  std::map<std::string, MountPlace> mounts;
};

class Service final : private Hands {
 public:
  // The references must outlive this.
  Service(ServiceParts parts, Records& records, Boxes& boxes, HeldLeases& held, const Clock& clock);

  // Serves until the agent has ended and nothing of its boxes is left; returns the exit status.
  int Run();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void Wait();
  void HandleSignals();
  void HandleEnded(const os::Ended& ended);
  void HandleRequests();
  void BreakPair(const Error& breach);
  void BeginShutdown(int signal);
  void StopStarting();
  void AddWorker(Result<isolate::StartedWorker> worker, TimePoint deadline, Text done);
  bool agent_is_child() const { return parts_.agent_pid != 0; }

  bool full() const override { return workers_.full(); }
  void ReadInventory(Text done) override;
  void ScrubCards(const std::vector<gpu::WantedGpu>& gpus, Text done) override;
  void ReadMig(const gpu::WantedGpu& gpu, Text done) override;
  void CutCard(const gpu::WantedGpu& gpu, const std::string& target, const std::string& before,
               Text done) override;
  Result<gpu::DriverFiles> FilesFor(const std::vector<gpu::WantedGpu>& gpus) const override;
  Result<std::vector<gpu::DeviceNode>> FabricNodesFor(
      const std::vector<std::string>& kinds) const override;
  void StartBox(isolate::BoxPlan plan, Started started) override;
  void EndBox(const std::string& lease) override;
  void ReadyImage(const std::string& digest, Image done) override;
  Result<std::vector<isolate::NodeImage>> ListImages() const override;
  Result<image::StoredImage> VouchedImage(const std::string& digest) const;
  Result<os::UniqueFd> StartSensor() override;
  void EndSensor();
  Status CheckSharing(model::IsolationClass isolation) const override;
  std::string InTheWayOf(const std::string& lease) const override {
    return held_->InTheWayOf(lease);
  }

  ServiceParts parts_;
  Boxes* boxes_;
  HeldLeases* held_;
  Pair pair_;
  Workers workers_;
  Desk desk_;
  os::UniqueFd agent_process_;
  int sensor_pid_ = 0;  // 0: none
  os::UniqueFd sensor_process_;
  bool agent_running_ = true;
  bool shutting_down_ = false;
  std::optional<TimePoint> kill_agent_at_;
  std::set<std::string> checked_images_;  // digests whose trees were read since we started
  int exit_status_ = 0;
};

}  // namespace ringfence::jailer
