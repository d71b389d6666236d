#pragma once

// AMD's part of a scrub. Never run on hardware.

#include <functional>

#include "base/result.h"
#include "gpu/card_driver.h"
#include "gpu/inventory.h"
#include "gpu/scrub.h"

namespace ringfence::gpu {

using ScrubOne = std::function<Status(CardDriver& driver, const Gpu& gpu)>;

// Opens HIP, says in `report` what it is, and calls `scrub` with each card.
Status ScrubThroughHip(const std::string& driver_root, const std::vector<Gpu>& gpus,
                       const ScrubOne& scrub, ScrubReport& report);

}  // namespace ringfence::gpu
