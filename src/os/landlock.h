#pragma once

// Landlock: what the calling process and its children may still do with files, ports and
// neighbours, whatever rights they have or gain.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::os {

int LandlockAbi();  // 0: this kernel has none

enum class PathUse { kRead, kReadExec, kReadWrite, kDevice };

struct LandlockPath {
  std::string path;
  PathUse use = PathUse::kRead;
  bool must_exist = true;  // false: passed over when it is not there
};

struct LandlockRules {
  std::vector<LandlockPath> paths;
  // TCP ports that may be connected to; none when empty. Enforced from ABI 4 on.
  std::vector<std::uint16_t> connect_ports;
  // Leave TCP alone altogether (the caller has another wall there).
  bool any_tcp = false;
  // Keep signals and abstract sockets inside (ABI 6).
  bool scoped = true;
};

// Binds the calling thread. A process with several threads must call this before it starts them.
// kFailedPrecondition when the kernel has no Landlock: there is no way on without it.
Status EnterLandlock(const LandlockRules& rules);

}  // namespace ringfence::os
