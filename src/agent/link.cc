#include "agent/link.h"

#include <algorithm>

#include "os/log.h"

namespace ringfence::agent {
namespace {

constexpr std::chrono::milliseconds kPauseFirst{100};
constexpr std::chrono::milliseconds kPauseLast{5000};

bool WorthAnotherTry(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kExhausted;
}

}  // namespace

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
    surroundings_.Pause(stop, pause);
    pause = std::min(pause * 2, kPauseLast);
  }
}

}  // namespace ringfence::agent
