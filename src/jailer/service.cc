#include "jailer/service.h"

#include <algorithm>

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

}  // namespace

Service::Service(ServiceParts parts, Records& records, Boxes& boxes, const Clock& clock)
    : parts_(std::move(parts)),
      boxes_(&boxes),
      pair_(std::move(parts_.socket)),
      desk_({parts_.node, std::move(parts_.identity), std::move(parts_.missing),
             [this](isolate::Reply reply, std::vector<os::UniqueFd> fds) {
               pair_.Answer(std::move(reply), std::move(fds));
             }},
            records, *this, clock) {
  if (!agent_is_child()) {
    return;
  }
  auto process = os::OpenProcess(parts_.agent_pid);
  if (process.has_value()) {
    agent_process_ = std::move(*process);
  }
}

int Service::Run() {
  while (agent_running_ || !boxes_->empty() || !workers_.empty()) {
    Wait();
    HandleSignals();
    boxes_->ReadStatus();
    workers_.ReadOutput();
    const TimePoint now = std::chrono::steady_clock::now();
    workers_.Tick(now);
    boxes_->Tick(now);
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
      workers_.KillAll();
    }
  }
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
  for (const auto& other : {workers_.NextDeadline(), kill_agent_at_}) {
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

Result<gpu::DriverFiles> Service::FilesFor(const std::vector<gpu::WantedGpu>& gpus) const {
  return gpu::FilesFor(parts_.worker_place.driver_root, gpus);
}

void Service::StartBox(isolate::BoxPlan plan, Started started) {
  boxes_->Start(std::move(plan), std::chrono::steady_clock::now(), std::move(started));
}

void Service::EndBox(const std::string& lease) {
  boxes_->End(lease, std::chrono::steady_clock::now());
}

}  // namespace ringfence::jailer
