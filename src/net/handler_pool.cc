#include "net/handler_pool.h"

#include <exception>
#include <utility>

#include "os/log.h"

namespace ringfence::net {
namespace {

constexpr int kYieldsBeforeSleep = 2;

}  // namespace

HandlerPool::HandlerPool(std::size_t threads, std::size_t queued_max) : queued_max_(queued_max) {
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

HandlerPool::~HandlerPool() { Stop(); }

bool HandlerPool::TryPush(Task& task) {
  const std::scoped_lock lock(mutex_);
  if (stopped_ || tasks_.size() >= queued_max_) {
    return false;
  }
  tasks_.push_back(std::move(task));
  WakeOne();
  return true;
}

void HandlerPool::Push(Task task) {
  const std::scoped_lock lock(mutex_);
  if (!stopped_) {
    tasks_.push_back(std::move(task));
    WakeOne();
  }
}

// With the lock held. Whoever is looking calls this again when it leaves tasks behind, so none is
// left to wait for a thread that is busy.
void HandlerPool::WakeOne() {
  if (!looking_ && !asleep_.empty()) {
    Sleeper* const sleeper = asleep_.back();
    asleep_.pop_back();
    sleeper->called = true;
    looking_ = true;
    sleeper->wake.notify_one();
  }
}

HandlerPool::Task HandlerPool::Next() {
  std::unique_lock lock(mutex_);
  if (tasks_.empty() && !stopped_ && !looking_) {
    looking_ = true;
    for (int i = 0; i < kYieldsBeforeSleep && tasks_.empty() && !stopped_; ++i) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    looking_ = false;
  }
  while (tasks_.empty() && !stopped_) {
    Sleeper sleeper;
    asleep_.push_back(&sleeper);
    sleeper.wake.wait(lock, [&] { return sleeper.called; });
    looking_ = false;
  }
  if (stopped_) {
    return {};
  }
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  if (!tasks_.empty()) {
    WakeOne();
  }
  return task;
}

void HandlerPool::Run() {
  while (Task task = Next()) {
    // Handlers return errors as values; should one throw all the same, one request suffers, not
    // the server.
    try {
      task();
    } catch (const std::exception& failure) {
      os::Log(os::Level::kError, "handler_threw", {{"what", failure.what()}});
    } catch (...) {
      os::Log(os::Level::kError, "handler_threw");
    }
  }
}

void HandlerPool::Stop() {
  std::deque<Task> dropped;
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    dropped.swap(tasks_);
    for (Sleeper* const sleeper : asleep_) {
      sleeper->called = true;
      sleeper->wake.notify_one();
    }
    asleep_.clear();
  }
  threads_.clear();
}

std::size_t HandlerPool::queued() const {
  const std::scoped_lock lock(mutex_);
  return tasks_.size();
}

}  // namespace ringfence::net
