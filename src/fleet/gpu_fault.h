#pragma once

// What a GPU's fault means: whether it may be leased again without an operator.

#include <string>

#include "gpu/readings.h"

namespace ringfence::fleet {

struct FaultVerdict {
  bool quarantines = false;
  std::string what;  // for people: "Xid 79 (the GPU has fallen off the bus): NVML event: Xid 79"
};
FaultVerdict Judge(const gpu::GpuFault& fault);

}  // namespace ringfence::fleet
