#include "audit/verify_pool.h"

#include <algorithm>

namespace ringfence::audit::verify {
namespace {

constexpr unsigned kThreadsLimit = 8;
constexpr std::uint64_t kAheadLimit = 64;  // tiles that may be ready or in work
// Starting a thread takes longer than checking so few tiles.
constexpr std::uint64_t kTilesWorthThreads = 16;

}  // namespace

LeafPool::LeafPool(std::string folder, std::uint64_t size, unsigned threads)
    : folder_(std::move(folder)), size_(size), tiles_(size / kSpan + (size % kSpan != 0 ? 1 : 0)) {
  if (threads == 0) {
    threads = std::max(1U, std::thread::hardware_concurrency());
  }
  threads = std::min(threads, kThreadsLimit);
  if (threads > 1 && tiles_ >= kTilesWorthThreads) {
    for (unsigned i = 0; i < threads; ++i) {
      threads_.emplace_back([this](const std::stop_token& stop) { Work(stop); });
    }
  }
}

LeafPool::~LeafPool() {
  for (std::jthread& thread : threads_) {
    thread.request_stop();
  }
}

LeafTile LeafPool::Check(std::uint64_t index, LeafRoom& room) const {
  return CheckLeafTile(folder_, index, std::min(size_ - index * kSpan, kSpan), room);
}

LeafTile LeafPool::Next() {
  if (threads_.empty()) {
    return Check(taken_++, room_);
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_.contains(taken_); });
  LeafTile tile = std::move(ready_.extract(taken_).mapped());
  ++taken_;
  lock.unlock();
  changed_.notify_all();
  return tile;
}

void LeafPool::Work(const std::stop_token& stop) {
  LeafRoom room;
  std::unique_lock lock(mutex_);
  while (claimed_ < tiles_) {
    if (!changed_.wait(lock, stop, [this] { return claimed_ < taken_ + kAheadLimit; })) {
      return;
    }
    if (claimed_ == tiles_) {
      return;
    }
    const std::uint64_t index = claimed_++;
    lock.unlock();
    LeafTile tile = Check(index, room);
    lock.lock();
    ready_.emplace(index, std::move(tile));
    changed_.notify_all();
  }
}

}  // namespace ringfence::audit::verify
