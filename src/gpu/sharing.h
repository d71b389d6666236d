#pragma once

// What a GPU that several jobs use at once needs of its driver. Pure files: opens no vendor
// library, so that the jailer may ask.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ringfence::gpu {

// Whether the driver clears memory when a process gives it back, by its settings ("params"); none
// when they do not tell.
std::optional<bool> ScrubsOnFree(std::string_view params);
std::optional<bool> ReadScrubOnFree(const std::string& driver_root);
// OK when it does. Fails closed: settings that cannot be read or do not tell are no.
Status CheckScrubOnFree(const std::string& driver_root);

}  // namespace ringfence::gpu
