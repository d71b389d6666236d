#pragma once

// A gate that threads wait at until it is opened, once. Unlike with a condition variable nobody
// stands in line for a lock afterwards; and whoever opens it wakes one thread, which wakes the
// others: waking many takes longer than the opener may have.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace ringfence::os {

// Any thread. It must outlive every call.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Until it is open; false when `most` passed before.
  bool Wait(std::optional<std::chrono::seconds> most = std::nullopt);
  void Open();

 private:
  std::atomic<std::uint32_t> open_ = 0;
  std::atomic<bool> others_woken_ = false;
};

}  // namespace ringfence::os
