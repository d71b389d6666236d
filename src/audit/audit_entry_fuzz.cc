// Goal: no input crashes the reader of entries; what it reads it would write again byte for byte;
// the verifier's check for canonical JSON agrees with the canonical writer.

#include <cstdlib>

#include "audit/entry.h"
#include "audit/verify_json.h"
#include "audit/verify_shape.h"

namespace {
using namespace ringfence;  // NOLINT(google-build-using-namespace): one short program

// CanonicalJson writes whole numbers of at most 2^53 only.
bool OnlyWholeNumbers(const Json& value) {
  if (const auto* object = value.if_object()) {
    for (const auto& member : *object) {
      if (!OnlyWholeNumbers(member.value())) {
        return false;
      }
    }
  } else if (const auto* array = value.if_array()) {
    for (const Json& element : *array) {
      if (!OnlyWholeNumbers(element)) {
        return false;
      }
    }
  } else if (value.is_number()) {
    constexpr std::int64_t kMost = std::int64_t{1} << 53U;
    const auto* number = value.if_int64();
    return number != nullptr && *number <= kMost && *number >= -kMost;
  }
  return true;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView bytes = std::as_bytes(std::span(data, size));
  const std::string_view text = AsText(bytes);
  const auto parsed = ParseJson(text, audit::kEntryBytesMax);
  const bool canonical = parsed.has_value() && parsed->is_object() && OnlyWholeNumbers(*parsed) &&
                         CanonicalJson(*parsed) == text;
  const bool passes = audit::verify::WhyNotCanonical(text) == nullptr;
  if (passes != canonical && size <= audit::kEntryBytesMax) {
    std::abort();
  }
  // Shapes of whatever came before must not let pass what the full scan refuses.
  static audit::verify::ShapeCache shapes;
  if (shapes.Fits(text) && !passes) {
    std::abort();
  }
  if (passes) {
    shapes.Learn(text);
  }
  const auto entry = audit::Entry::Parse(bytes);
  if (entry.has_value()) {
    const auto again = entry->ToBytes();
    if (!passes || !again.has_value() || AsText(*again) != text) {
      std::abort();
    }
  }
  return 0;
}
