#pragma once

// What a machine has to offer: room, memory, time, ports.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::os {

struct DiskRoom {
  std::uint64_t free_bytes = 0;  // for an unprivileged writer
  std::uint64_t total_bytes = 0;
  std::uint64_t free_files = 0;
  std::uint64_t total_files = 0;  // 0: this file system does not count them
  bool read_only = false;
};
Result<DiskRoom> RoomAt(const std::string& path);

struct Memory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;
};
Result<Memory> MemoryNow();

// Whether somebody keeps the kernel's clock right.
enum class ClockSync { kYes, kNo, kUnknown };
ClockSync ClockSynchronised();

// OK when this process could listen there now; the error is the kernel's. `ip` is numeric.
Status TryListen(const std::string& ip, std::uint16_t port);

struct Process {
  int pid = 0;
  std::vector<std::string> arguments;
};
// Those whose program's own name is `name`, as far as they can be seen.
std::vector<Process> ProcessesNamed(const std::string& name);

}  // namespace ringfence::os
