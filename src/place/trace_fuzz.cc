// Goal: no file makes the readers of traces do anything but answer, and what they read can be
// placed without giving anything twice.
// Method: the bytes as nodes and as pods; both halves, cut at a NUL byte, replayed when small.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "place/replay.h"

namespace place = ringfence::place;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find('\0');
  const auto nodes = place::ParseTraceNodes(text.substr(0, cut), "nodes.csv");
  const auto pods =
      place::ParseTracePods(cut == text.npos ? text : text.substr(cut + 1), "pods.csv");
  if (nodes.has_value() && pods.has_value() && nodes->nodes.size() <= 8 && pods->size() <= 16) {
    const auto report = place::Replay(*nodes, *pods, {}, [] { return 0.0; });
    if (report.violations != 0) {
      std::abort();
    }
  }
  return 0;
}
