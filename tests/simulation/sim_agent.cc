#include "sim_agent.h"

#include <algorithm>

#include "base/check.h"
#include "isolate/jailer_protocol.h"
#include "net/target.h"
#include "os/memory_file.h"

namespace ringfence::simulation {
namespace {

constexpr Milliseconds kResponseTimeout = std::chrono::seconds(60);  // net::ClientOptions'
constexpr std::size_t kAnswerBytesMax = std::size_t{16} << 20U;

Error PairEnded() { return Error{Code::kUnavailable, "the jailer has ended the connection"}; }

class SimThread final : public agent::Thread {
 public:
  SimThread(Scheduler& scheduler, Scheduler::Group group,
            std::function<void(const std::stop_token&)> work)
      : scheduler_(scheduler),
        task_(scheduler.Launch(
            group, [work = std::move(work), token = stop_.get_token()] { work(token); })) {}
  ~SimThread() override {
    RequestStop();
    scheduler_.Join(task_);
  }
  void RequestStop() override { (void)stop_.request_stop(); }

 private:
  Scheduler& scheduler_;
  std::stop_source stop_;
  Scheduler::TaskRef task_;
};

}  // namespace

class SimLine final : public agent::Line {
 public:
  SimLine(SimNode& node, const agent::CredentialHolder& holder) : node_(node), holder_(holder) {}

  Result<Json> Send(const std::string& method, const std::string& target,
                    const Json& body) override {
    net::Request request;
    request.method = method;
    RINGFENCE_ASSIGN(net::Target parsed, net::ParseTarget(target));
    request.path = std::move(parsed.path);
    request.query = std::move(parsed.query);
    if (method != "GET") {
      request.body = CanonicalJson(body);
    }
    request.remote_address = "192.0.2.1";
    request.peer =
        net::PeerCertificate{node_.name_, {"ringfence://node/" + node_.name_}, Fingerprint()};
    struct Answer {
      std::optional<Result<net::Response>> response;
    };
    Scheduler& scheduler = node_.scheduler_;
    const auto answer = std::make_shared<Answer>();
    const Scheduler::Ticket ticket = scheduler.TakeTicket();
    node_.place_.network.Send(node_.name_, request,
                              [answer, ticket, &scheduler](Result<net::Response> response) {
                                answer->response = std::move(response);
                                scheduler.Wake(ticket);
                              });
    (void)scheduler.Wait(ticket, kResponseTimeout);
    if (!answer->response.has_value()) {
      return Error{Code::kUnavailable, "the server did not answer in time"};
    }
    RINGFENCE_ASSIGN(const net::Response response, std::move(*answer->response));
    if (response.status >= 300) {
      return net::ErrorFromResponse(response.status, response.body);
    }
    return ParseJson(response.body, kAnswerBytesMax);
  }

 private:
  std::string Fingerprint() {
    const std::string pem = holder_.Get().certificate_pem;
    if (pem != node_.certificate_) {
      const auto facts = crypto::ReadCertificate(pem);
      RINGFENCE_CHECK(facts.has_value());
      node_.certificate_ = pem;
      node_.fingerprint_ = facts->fingerprint;
    }
    return node_.fingerprint_;
  }

