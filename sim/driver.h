#pragma once

// What both stand-ins start from: the root they were loaded from, its scenario, and which of the
// GPUs this process may touch.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/scenario.h"

namespace ringfence::sim {

// How opening a device file went: 0, or errno.
//
// In a box the file is a real node of a major that no driver serves, so the kernel's answer to an
// open that the device cgroup lets through is ENXIO. That counts as open.
enum class Use { kRead, kReadWrite };  // capabilities are opened for reading
int OpenNode(const std::string& path, Use use = Use::kReadWrite);

// Milliseconds since 1970.
std::uint64_t NowMs();

enum class Vendor { kNvidia, kAmd };

struct Driver {
  std::string root;
  std::string devices;                  // the folder of the device files
  gpu::Scenario scenario;               // as it is now
  std::uint64_t written_ms = 0;         // when its file was written: where its timelines begin
  int control_errno = 0;                // of nvidiactl, or kfd
  int uvm_errno = 0;                    // of nvidia-uvm
  std::vector<gpu::SimulatedGpu> gpus;  // those whose device file opens, in order

  // Reads the root that the library holding `symbol` was loaded from: <root>/lib/<library>.
  static Result<Driver> Load(const void* symbol, Vendor vendor = Vendor::kNvidia);
  // The scenario as it is now: its file may have been written again, or a timeline moved on. Looks
  // at most every few milliseconds; true when something changed.
  bool Follow();

 private:
  gpu::Scenario as_written_;
  std::uint64_t looked_ms_ = 0;
  std::size_t steps_ = 0;  // of all timelines, that have come
};

// Counts calls, so that a scenario can make the third one fail. Any thread.
class FailurePlan {
 public:
  // The result that this call must answer with; 0: go on. `key` separates the GPUs.
  int Next(const gpu::FailureSwitches& switches, const std::string& key,
           const std::string& function);
  void Restart();  // counts from 0 again

 private:
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> calls_;
};

}  // namespace ringfence::sim
