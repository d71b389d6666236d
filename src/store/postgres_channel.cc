#include "store/postgres_channel.h"

#include <algorithm>

#include "os/log.h"

namespace ringfence::store {
namespace {

constexpr std::size_t kPendingMax = 1024;
constexpr std::size_t kTopicBytesMax = 256;
constexpr std::size_t kPayloadBytesMax = 7000;  // PostgreSQL takes up to 8000
constexpr Milliseconds kFirstRetry{100};
constexpr Milliseconds kLastRetry{5000};
// A line that is silent for so long is asked whether it is still there.
constexpr Milliseconds kHeartbeat{10000};
constexpr Milliseconds kAnswerMax{5000};

// "SELF\nTOPIC\nTOPIC": as many payloads as it takes.
std::vector<std::string> Payloads(const std::string& self, const std::set<std::string>& topics) {
  std::vector<std::string> payloads;
  for (const std::string& topic : topics) {
    if (payloads.empty() || payloads.back().size() + 1 + topic.size() > kPayloadBytesMax) {
      payloads.push_back(self);
    }
    payloads.back() += "\n" + topic;
  }
  return payloads;
}

}  // namespace

Result<std::unique_ptr<PostgresChannel>> PostgresChannel::Start(const PostgresOptions& options,
                                                                const std::string& self,
                                                                Listener listener) {
  RINGFENCE_ASSIGN(os::Waker waker, os::Waker::Make());
  return std::unique_ptr<PostgresChannel>(
      new PostgresChannel(options, self, std::move(listener), std::move(waker)));
}

PostgresChannel::PostgresChannel(PostgresOptions options, std::string self, Listener listener,
                                 os::Waker waker)
    : options_(std::move(options)),
      self_(std::move(self)),
      listener_(std::move(listener)),
      waker_(std::move(waker)) {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] { waker_.Wake(); });
    Loop(stop);
  });
}

void PostgresChannel::Announce(const std::string& topic) {
  {
    const std::lock_guard lock(mutex_);
    const bool plain = topic.size() <= kTopicBytesMax && topic.find('\n') == std::string::npos;
    pending_.insert(plain ? topic : "");
    if (pending_.size() > kPendingMax) {
      pending_ = {""};  // so much that the others had better look at everything
    }
  }
  waker_.Wake();
}

void PostgresChannel::Loop(const std::stop_token& stop) {
  Milliseconds retry = kFirstRetry;
  while (!stop.stop_requested()) {
    auto connection = PostgresConnection::Open(options_);
    Status ended;
    if (connection.has_value()) {
      (*connection)->SetTimeLimit(kAnswerMax);
      const auto since = std::chrono::steady_clock::now();
      ended = Serve(**connection, stop);
      if (std::chrono::steady_clock::now() - since > kLastRetry) {
        retry = kFirstRetry;
      }
    } else {
      ended = connection.error();
    }
    missed_ = true;
    if (!ended.has_value()) {
      os::Log(os::Level::kWarning, "database_announcements_down", {{"why", ended.error().message}});
      const auto until = std::chrono::steady_clock::now() + retry;
      const os::Wanted wanted{waker_.fd(), true, false};
      while (!stop.stop_requested() && std::chrono::steady_clock::now() < until) {
        waker_.Clear();  // announcements wait for the line
        if (!stop.stop_requested()) {
          (void)os::WaitAny(std::span(&wanted, 1), retry);
        }
      }
      retry = std::min(retry * 2, kLastRetry);
    }
  }
}

Status PostgresChannel::Serve(PostgresConnection& connection, const std::stop_token& stop) {
  RINGFENCE_TRY(connection.Script("LISTEN ringfence"));
  if (missed_) {
    listener_("");
  }
  while (!stop.stop_requested()) {
    RINGFENCE_TRY(SendPending(connection));
    RINGFENCE_TRY(Hear(connection));
    const std::array<os::Wanted, 2> wanted{
        {{connection.socket(), true, false}, {waker_.fd(), true, false}}};
    RINGFENCE_ASSIGN(const bool ready, os::WaitAny(wanted, kHeartbeat));
    waker_.Clear();
    if (!ready) {
      RINGFENCE_TRY(connection.Script("SELECT 1"));
    }
  }
  return {};
}

Status PostgresChannel::SendPending(PostgresConnection& connection) {
  std::set<std::string> topics;
  {
    const std::lock_guard lock(mutex_);
    topics.swap(pending_);
  }
  for (const std::string& payload : Payloads(self_, topics)) {
    const auto sent = connection.Execute("SELECT pg_notify('ringfence', $1)", {payload});
    if (!sent.has_value()) {
      const std::lock_guard lock(mutex_);
      pending_ = {""};  // some may have been sent: the others look at everything
      return sent.error();
    }
  }
  return {};
}

Status PostgresChannel::Hear(PostgresConnection& connection) {
  RINGFENCE_ASSIGN(const auto payloads, connection.TakeNotifications());
  for (const std::string_view payload : payloads) {
    const std::size_t first = payload.find('\n');
    if (first == std::string_view::npos || payload.substr(0, first) == self_) {
      continue;
    }
    for (std::size_t at = first; at != std::string_view::npos;) {
      const std::size_t next = payload.find('\n', at + 1);
      listener_(std::string(payload.substr(at + 1, next - at - 1)));
      at = next;
    }
  }
  return {};
}

}  // namespace ringfence::store