  SimNode& node_;
  const agent::CredentialHolder& holder_;
};

std::unique_ptr<agent::Line> SimSurroundings::OpenLine() {
  return std::make_unique<SimLine>(node_, holder_);
}

std::unique_ptr<agent::Thread> SimSurroundings::Launch(
    std::function<void(const std::stop_token&)> work) {
  return std::make_unique<SimThread>(node_.scheduler_, group_, std::move(work));
}

void SimSurroundings::Pause(const std::stop_token& /*stop*/, Milliseconds time) {
  node_.scheduler_.Sleep(time);
}

bool SimSurroundings::WaitForStop(Milliseconds time) {
  // A machine under load comes to it later than it wanted.
  node_.scheduler_.Sleep(node_.scheduler_.chance().Time(time.count(), 5 * time.count()));
  return false;  // agents here are killed, never asked
}

Status SimSurroundings::Poll(std::vector<os::PollItem>& items,
                             std::optional<Milliseconds> timeout) {
  Scheduler& scheduler = node_.scheduler_;
  const auto ready = [&]() -> bool {
    (void)os::Poll(items, Milliseconds(0));
    return std::any_of(items.begin(), items.end(),
                       [](const os::PollItem& item) { return item.ready || item.hung_up; });
  };
  const Milliseconds until = timeout.has_value() ? scheduler.now() + *timeout : Milliseconds::max();
  while (!ready()) {
    if (scheduler.now() >= until) {
      return {};
    }
    const Scheduler::Ticket ticket = scheduler.TakeTicket();
    node_.pollers_.push_back(ticket);
    std::optional<Milliseconds> wait;
    if (timeout.has_value()) {
      wait = until - scheduler.now();
    }
    (void)scheduler.Wait(ticket, wait);
  }
  return {};
}

void SimSurroundings::Exit(const Status& why) {
  node_.scheduler_.Trace(node_.name_ +
                         " agent ends: " + (why.has_value() ? "told to" : why.error().message));
  node_.scheduler_.KillMe();
}

bool SimJailerClient::PairIsOpen() const {
  return node_.jailer_ != nullptr && node_.jailer_->epoch == epoch_ && node_.jailer_->pair_open;
}

Result<std::shared_ptr<SimNode::Call>> SimJailerClient::Call(isolate::RequestBody body) {
  Scheduler& scheduler = node_.scheduler_;
  if (!PairIsOpen()) {
    scheduler.KillMe();  // as the agent ends itself when the pair is lost
  }
  const std::uint32_t id = next_id_++;
  const auto call = std::make_shared<SimNode::Call>();
  call->ticket = scheduler.TakeTicket();
  node_.jailer_->calls.emplace(id, call);
  node_.Post(scheduler.chance().Time(0, 3), [node = &node_, id, body = std::move(body)] {
    if (node->jailer_->pair_open) {
      node->jailer_->desk->Handle(isolate::Request{id, body});
    }
  });
  while (!call->answered) {
    (void)scheduler.Wait(call->ticket, std::nullopt);
  }
  if (!call->reply.status.has_value()) {
    return call->reply.status.error();
  }
  return call;
}

Result<isolate::JailerHello> SimJailerClient::Hello() {
  if (!hello_.has_value()) {
    RINGFENCE_ASSIGN(const auto call, Call(isolate::HelloRequest{}));
    hello_ = call->reply.hello;
  }
  return PairIsOpen() ? Result<isolate::JailerHello>(*hello_) : PairEnded();
}

Result<std::string> SimJailerClient::Inventory() {
  RINGFENCE_ASSIGN(const auto call, Call(isolate::InventoryRequest{}));
  RINGFENCE_ASSIGN(const Bytes bytes,
                   os::ReadMemoryFile(call->fds.at(0).get(), isolate::kInventoryBytesMax));
  return ToText(bytes);
}

Result<isolate::StartedBox> SimJailerClient::Start(std::string_view grant) {
  RINGFENCE_ASSIGN(const auto call, Call(isolate::StartRequest{std::string(grant)}));
  return isolate::StartedBox{std::move(call->fds.at(0)), std::move(call->fds.at(1)),
                             std::move(call->fds.at(2))};
}

Status SimJailerClient::End(std::string_view lease) {
  RINGFENCE_TRY(Call(isolate::EndRequest{std::string(lease)}));
  return {};
}

Result<std::string> SimJailerClient::Scrub(std::string_view lease,
                                           const std::vector<std::string>& gpus) {
  RINGFENCE_ASSIGN(const auto call, Call(isolate::ScrubRequest{std::string(lease), gpus}));
  return call->reply.text;
}

Result<std::vector<isolate::BoxRecord>> SimJailerClient::List() {
  RINGFENCE_ASSIGN(const auto call, Call(isolate::ListRequest{}));
  RINGFENCE_ASSIGN(const Bytes bytes,
                   os::ReadMemoryFile(call->fds.at(0).get(), isolate::kBodyFileBytesMax));
  return isolate::DecodeRecords(bytes);
}

Status SimJailerClient::Forget(std::string_view lease) {
  RINGFENCE_TRY(Call(isolate::ForgetRequest{std::string(lease)}));
  return {};
}

Result<std::vector<std::string>> SimJailerClient::Incidents() {
  RINGFENCE_ASSIGN(const auto call, Call(isolate::IncidentsRequest{}));
  RINGFENCE_ASSIGN(const Bytes bytes,
                   os::ReadMemoryFile(call->fds.at(0).get(), isolate::kBodyFileBytesMax));
  return isolate::DecodeTexts(bytes);
}

Status SimJailerClient::AckIncidents(std::uint32_t count) {
  RINGFENCE_TRY(Call(isolate::AckIncidentsRequest{count}));
  return {};
}

}  // namespace ringfence::simulation
