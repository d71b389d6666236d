#include "server/waiters.h"

#include <algorithm>

namespace ringfence::server {

void Waiters::Try(Parked& parked, bool last) {
  const std::lock_guard lock(parked.mutex);
  if (!parked.done && parked.attempt(last)) {
    parked.done = true;
    parked.attempt = nullptr;  // lets go of the request it holds
  }
}

void Waiters::Park(const std::string& topic, Milliseconds wait, Attempt attempt) {
  const auto parked = std::make_shared<Parked>();
  parked->attempt = std::move(attempt);
  {
    // Listed before the first attempt, so that no notification falls between the two.
    const std::unique_lock lock(mutex_);
    auto& list = parked_[topic];
    count_ -= std::erase_if(list, [](const auto& other) {
      const std::unique_lock other_lock(other->mutex, std::try_to_lock);
      return other_lock.owns_lock() && other->done;
    });
    if (closed_ || count_ >= kParkedMax) {
      wait = Milliseconds(0);
    }
    list.push_back(parked);
    ++count_;
  }
  Try(*parked, false);
  const auto end = [this, topic, parked] {
    Try(*parked, true);
    const std::lock_guard lock(mutex_);
    const auto found = parked_.find(topic);
    if (found != parked_.end()) {
      count_ -= std::erase(found->second, parked);
      if (found->second.empty()) {
        parked_.erase(found);
      }
    }
  };
  {
    const std::lock_guard lock(parked->mutex);
    if (parked->done) {
      wait = Milliseconds(0);
    }
  }
  if (wait.count() == 0) {
    end();
  } else {
    later_(wait, end);
  }
}

void Waiters::Notify(const std::string& topic) {
  std::vector<std::shared_ptr<Parked>> list;
  {
    const std::lock_guard lock(mutex_);
    const auto found = parked_.find(topic);
    if (found != parked_.end() && !closed_) {
      list = found->second;
    }
  }
  for (const auto& parked : list) {
    later_(Milliseconds(0), [parked] { Try(*parked, false); });
  }
}

void Waiters::NotifyAll() {
  std::vector<std::shared_ptr<Parked>> list;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [topic, parked] : parked_) {
      if (!closed_) {
        list.insert(list.end(), parked.begin(), parked.end());
      }
    }
  }
  for (const auto& parked : list) {
    later_(Milliseconds(0), [parked] { Try(*parked, false); });
  }
}

void Waiters::ReleaseAll() {
  std::vector<std::shared_ptr<Parked>> list;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [topic, parked] : parked_) {
      list.insert(list.end(), parked.begin(), parked.end());
    }
    parked_.clear();
    count_ = 0;
  }
  for (const auto& parked : list) {
    Try(*parked, true);
  }
}

}  // namespace ringfence::server
