#include "net/address_limiter.h"

#include <algorithm>

#include "base/check.h"

namespace ringfence::net {

struct AddressLimiter::Entry {
  std::size_t connections = 0;
  double tokens = 0;
  TimePoint filled{};
};

AddressLimiter::AddressLimiter(const Limits& limits)
    : limits_(limits), burst_(std::max(1.0, limits.requests_per_second_per_address)) {}

AddressLimiter::~AddressLimiter() = default;

void AddressLimiter::Refill(Entry& entry, TimePoint now) const {
  const double seconds = std::chrono::duration<double>(now - entry.filled).count();
  if (seconds > 0) {
    entry.tokens =
        std::min(burst_, entry.tokens + seconds * limits_.requests_per_second_per_address);
    entry.filled = now;
  }
}

// An address without connections is remembered until its bucket is full again: then it is as if
// it had never been seen.
void AddressLimiter::Forget(TimePoint now) {
  if (now - forgot_at_ < std::chrono::seconds(1)) {
    return;
  }
  forgot_at_ = now;
  std::erase_if(entries_, [&](const auto& pair) {
    Refill(*pair.second, now);
    return pair.second->connections == 0 && pair.second->tokens >= burst_;
  });
}

std::shared_ptr<AddressLimiter::Entry> AddressLimiter::Enter(const std::string& address,
                                                             TimePoint now) {
  const std::scoped_lock lock(mutex_);
  Forget(now);
  if (connections_ >= limits_.connections_max) {
    return nullptr;
  }
  auto found = entries_.find(address);
  if (found == entries_.end()) {
    if (entries_.size() >= kAddressesMax) {
      return nullptr;
    }
    found = entries_.emplace(address, std::make_shared<Entry>()).first;
    found->second->tokens = burst_;
    found->second->filled = now;
  }
  Entry& entry = *found->second;
  Refill(entry, now);
  if (entry.connections >= limits_.connections_per_address_max || entry.tokens < 1 - burst_) {
    return nullptr;
  }
  entry.tokens -= 1;
  ++entry.connections;
  ++connections_;
  return found->second;
}

void AddressLimiter::Leave(const std::shared_ptr<Entry>& entry) {
  const std::scoped_lock lock(mutex_);
  RINGFENCE_CHECK(entry->connections > 0 && connections_ > 0);
  --entry->connections;
  --connections_;
}

bool AddressLimiter::Take(Entry& entry, TimePoint now) {
  const std::scoped_lock lock(mutex_);
  Refill(entry, now);
  if (entry.tokens < 1) {
    return false;
  }
  entry.tokens -= 1;
  return true;
}

std::size_t AddressLimiter::connections() const {
  const std::scoped_lock lock(mutex_);
  return connections_;
}

std::size_t AddressLimiter::addresses() const {
  const std::scoped_lock lock(mutex_);
  return entries_.size();
}

}  // namespace ringfence::net
