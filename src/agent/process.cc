#include "agent/process.h"

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/code.h"
#include "os/log.h"
#include "os/notify.h"
#include "os/signals.h"

namespace ringfence::agent {
namespace {

constexpr std::size_t kAnswerBytesMax = std::size_t{16} << 20U;

class HttpLine final : public Line {
 public:
  explicit HttpLine(const CredentialHolder& holder) : holder_(holder) {}

  Result<Json> Send(const std::string& method, const std::string& target,
                    const Json& body) override {
    const Credentials credentials = holder_.Get();
    if (client_ == nullptr || certificate_ != credentials.certificate_pem) {
      RINGFENCE_ASSIGN(client_, net::Client::Create(OptionsFor(credentials)));
      certificate_ = credentials.certificate_pem;
    }
    net::ClientRequest request;
    request.method = method;
    request.target = target;
    if (method != "GET") {
      request.body = CanonicalJson(body);
    }
    RINGFENCE_ASSIGN(const net::Response response, client_->Send(request));
    if (response.status >= 300) {
      return net::ErrorFromResponse(response.status, response.body);
    }
    return ParseJson(response.body, kAnswerBytesMax);
  }

 private:
  const CredentialHolder& holder_;
  std::string certificate_;  // the client was made with
  std::unique_ptr<net::Client> client_;
};

class ProcessThread final : public Thread {
 public:
  explicit ProcessThread(std::function<void(const std::stop_token&)> work)
      : thread_(std::move(work)) {}
  void RequestStop() override { (void)thread_.request_stop(); }

 private:
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<Line> ProcessSurroundings::OpenLine() {
  return std::make_unique<HttpLine>(holder_);
}

std::unique_ptr<Thread> ProcessSurroundings::Launch(
    std::function<void(const std::stop_token&)> work) {
  return std::make_unique<ProcessThread>(std::move(work));
}

void ProcessSurroundings::Pause(const std::stop_token& stop, Milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  (void)wake.wait_for(lock, stop, time, [] { return false; });
}

bool ProcessSurroundings::WaitForStop(Milliseconds time) {
  return os::WaitForSignal(time) == os::Signal::kStop;
}

Status ProcessSurroundings::Poll(std::vector<os::PollItem>& items,
                                 std::optional<Milliseconds> timeout) {
  return os::Poll(items, timeout);
}

void EndProcess(const Status& why) {
  os::NotifyManager("STOPPING=1");
  os::Log(os::Level::kInfo, "stopping",
          {{"why", why.has_value() ? "told to" : why.error().message}});
  std::quick_exit(why.has_value() ? kExitOk : Facts(why.error().code).exit_status);
}

}  // namespace ringfence::agent
