// Goal: no text makes the readers of scenarios and workers' reports do anything but answer.
// Method: the same bytes to each of them; what is accepted must survive being written again.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gpu/inventory.h"
#include "gpu/limits.h"
#include "gpu/scenario.h"
#include "gpu/scrub.h"

namespace gpu = ringfence::gpu;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto scenario = gpu::ParseScenario(text); scenario.has_value()) {
    if (!gpu::ParseScenario(gpu::ScenarioToJson(*scenario)).has_value()) {
      std::abort();
    }
  }
  if (const auto report = gpu::ScrubReportFromJson(text); report.has_value()) {
    if (!gpu::ScrubReportFromJson(gpu::ScrubReportToJson(*report)).has_value()) {
      std::abort();
    }
  }
  const auto json = ringfence::ParseJson(text, gpu::kReportBytesMax);
  if (json.has_value()) {
    if (const auto inventory = gpu::InventoryFromJson(*json); inventory.has_value()) {
      if (!gpu::InventoryFromJson(gpu::InventoryToJson(*inventory)).has_value()) {
        std::abort();
      }
    }
  }
  return 0;
}
