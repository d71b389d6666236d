#include "net/address_limiter.h"

#include <algorithm>

#include "base/check.h"

namespace ringfence::net {

struct AddressLimiter::Entry {
  std::size_t connections = 0;
  std::vector<std::weak_ptr<Evictable>> evictable;
  double tokens = 0;
  TimePoint filled{};
};

namespace {

// Closes the one that has waited longest for its client.
bool EvictOne(const std::vector<std::weak_ptr<Evictable>>& connections) {
  std::shared_ptr<Evictable> victim;
  std::optional<Evictable::Claim> least;
  for (const auto& weak : connections) {
    auto connection = weak.lock();
    const auto claim = connection == nullptr ? std::nullopt : connection->WaitsForClient();
    if (claim.has_value() && (!least.has_value() || *claim < *least)) {
      least = claim;
      victim = std::move(connection);
    }
  }
  return victim != nullptr && victim->Evict();
}

}  // namespace

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
  Victims in_the_way;
  auto entry = TryEnter(address, now, in_the_way);
  // Without the lock: an evicted connection gives its place back itself.
  if (entry == nullptr && EvictOne(in_the_way)) {
    entry = TryEnter(address, now, in_the_way);
  }
  return entry;
}

const AddressLimiter::Entry* AddressLimiter::MostConnected() const {
  const Entry* most = nullptr;
  for (const auto& [address, entry] : entries_) {
    if (most == nullptr || entry->connections > most->connections) {
      most = entry.get();
    }
  }
  return most;
}

// Null, and `in_the_way` filled in, when a connection would have to go first.
std::shared_ptr<AddressLimiter::Entry> AddressLimiter::TryEnter(const std::string& address,
                                                                TimePoint now,
                                                                Victims& in_the_way) {
  const std::scoped_lock lock(mutex_);
  Forget(now);
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
  if (entry.tokens < 1 - burst_) {
    return nullptr;
  }
  if (entry.connections >= limits_.connections_per_address_max) {
    in_the_way = entry.evictable;
    return nullptr;
  }
  if (connections_ >= limits_.connections_max) {
    const Entry* const most = MostConnected();
    in_the_way = most->connections > entry.connections ? most->evictable : entry.evictable;
    return nullptr;
  }
  entry.tokens -= 1;
  ++entry.connections;
  ++connections_;
  return found->second;
}

void AddressLimiter::Register(Entry& entry, const std::shared_ptr<Evictable>& connection) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(entry.evictable, [](const auto& one) { return one.expired(); });
  entry.evictable.push_back(connection);
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
