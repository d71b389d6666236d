#include "agent/link.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "os/log.h"

namespace ringfence::agent {
namespace {

constexpr std::size_t kAnswerBytesMax = std::size_t{16} << 20U;
constexpr std::chrono::milliseconds kPauseFirst{100};
constexpr std::chrono::milliseconds kPauseLast{5000};

bool WorthAnotherTry(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kExhausted;
}

}  // namespace

void Pause(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  (void)wake.wait_for(lock, stop, time, [] { return false; });
}

Result<Json> Link::Send(const std::string& method, const std::string& target, const Json& body) {
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

Result<Json> Link::SendUntil(const std::stop_token& stop, const std::string& method,
                             const std::string& target, const Json& body) {
  std::chrono::milliseconds pause = kPauseFirst;
  for (;;) {
    auto answer = Send(method, target, body);
    if (answer.has_value() || !WorthAnotherTry(answer.error()) || stop.stop_requested()) {
      return answer;
    }
    os::Log(os::Level::kWarning, "server_not_reached",
            {{"request", target}, {"why", answer.error().message}});
    Pause(stop, pause);
    pause = std::min(pause * 2, kPauseLast);
  }
}

}  // namespace ringfence::agent
