// Goal: no text makes the pattern parser or the matcher do anything but answer.
// Method: what is accepted is fed with events that have something of everything; equalities must
// give the same answer through the tables.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "detect/indicator_index.h"

namespace detect = ringfence::detect;

namespace {

detect::Event SomeEvent() {
  auto event = detect::Event::FromStix(*ringfence::ParseJson(
      R"({"at":"2024-01-01T00:00:00Z","objects":[{"type":"file","id":"f","name":"sample.exe","size":42,
      "hashes":{"MD5":"ab","SHA-256":"cd"},"parent_directory_ref":"d","contains_refs":["f"],
      "list":[{"n":1},{"n":"x"}]},{"type":"directory","id":"d","path":"/tmp"},
      {"type":"ipv4-addr","id":"i","value":"198.51.100.1/32"},{"type":"a","b":1},
      {"type":"domain-name","value":"example.com"},{"type":"process","command_line":"x","pid":4242}]})",
      10'000));
  return std::move(*event);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const detect::Event event = SomeEvent();
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto pattern = detect::ParsePattern(text);
  if (!pattern.has_value()) {
    return 0;
  }
  detect::PatternMatcher matcher(std::move(*pattern));
  detect::IndicatorIndex index;
  detect::Indicator indicator;
  indicator.value = text;
  if (!index.Add(std::move(indicator)).has_value()) {
    std::abort();
  }
  detect::IndicatorIndex::Numbers found;
  for (std::uint64_t i = 0; i < 3; ++i) {
    const bool matched = matcher.Feed(event.observation(), i);
    index.Match(event.observation(), i, found);
    if (matched != !found.empty()) {
      std::abort();
    }
  }
  return 0;
}
