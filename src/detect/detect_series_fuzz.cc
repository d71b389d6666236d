// Goal: no text makes the reader of series or a baseline do anything but answer.
// Method: every row that is read is fed; scores stay within bounds.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "detect/baseline.h"
#include "detect/series.h"

namespace detect = ringfence::detect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file =
      detect::ParseSeries(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!file.has_value()) {
    return 0;
  }
  for (const detect::Series& series : file->series) {
    detect::Baseline baseline;
    for (const detect::Sample& sample : series.samples) {
      const detect::Verdict verdict = baseline.Update(sample.time_s, sample.value);
      if (!(verdict.score >= 0 && verdict.score <= 1) || detect::Explain(verdict).size() > 1000) {
        std::abort();
      }
    }
  }
  return 0;
}
