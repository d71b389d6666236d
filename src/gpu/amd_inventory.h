#pragma once

// AMD's part of an inventory: AMD SMI (libamd_smi.so) for what only it knows, the kernel's files
// for the rest. Never run on hardware.

#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/inventory.h"
#include "gpu/library.h"

namespace ringfence::gpu {

struct AmdPart {
  bool simulated = false;
  AmdDriver driver;
  std::vector<Gpu> gpus;  // indexes from 0
};

// All of it, or an error that names the card and AMD SMI's own words.
Result<AmdPart> ReadAmd(const std::string& driver_root, const Library& library);

}  // namespace ringfence::gpu
