#include "jailer/service.h"

#include <algorithm>

#include "base/encoding.h"
#include "isolate/incident.h"
#include "os/failpoint.h"
#include "os/log.h"
#include "os/memory_file.h"
#include "os/notify.h"

namespace ringfence::jailer {
namespace {

constexpr int kSigInt = 2;
constexpr int kSigKill = 9;
constexpr int kSigTerm = 15;
constexpr int kSigChild = 17;
constexpr auto kAgentGrace = std::chrono::seconds(10);
constexpr int kRequestsPerTurn = 16;

using isolate::RequestType;

}  // namespace

Service::Service(ServiceParts parts, Records& records, Boxes& boxes, const Clock& clock)
    : parts_(std::move(parts)),
      records_(&records),
      boxes_(&boxes),
      clock_(&clock),
      pair_(std::move(parts_.socket)) {
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
  shutting_down_ = true;
  os::NotifyManager("STOPPING=1");
  if (!agent_is_child()) {
    pair_.Close();
  } else if (agent_running_ && !kill_agent_at_.has_value()) {
    (void)os::SendSignal(agent_process_.get(), signal);
    kill_agent_at_ = std::chrono::steady_clock::now() + kAgentGrace;
  }
}

void Service::HandleRequests() {
  for (int i = 0; i < kRequestsPerTurn; ++i) {
    const auto request = pair_.Next();
    if (request.has_value()) {
      Handle(*request);
      continue;
    }
    if (request.error().code == Code::kNotFound) {
      pair_.Close();
      shutting_down_ = true;
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

Status Service::KeepIncident(const std::string& what, const std::string& detail) {
  isolate::Incident incident;
  incident.node = parts_.node;
  incident.time = clock_->Now();
  incident.what = what;
  incident.detail = detail.substr(0, isolate::kIncidentDetailBytesMax);
  incident.dropped = records_->IncidentsDropped();
  return records_->AddIncident(isolate::SealIncident(parts_.identity.key, incident));
}

// Durable before the agent is killed: what it did must be known even if we die now.
void Service::BreakPair(const Error& breach) {
  const Status kept = KeepIncident(breach.field, breach.message);
  os::Log(os::Level::kError, "pair_ended",
          {{"what", breach.field},
           {"detail", breach.message},
           {"kept", kept.has_value() ? "yes" : kept.error().message}});
  exit_status_ = kExitPairEnded;
  shutting_down_ = true;
  pair_.Close();
  if (agent_is_child()) {
    (void)os::SendSignal(agent_process_.get(), kSigKill);
  }
}

void Service::Answer(std::uint32_t id, RequestType type, Status status) {
  isolate::Reply reply;
  reply.id = id;
  reply.type = type;
  reply.status = std::move(status);
  pair_.Answer(std::move(reply));
}

void Service::AnswerFile(std::uint32_t id, RequestType type, ByteView bytes) {
  auto file = os::MakeMemoryFile("ringfence-reply", bytes);
  if (!file.has_value()) {
    Answer(id, type, file.error());
    return;
  }
  isolate::Reply reply;
  reply.id = id;
  reply.type = type;
  std::vector<os::UniqueFd> fds;
  fds.push_back(std::move(*file));
  pair_.Answer(std::move(reply), std::move(fds));
}

void Service::Handle(const isolate::Request& request) {
  const std::uint32_t id = request.id;
  switch (isolate::TypeOf(request.body)) {
    case RequestType::kHello: {
      isolate::Reply reply;
      reply.id = id;
      reply.type = RequestType::kHello;
      reply.hello = {RINGFENCE_VERSION, Base64(parts_.identity.key.public_key().raw()),
                     parts_.identity.key_proof, parts_.missing};
      pair_.Answer(std::move(reply));
      return;
    }
    case RequestType::kInventory:
      return HandleInventory(id);
    case RequestType::kStart:
      return HandleStart(id, std::get<isolate::StartRequest>(request.body));
    case RequestType::kEnd:
      return HandleEnd(id, std::get<isolate::EndRequest>(request.body).lease);
    case RequestType::kScrub:
      return HandleScrub(id, std::get<isolate::ScrubRequest>(request.body));
    case RequestType::kList:
      return HandleList(id);
    case RequestType::kForget:
      return HandleForget(id, std::get<isolate::ForgetRequest>(request.body).lease);
    case RequestType::kIncidents:
      return HandleIncidents(id);
    case RequestType::kAckIncidents:
      return Answer(
          id, RequestType::kAckIncidents,
          records_->AckIncidents(std::get<isolate::AckIncidentsRequest>(request.body).count));
  }
}

void Service::HandleList(std::uint32_t id) {
  std::vector<isolate::BoxRecord> list;
  for (const auto& [lease, record] : records_->leases()) {
    isolate::BoxRecord one;
    one.lease = lease;
    one.state = record.state;
    for (const gpu::WantedGpu& gpu : record.gpus) {
      one.gpus.push_back(gpu.uuid);
    }
    one.receipt = record.receipt;
    list.push_back(std::move(one));
  }
  AnswerFile(id, RequestType::kList, isolate::EncodeRecords(list));
}

void Service::HandleForget(std::uint32_t id, const std::string& lease) {
  const LeaseRecord* record = records_->Find(lease);
  if (record != nullptr && record->state != isolate::BoxState::kScrubbed) {
    Answer(id, RequestType::kForget,
           Error{Code::kFailedPrecondition, "lease " + lease + " is not scrubbed yet"});
    return;
  }
  RINGFENCE_FAILPOINT("jailer.forget");
  Status forgotten = records_->Forget(lease);
  RINGFENCE_FAILPOINT("jailer.forgotten");
  Answer(id, RequestType::kForget, std::move(forgotten));
}

void Service::HandleIncidents(std::uint32_t id) {
  const auto incidents = records_->Incidents();
  if (!incidents.has_value()) {
    Answer(id, RequestType::kIncidents, incidents.error());
    return;
  }
  AnswerFile(id, RequestType::kIncidents, isolate::EncodeTexts(*incidents));
}

void Service::HandleEnd(std::uint32_t id, const std::string& lease) {
  if (records_->Find(lease) == nullptr) {
    Answer(id, RequestType::kEnd, Error{Code::kNotFound, "no lease " + lease + " on this node"});
    return;
  }
  boxes_->End(lease, std::chrono::steady_clock::now());
  Answer(id, RequestType::kEnd, {});
}

}  // namespace ringfence::jailer
