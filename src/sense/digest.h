#pragma once

// From what a sensor says each second to what is worth telling: a record for each GPU and minute,
// and one at once for each fault, each process that appears, and memory errors that grow.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/time.h"
#include "gpu/readings.h"

namespace ringfence::sense {

// One thread.
class Digest {
 public:
  // Records that the line completes. `every`: how much time one record of readings sums up.
  std::vector<JsonObject> Take(const gpu::SensorLine& line, Milliseconds every);
  // What each GPU said last, of those that spoke within `age` of the newest line.
  std::vector<const gpu::Reading*> Latest(Milliseconds age) const;
  Timestamp last_line() const { return last_line_; }

 private:
  struct Sum {
    Timestamp since;
    std::int64_t samples = 0;
    std::array<std::int64_t, gpu::kSignals> total{};
    std::array<std::int64_t, gpu::kSignals> count{};
    std::array<std::int64_t, gpu::kSignals> most{};
    std::array<std::int64_t, gpu::kSignals> grown{};
  };
  static void Add(const gpu::Reading& reading, const gpu::Reading* before, Sum& sum);
  static JsonObject Close(const std::string& uuid, const Sum& sum, Timestamp time);

  struct Last {
    gpu::Reading reading;
    Timestamp time;
  };
  std::map<std::string, Last> latest_;
  std::map<std::string, Sum> sums_;
  std::map<std::string, std::set<std::uint32_t>> processes_;
  Timestamp last_line_{};
};

}  // namespace ringfence::sense
