#pragma once

// Reads every GPU of a driver again and again. Each card has a thread of its own, so that one that
// hangs keeps nobody else from being seen.

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "gpu/readings.h"

namespace ringfence::gpu {

struct SensorOptions {
  std::string driver_root;
  Milliseconds every = std::chrono::seconds(1);
  int kernel_log = -1;  // of os::OpenKernelLog, or any that reads as one; -1: none
  Milliseconds hung_after = std::chrono::seconds(10);  // a card that has not answered for so long
};

class Sensor {
 public:
  virtual ~Sensor() = default;
  Sensor() = default;
  Sensor(const Sensor&) = delete;
  Sensor& operator=(const Sensor&) = delete;

  // Opens NVML once. kNotFound: no driver there. A card that is lost already is a fault, not an
  // error.
  static Result<std::unique_ptr<Sensor>> Open(const SensorOptions& options);

  // Calls `say` for each round of readings and for each fault, as soon as it is known, until it
  // returns false. One thread.
  virtual void Run(const std::function<bool(const SensorLine&)>& say) = 0;
};

}  // namespace ringfence::gpu
