#include "load/worker.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "load/connection.h"

namespace ringfence::bench {
namespace {

constexpr int kExpectedRefusals[] = {429, 503};
constexpr std::chrono::seconds kDrain{5};
// What a connection that cannot be opened holds up at most: then it is looked at again.
constexpr std::chrono::milliseconds kLookAgain{20};
constexpr std::size_t kDueMax = 4 * 1024 * 1024;

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

std::uint64_t Micros(TimePoint from, TimePoint to) {
  const auto age = std::chrono::duration_cast<std::chrono::microseconds>(to - from).count();
  return age < 0 ? 0 : static_cast<std::uint64_t>(age);
}

}  // namespace

Worker::Worker(const Target& target, int connections, std::uint64_t seed)
    : target_(target), epoll_(epoll_create1(EPOLL_CLOEXEC)), random_(seed) {
  for (const Op& op : target.ops) {
    weights_ += op.weight;
  }
  for (int i = 0; i < connections; ++i) {
    connections_.push_back(std::make_unique<ClientConnection>(*this, target_));
  }
}

Worker::~Worker() {
  connections_.clear();
  close(epoll_);
}

std::size_t Worker::PickOp() {
  double at = std::uniform_real_distribution<double>(0, weights_)(random_);
  for (std::size_t i = 0; i + 1 < target_.ops.size(); ++i) {
    at -= target_.ops[i].weight;
    if (at < 0) {
      return i;
    }
  }
  return target_.ops.size() - 1;
}

// All that is due by now joins the queue, whatever became of what came before.
void Worker::MakeDue(TimePoint now) {
  while (phase_.rate > 0 && next_due_ <= now && next_due_ < arrivals_end_) {
    if (due_.size() < kDueMax) {
      due_.push_back({next_due_, PickOp()});
    } else {
      ++stats_.unsent;
    }
    const double gap = phase_.fixed ? 1 / phase_.rate
                                    : std::exponential_distribution<double>(phase_.rate)(random_);
    next_due_ += Seconds(gap);
  }
}

void Worker::Assign(TimePoint now) {
  const bool closed_loop = phase_.rate == 0;
  while (!idle_.empty() && (closed_loop ? now < arrivals_end_ : !due_.empty())) {
    ClientConnection* const connection = idle_.back();
    idle_.pop_back();
    Due due{now, 0};
    if (closed_loop) {
      due.op = PickOp();
    } else {
      due = due_.front();
      due_.pop_front();
    }
    connection->Send(due, target_.ops[due.op].bytes);
  }
}

void Worker::WaitForEvents(TimePoint until) {
  std::array<epoll_event, 256> events;
  const TimePoint now = Clock::now();
  const auto wait = std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(until - now));
  const timespec time{wait.count() / 1000000000, wait.count() % 1000000000};
  const int count =
      epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &time, nullptr);
  const TimePoint after = Clock::now();
  for (int i = 0; i < count; ++i) {
    static_cast<ClientConnection*>(events[static_cast<std::size_t>(i)].data.ptr)->OnEvent(after);
  }
}

void Worker::Answered(const Due& due, int status, bool retry_after, TimePoint now) {
  if (!Counts(due)) {
    return;
  }
  OpStats& stats = stats_.ops[due.op];
  ++stats.statuses[status];
  if (status == target_.ops[due.op].spec.expected_status) {
    stats.expected.Add(Micros(due.time, now));
  } else if (std::find(std::begin(kExpectedRefusals), std::end(kExpectedRefusals), status) !=
             std::end(kExpectedRefusals)) {
    stats.refused.Add(Micros(due.time, now));
    stats.no_retry_after += retry_after ? 0 : 1;
  }
}

// It waited at least that long, and leaving it out would make the rest look better than it is.
void Worker::Unanswered(const Due& due, TimePoint now) {
  if (Counts(due)) {
    ++stats_.ops[due.op].unanswered;
    stats_.ops[due.op].expected.Add(Micros(due.time, now));
  }
}

Result<Stats> Worker::Run(const Phase& phase) {
  phase_ = phase;
  stats_ = {};
  stats_.ops.resize(target_.ops.size());
  due_.clear();
  const TimePoint start = Clock::now();
  next_due_ = start;
  count_from_ = start + Seconds(phase.warmup);
  arrivals_end_ = count_from_ + Seconds(phase.seconds);
  const TimePoint give_up = arrivals_end_ + kDrain;
  for (;;) {
    const TimePoint now = Clock::now();
    MakeDue(now);
    for (const auto& connection : connections_) {
      if (connection->closed() && connection->retry_at() <= now && now < arrivals_end_) {
        connection->Open(now);
      }
    }
    Assign(now);
    const bool under_way =
        std::any_of(connections_.begin(), connections_.end(),
                    [](const auto& one) { return one->under_way().has_value(); });
    if (now >= give_up || (now >= arrivals_end_ && due_.empty() && !under_way)) {
      break;
    }
    TimePoint until = now + kLookAgain;
    if (phase_.rate > 0 && next_due_ < arrivals_end_) {
      until = std::min(until, next_due_);
    }
    WaitForEvents(until);
  }
  const TimePoint end = Clock::now();
  for (const Due& due : due_) {
    stats_.unsent += Counts(due) ? 1 : 0;
    Unanswered(due, end);
  }
  for (const auto& connection : connections_) {
    if (connection->under_way().has_value()) {
      Unanswered(*connection->under_way(), end);
      connection->Forget();
    }
  }
  return stats_;
}

}  // namespace ringfence::bench
