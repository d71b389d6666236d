#include "jailer/names.h"

#include <algorithm>

#include "os/file.h"
#include "os/internet.h"
#include "os/log.h"
#include "os/socket_pair.h"

namespace ringfence::jailer {
namespace {

constexpr int kSigKill = 9;
constexpr int kMessagesPerTurn = 32;
// Adds and answers that wait for a resolver that does not read: it is stuck.
constexpr std::size_t kWaitingMax = 4096;
constexpr std::size_t kResolvConfBytesMax = 64 * 1024;
constexpr auto kPauseMin = std::chrono::milliseconds(100);
constexpr auto kPauseMax = std::chrono::seconds(30);
constexpr auto kSteady = std::chrono::minutes(1);  // whoever ran so long is started at once
// The second is where systemd-resolved, itself at 127.0.0.53, names whom it asks.
constexpr const char* kResolvConfs[] = {"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"};

Result<std::vector<std::uint32_t>> HostsResolvers() {
  RINGFENCE_ASSIGN(const std::vector<std::uint32_t> own, os::OwnAddresses());
  for (const char* path : kResolvConfs) {
    const auto text = os::ReadText(path, kResolvConfBytesMax);
    if (!text.has_value()) {
      continue;
    }
    std::vector<std::uint32_t> above = isolate::ResolversIn(*text, own);
    if (!above.empty()) {
      return above;
    }
  }
  return Error{Code::kFailedPrecondition,
               "boxes may ask for names, and there is no resolver that they could ask: "
               "/etc/resolv.conf has none outside this machine",
               "set node.resolvers to the addresses of your resolvers"};
}

}  // namespace

Result<std::unique_ptr<Names>> Names::Open(isolate::ResolverPlace place,
                                           isolate::BoxNetwork& network) {
  if (place.above.empty()) {
    RINGFENCE_ASSIGN(place.above, HostsResolvers());
  }
  RINGFENCE_ASSIGN(auto port, network.OpenResolverPort({place.uid, place.above}));
  std::unique_ptr<Names> names(new Names(std::move(place), network, std::move(port)));
  RINGFENCE_TRY(names->Start(std::chrono::steady_clock::now()));
  return names;
}

Status Names::Start(TimePoint now) {
  RINGFENCE_ASSIGN(isolate::StartedResolver started,
                   isolate::StartResolver(
                       place_, {network_->router(), port_.datagrams.get(), port_.streams.get()}));
  pid_ = started.pid;
  socket_ = std::move(started.socket);
  RINGFENCE_ASSIGN(process_, os::OpenProcess(pid_));
  started_ = now;
  start_at_.reset();
  out_.clear();
  for (const auto& [slot, box] : boxes_) {
    Say(box);
  }
  return {};
}

void Names::Add(const resolve::AddBox& box) {
  boxes_.insert_or_assign(box.slot, box);
  Say(box);
}

void Names::Remove(const resolve::RemoveBox& box) {
  if (boxes_.erase(box.slot) != 0) {
    Say(box);
  }
}

void Names::Say(const resolve::ToResolver& message) {
  if (!socket_.valid()) {
    return;  // the next one hears of all boxes
  }
  out_.push_back(Encode(message));
  Flush();
}

void Names::Flush() {
  while (socket_.valid() && !out_.empty()) {
    const Status sent = os::SendMessage(socket_.get(), out_.front());
    if (sent.has_value()) {
      out_.pop_front();
      continue;
    }
    if (sent.error().code != Code::kUnavailable || out_.size() > kWaitingMax) {
      End("does not listen");
    }
    return;
  }
}

void Names::End(const std::string& why) {
  os::Log(os::Level::kError, "resolver_ended_by_us", {{"why", why}});
  socket_.Reset();
  out_.clear();
  (void)os::SendSignal(process_.get(), kSigKill);
}

void Names::Answer(const resolve::OpenName& wanted) {
  const Status opened = network_->OpenName(wanted);
  if (!opened.has_value() && opened.error().code == Code::kInvalidArgument) {
    End(opened.error().message);
    return;
  }
  if (!opened.has_value()) {
    os::Log(os::Level::kWarning, "name_not_opened", {{"reason", opened.error().message}});
  }
  Say(resolve::Opened{wanted.id, opened.has_value()});
}

void Names::Read() {
  for (int i = 0; i < kMessagesPerTurn && socket_.valid(); ++i) {
    const auto message = os::ReceiveMessage(socket_.get(), resolve::kToJailerBytesMax);
    if (!message.has_value()) {
      if (message.error().code == Code::kNotFound) {
        socket_.Reset();  // it ends, and OnEnded goes on
      } else if (message.error().code != Code::kUnavailable) {
        End(message.error().message);
      }
      return;
    }
    const auto wanted = resolve::ParseOpenName(message->bytes);
    if (!wanted.has_value() || !message->fds.empty()) {
      End(wanted.has_value() ? "sent descriptors" : wanted.error().message);
      return;
    }
    Answer(*wanted);
  }
}

void Names::AddPollItems(std::vector<os::PollItem>& items) const {
  if (!socket_.valid()) {
    return;
  }
  items.push_back({socket_.get()});
  if (!out_.empty()) {
    items.push_back({socket_.get(), true});
  }
}

bool Names::OnEnded(const os::Ended& ended, TimePoint now) {
  if (pid_ == 0 || ended.pid != pid_) {
    return false;
  }
  pid_ = 0;
  process_.Reset();
  socket_.Reset();
  out_.clear();
  pause_ = now - started_ > kSteady
               ? std::chrono::milliseconds(kPauseMin)
               : std::clamp<std::chrono::milliseconds>(pause_ * 2, kPauseMin, kPauseMax);
  start_at_ = now + pause_;
  os::Log(os::Level::kError, "resolver_ended",
          {{ended.signalled ? "signal" : "status", std::to_string(ended.code)},
           {"again_in_ms", std::to_string(pause_.count())}});
  return true;
}

void Names::Tick(TimePoint now) {
  Read();
  Flush();
  if (!start_at_.has_value() || now < *start_at_) {
    return;
  }
  if (const Status started = Start(now); !started.has_value()) {
    os::Log(os::Level::kError, "resolver_not_started", {{"reason", started.error().message}});
    pause_ = std::min<std::chrono::milliseconds>(pause_ * 2, kPauseMax);
    start_at_ = now + pause_;
  }
}

}  // namespace ringfence::jailer
