#pragma once

// How much one address may ask for: connections at a time, and requests a second by a token bucket
// that holds one second's worth. Many may share an address (a NAT, one machine), so that one of
// them must not lock the others out: who comes when all places are taken gets the place of the
// connection that has waited longest for its client.

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ringfence::net {

inline constexpr std::size_t kAddressesMax = 16 * 1024;

// A connection as the limiter sees it. Any thread.
class Evictable {
 public:
  // Less is sooner to go.
  struct Claim {
    bool body_coming;  // a request's head is here already
    std::chrono::steady_clock::time_point since;
    auto operator<=>(const Claim&) const = default;
  };

  virtual ~Evictable() = default;
  // None while a request of it is being answered, which is never broken off.
  virtual std::optional<Claim> WaitsForClient() = 0;
  // Closes it; false when it has a request to answer by now.
  virtual bool Evict() = 0;
};

// Any thread.
class AddressLimiter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Limits {
    std::size_t connections_max;  // of all addresses
    std::size_t connections_per_address_max;
    double requests_per_second_per_address;
  };

  struct Entry;

  explicit AddressLimiter(const Limits& limits);
  ~AddressLimiter();
  AddressLimiter(const AddressLimiter&) = delete;
  AddressLimiter& operator=(const AddressLimiter&) = delete;

  // A connection's place, to be given back with Leave; null when there is none. Where all are
  // taken, of this address or altogether, that is after none could be freed: of the same address,
  // or of the one with the most connections if that has more than this one. Connecting costs a
  // token too, on credit of one second's worth: who only ever connects is refused, who is merely
  // over the rate gets the 429 that says so.
  std::shared_ptr<Entry> Enter(const std::string& address, TimePoint now);
  void Leave(const std::shared_ptr<Entry>& entry);
  // The connection that has the place, which may be evicted from now on.
  void Register(Entry& entry, const std::shared_ptr<Evictable>& connection);
  // A token for one request; false when there is none.
  bool Take(Entry& entry, TimePoint now);

  std::size_t connections() const;
  std::size_t addresses() const;

 private:
  using Victims = std::vector<std::weak_ptr<Evictable>>;

  std::shared_ptr<Entry> TryEnter(const std::string& address, TimePoint now, Victims& in_the_way);
  void Refill(Entry& entry, TimePoint now) const;
  void Forget(TimePoint now);
  const Entry* MostConnected() const;

  const Limits limits_;
  const double burst_;
  mutable std::mutex mutex_;
  // Shared: the table forgets an address only when it is idle, its connections hold it meanwhile.
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  std::size_t connections_ = 0;
  TimePoint forgot_at_{};
};

}  // namespace ringfence::net
