#pragma once

// Which processes have a device, or a file, open or mapped.

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ringfence::os {

struct Holdable {
  std::set<std::pair<std::uint32_t, std::uint32_t>> devices;  // character devices: major, minor
  std::set<std::pair<std::uint64_t, std::uint64_t>> files;    // file system, inode
};

struct Holder {
  int pid = 0;
  std::uint64_t started = 0;  // with the pid: this process and no later one of the same number
  std::string name;           // as the kernel has it; a process chooses its own
};

// Every process of this machine but the caller, in the order of their ids. Needs root. What nobody
// can see here: descriptors on their way through a socket, or registered with io_uring and closed.
Result<std::vector<Holder>> FindHolders(const Holdable& wanted);

// When it was started, by the kernel's own clock; kNotFound when there is no such process.
Result<std::uint64_t> StartOf(int pid);

}  // namespace ringfence::os
