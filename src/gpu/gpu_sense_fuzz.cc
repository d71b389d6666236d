// What a sensor may say, from a worker that a tenant's card has talked to: never a crash, and what
// is taken is written back the same.

#include <cstdint>
#include <cstdlib>

#include "base/bytes.h"
#include "gpu/readings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)gpu::LeaseOfCgroup(text);
  (void)gpu::ParseXidLine(text);
  const auto line = gpu::ParseSensorLine(text);
  if (line.has_value()) {
    const std::string written = gpu::SensorLineToText(*line);
    const auto again = gpu::ParseSensorLine(written);
    if (!again.has_value() || gpu::SensorLineToText(*again) != written) {
      std::abort();
    }
  }
  return 0;
}
