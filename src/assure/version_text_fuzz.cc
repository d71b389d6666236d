// Any text: read as a version and as prose about versions. What is read must hold together: a
// version equals itself, an order is the same from both sides, and a bound that is left out is not
// contained.

#include "assure/version_text.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence::assure;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto version = ParseProductVersion(text)) {
    RINGFENCE_CHECK(Compare(*version, *version) == 0);
  }
  const VersionText read = ReadVersionText(text);
  for (const VersionSpan& span : read.spans) {
    if (span.high && span.low) {
      const auto one = Compare(*span.low, *span.high);
      const auto other = Compare(*span.high, *span.low);
      RINGFENCE_CHECK(!(one < 0 && other < 0) && !(one > 0 && other > 0));
    }
    if (span.high && !span.high_included && !span.low) {
      RINGFENCE_CHECK(Contains(span, *span.high) != Holds::kYes);
    }
    if (span.high && span.high_included && !span.low) {
      RINGFENCE_CHECK(Contains(span, *span.high) != Holds::kNo);
    }
  }
  (void)FixesOf(read.spans);
  return 0;
}
