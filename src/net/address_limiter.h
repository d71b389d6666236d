#pragma once

// How much one address may ask for: connections at a time, and requests a second by a token bucket
// that holds one second's worth.

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace ringfence::net {

inline constexpr std::size_t kAddressesMax = 16 * 1024;

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

  // A connection's place, to be given back with Leave; null when there is none. Connecting costs a
  // token too, on credit of one second's worth: who only ever connects is refused, who is merely
  // over the rate gets the 429 that says so.
  std::shared_ptr<Entry> Enter(const std::string& address, TimePoint now);
  void Leave(const std::shared_ptr<Entry>& entry);
  // A token for one request; false when there is none.
  bool Take(Entry& entry, TimePoint now);

  std::size_t connections() const;
  std::size_t addresses() const;

 private:
  void Refill(Entry& entry, TimePoint now) const;
  void Forget(TimePoint now);

  const Limits limits_;
  const double burst_;
  mutable std::mutex mutex_;
  // Shared: the table forgets an address only when it is idle, its connections hold it meanwhile.
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  std::size_t connections_ = 0;
  TimePoint forgot_at_{};
};

}  // namespace ringfence::net
