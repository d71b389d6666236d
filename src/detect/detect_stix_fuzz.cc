// Goal: no text makes the readers of bundles, lists, events and mappings do anything but answer.
// Method: the same bytes to each of them; indicators that are accepted go into an index, events
// that are accepted are matched.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "detect/indicator_index.h"
#include "detect/mapping.h"

namespace detect = ringfence::detect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  detect::IndicatorIndex index;
  for (auto* parse : {detect::ParseBundle, detect::ParseList}) {
    auto file = parse(text, "file");
    if (!file.has_value()) {
      continue;
    }
    for (detect::Indicator& indicator : file->indicators) {
      if (!index.Add(std::move(indicator)).has_value()) {
        std::abort();
      }
    }
  }
  detect::IndicatorIndex::Numbers found;
  if (auto json = ringfence::ParseJson(text, 1'000'000); json.has_value()) {
    if (const auto event = detect::Event::FromStix(std::move(*json)); event.has_value()) {
      index.Match(event->observation(), 0, found);
    }
  }
  (void)detect::Mapping::Parse(text);
  return 0;
}
