#pragma once

// Checks a log's leaf tiles on several threads and hands them out in order. What is ready but not
// yet taken is bounded, so memory does not grow with the log.

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "audit/verify_tree.h"

namespace ringfence::audit::verify {

class LeafPool {
 public:
  // `threads` 0: as many as there are cores, at most kThreadsLimit. With 1 all work is done in
  // Next.
  LeafPool(std::string folder, std::uint64_t size, unsigned threads);
  ~LeafPool();
  LeafPool(const LeafPool&) = delete;
  LeafPool& operator=(const LeafPool&) = delete;

  // The next leaf tile. To be called no more often than there are any; by one thread.
  LeafTile Next();

 private:
  void Work(const std::stop_token& stop);
  LeafTile Check(std::uint64_t index, LeafRoom& room) const;

  const std::string folder_;
  const std::uint64_t size_;
  const std::uint64_t tiles_;
  LeafRoom room_;  // of Next, where there are no threads
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::uint64_t claimed_ = 0;  // tiles below are done or being done
  std::uint64_t taken_ = 0;    // tiles below have been handed out
  std::map<std::uint64_t, LeafTile> ready_;
  std::vector<std::jthread> threads_;
};

}  // namespace ringfence::audit::verify
