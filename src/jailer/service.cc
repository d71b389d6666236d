#include "jailer/service.h"

#include <algorithm>

#include "gpu/sharing.h"
#include "isolate/fabric_devices.h"
#include "isolate/image_worker.h"
#include "os/failpoint.h"
#include "os/log.h"
#include "os/notify.h"

namespace ringfence::jailer {
namespace {

constexpr int kSigInt = 2;
constexpr int kSigKill = 9;
constexpr int kSigTerm = 15;
constexpr int kSigChild = 17;
constexpr auto kAgentGrace = std::chrono::seconds(10);
constexpr int kRequestsPerTurn = 16;
constexpr auto kInventoryMax = std::chrono::minutes(1);
constexpr auto kScrubMax = std::chrono::minutes(10);
constexpr auto kMigMax = std::chrono::minutes(2);
constexpr auto kImageCheckMax = std::chrono::minutes(10);

}  // namespace

Service::Service(ServiceParts parts, Records& records, Boxes& boxes, HeldLeases& held,
                 const Clock& clock)
    : parts_(std::move(parts)),
      boxes_(&boxes),
      held_(&held),
      pair_(std::move(parts_.socket)),
      desk_({parts_.node, std::move(parts_.identity), std::move(parts_.missing),
             [this](isolate::Reply reply, std::vector<os::UniqueFd> fds) {
               pair_.Answer(std::move(reply), std::move(fds));
             },
             parts_.mounts},
            records, *this, clock) {
  held_->OnIncident([this](const std::string& what, const std::string& detail) {
    (void)desk_.KeepIncident(what, detail);  // it is in the log too
  });
  if (!agent_is_child()) {
    return;
  }
  auto process = os::OpenProcess(parts_.agent_pid);
  if (process.has_value()) {
    agent_process_ = std::move(*process);
  }
}

int Service::Run() {
  while (agent_running_ || !boxes_->empty() || !held_->empty() || !workers_.empty()) {
    Wait();
    HandleSignals();
    boxes_->ReadStatus();
    workers_.ReadOutput();
    const TimePoint now = std::chrono::steady_clock::now();
    workers_.Tick(now);
    boxes_->Tick(now);
    held_->Tick(now);
    if (kill_agent_at_.has_value() && now >= *kill_agent_at_) {
      (void)os::SendSignal(agent_process_.get(), kSigKill);
      kill_agent_at_.reset();
    }
    if (pair_.open()) {
      HandleRequests();
    }
    if (pair_.open() && !pair_.Flush().has_value()) {
      pair_.Close();
    }
    if (!agent_is_child() && !pair_.open()) {
      agent_running_ = false;  // as far as we can know
    }
    if (shutting_down_ || !agent_running_) {
      boxes_->KillAll();
      held_->KillAll(now);
      workers_.KillAll();
      EndSensor();
    }
  }
  EndSensor();
  return exit_status_;
}

void Service::Wait() {
  std::vector<os::PollItem> items = {{parts_.signals.get()}};
  if (pair_.open()) {
    items.push_back({pair_.fd()});
    if (pair_.wants_to_write()) {
      items.push_back({pair_.fd(), true});
    }
  }
  workers_.AddPollItems(items);
  boxes_->AddPollItems(items);
  std::optional<TimePoint> next = boxes_->NextDeadline();
  for (const auto& other : {workers_.NextDeadline(), held_->NextDeadline(), kill_agent_at_}) {
    if (other.has_value() && (!next.has_value() || *other < *next)) {
      next = other;
    }
  }
  std::optional<std::chrono::milliseconds> timeout;
  if (next.has_value()) {
    timeout =
        std::chrono::ceil<std::chrono::milliseconds>(*next - std::chrono::steady_clock::now());
  }
  if (const Status polled = os::Poll(items, timeout); !polled.has_value()) {
    os::Log(os::Level::kError, "poll_failed", {{"reason", polled.error().message}});
  }
}

void Service::HandleSignals() {
  while (const int signal = os::ReadSignal(parts_.signals.get())) {
    if (signal == kSigTerm || signal == kSigInt) {
      BeginShutdown(signal);
    }
    if (signal != kSigChild) {
      continue;
    }
    std::vector<os::Ended> ended = os::ReapChildren();
    // A box's process 1 becomes our child only when its runtime has ended; both may come at once.
    std::stable_partition(ended.begin(), ended.end(),
                          [this](const os::Ended& one) { return boxes_->IsRuntime(one.pid); });
    for (const os::Ended& one : ended) {
      HandleEnded(one);
    }
  }
}

void Service::HandleEnded(const os::Ended& ended) {
  if (ended.pid == parts_.agent_pid) {
    agent_running_ = false;
    pair_.Close();
    if (exit_status_ == 0) {
      exit_status_ = ended.signalled ? 128 + ended.code : ended.code;
    }
    return;
  }
  if (ended.pid == sensor_pid_) {
    sensor_pid_ = 0;
    held_->Spare(0);
    sensor_process_.Reset();
    return;
  }
  if (!boxes_->OnEnded(ended, std::chrono::steady_clock::now())) {
    (void)workers_.OnEnded(ended);
  }
}

void Service::BeginShutdown(int signal) {
  StopStarting();
  os::NotifyManager("STOPPING=1");
  if (!agent_is_child()) {
    pair_.Close();
  } else if (agent_running_ && !kill_agent_at_.has_value()) {
    (void)os::SendSignal(agent_process_.get(), signal);
    kill_agent_at_ = std::chrono::steady_clock::now() + kAgentGrace;
  }
}

void Service::StopStarting() {
  shutting_down_ = true;
  desk_.Close();
}

void Service::HandleRequests() {
  for (int i = 0; i < kRequestsPerTurn; ++i) {
    const auto request = pair_.Next();
    if (request.has_value()) {
      desk_.Handle(*request);
      continue;
    }
    if (request.error().code == Code::kNotFound) {
      pair_.Close();
      StopStarting();
      // It is about to end, with an exit status that a signal would spoil; or it hangs.
      if (agent_is_child()) {
        kill_agent_at_ = std::chrono::steady_clock::now() + kAgentGrace;
      }
    } else if (request.error().code != Code::kUnavailable) {
      BreakPair(request.error());
    }
    return;
  }
}

// Durable before the agent is killed: what it did must be known even if we die now.
void Service::BreakPair(const Error& breach) {
  const Status kept = desk_.KeepIncident(breach.field, breach.message);
  os::Log(os::Level::kError, "pair_ended",
          {{"what", breach.field},
           {"detail", breach.message},
           {"kept", kept.has_value() ? "yes" : kept.error().message}});
  exit_status_ = kExitPairEnded;
  StopStarting();
  pair_.Close();
  if (agent_is_child()) {
    (void)os::SendSignal(agent_process_.get(), kSigKill);
  }
}

void Service::AddWorker(Result<isolate::StartedWorker> worker, TimePoint deadline, Text done) {
  if (!worker.has_value()) {
    done(worker.error());
    return;
  }
  if (const Status added = workers_.Add(std::move(*worker), deadline, done); !added.has_value()) {
    done(added.error());
  }
}

void Service::ReadInventory(Text done) {
  AddWorker(isolate::StartInventory(parts_.worker_place),
            std::chrono::steady_clock::now() + kInventoryMax, std::move(done));
}

void Service::ScrubCards(const std::vector<gpu::WantedGpu>& gpus, Text done) {
  auto worker = isolate::StartScrub(parts_.worker_place, gpus);
  RINGFENCE_FAILPOINT("jailer.worker_started");
  AddWorker(std::move(worker), std::chrono::steady_clock::now() + kScrubMax,
            [this, gpus, done = std::move(done)](Result<std::string> report) {
              RINGFENCE_FAILPOINT("jailer.worker_ended");
              const Status back = isolate::FinishScrub(parts_.worker_place, gpus);
              done(back.has_value() ? std::move(report) : Result<std::string>(back.error()));
            });
}

void Service::ReadMig(const gpu::WantedGpu& gpu, Text done) {
  AddWorker(isolate::StartMig(parts_.worker_place, gpu, std::nullopt),
            std::chrono::steady_clock::now() + kInventoryMax, std::move(done));
}

void Service::CutCard(const gpu::WantedGpu& gpu, const std::string& target,
                      const std::string& before, Text done) {
  AddWorker(isolate::StartMig(parts_.worker_place, gpu, isolate::MigChange{target, before}),
            std::chrono::steady_clock::now() + kMigMax, std::move(done));
}

Result<gpu::DriverFiles> Service::FilesFor(const std::vector<gpu::WantedGpu>& gpus) const {
  return gpu::FilesFor(parts_.worker_place.driver_root, gpus);
}

Result<std::vector<gpu::DeviceNode>> Service::FabricNodesFor(
    const std::vector<std::string>& kinds) const {
  return isolate::FabricNodes(parts_.worker_place.driver_root, kinds);
}

Status Service::CheckSharing(model::IsolationClass isolation) const {
  if (isolation != model::IsolationClass::kTime) {
    return Error{Code::kFailedPrecondition, "this node offers no MPS",
                 "ask for --share time, or for a whole GPU"};
  }
  return gpu::CheckScrubOnFree(parts_.worker_place.driver_root);
}

void Service::StartBox(isolate::BoxPlan plan, Started started) {
  if (plan.grant.runtime == model::LeaseRuntime::kCdi) {
    held_->Start(plan, std::chrono::steady_clock::now(), started);
    return;
  }
  boxes_->Start(std::move(plan), std::chrono::steady_clock::now(), std::move(started));
}

Result<image::StoredImage> Service::VouchedImage(const std::string& digest) const {
  RINGFENCE_ASSIGN(image::StoredImage stored, image::Store(parts_.images.store).Find(digest));
  if (parts_.images.verifier.empty()) {
    return stored;
  }
  RINGFENCE_ASSIGN(const std::string verifier, isolate::VerifierDigest(parts_.images.verifier));
  if (stored.verifier != verifier) {
    return Error{Code::kPermissionDenied,
                 "image " + digest + " was not vouched for by " + parts_.images.verifier,
                 "import it again: `ringfence image import`"};
  }
  return stored;
}

// The tree is read once in this process's life: nobody but root can change it, and what a crash or
// a failing disk did to it is found at the first use.
void Service::ReadyImage(const std::string& digest, Image done) {
  std::string wanted;
  const auto prepare = [&]() -> Result<isolate::BoxImage> {
    RINGFENCE_ASSIGN(const image::StoredImage stored, VouchedImage(digest));
    RINGFENCE_ASSIGN(os::UniqueFd hold, image::Store(parts_.images.store).Hold(digest));
    wanted = stored.report.tree_digest;
    return isolate::ImageForBox(stored, std::move(hold));
  };
  auto image = prepare();
  if (!image.has_value() || checked_images_.contains(digest)) {
    done(std::move(image));
    return;
  }
  if (workers_.full()) {
    done(Error{Code::kExhausted, "as many workers as may be are under way", "try again"});
    return;
  }
  AddWorker(isolate::StartImageCheck(parts_.images.worker, image->tree),
            std::chrono::steady_clock::now() + kImageCheckMax,
            [this, image = *image, wanted, done = std::move(done)](Result<std::string> report) {
              const auto found = report.has_value() ? isolate::TreeDigestOf(*report)
                                                    : Result<std::string>(report.error());
              if (!found.has_value()) {
                done(Prefix("check image " + image.digest, found.error()));
                return;
              }
              if (*found != wanted) {
                done(Error{Code::kCorrupt,
                           "image " + image.digest +
                               " is not what was imported: its files were changed or damaged",
                           "`ringfence image remove " + image.digest + "` and import it again"});
                return;
              }
              checked_images_.insert(image.digest);
              done(image);
            });
}

Result<std::vector<isolate::NodeImage>> Service::ListImages() const {
  std::vector<isolate::NodeImage> images;
  for (const std::string& digest : image::Store(parts_.images.store).Digests()) {
    const auto one = VouchedImage(digest);  // a damaged one is not on offer
    if (images.size() < isolate::kNodeImagesMax && one.has_value()) {
      images.push_back({digest, one->names});
    }
  }
  return images;
}

// The agent reads its lines; we only know that it is there.
Result<os::UniqueFd> Service::StartSensor() {
  EndSensor();
  RINGFENCE_ASSIGN(isolate::StartedWorker worker, isolate::StartSense(parts_.worker_place));
  sensor_pid_ = worker.pid;
  held_->Spare(worker.pid);
  auto process = os::OpenProcess(worker.pid);
  if (process.has_value()) {
    sensor_process_ = std::move(*process);
  }
  return std::move(worker.out);
}

void Service::EndSensor() {
  if (sensor_process_.valid()) {
    (void)os::SendSignal(sensor_process_.get(), kSigKill);
    sensor_process_.Reset();
  }
}

void Service::EndBox(const std::string& lease) {
  boxes_->End(lease, std::chrono::steady_clock::now());
  held_->End(lease, std::chrono::steady_clock::now());
}

}  // namespace ringfence::jailer
