#pragma once

// What crosses the border between the worker that unpacks an image and the root side that keeps it.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "image/limits.h"

namespace ringfence::image {

struct Wanted {
  std::string tag;     // empty: the only one there is
  std::string digest;  // of manifest or index; empty: whatever it is
};

// What the worker reports of an unpacked image; each value has passed these limits.
struct Report {
  std::string digest;
  std::string document;
  std::vector<std::string> names;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> command;
  std::string working_folder;
  std::string tree_digest;
  std::uint64_t layers = 0;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t privileged_bits = 0;
};
inline constexpr std::size_t kReportBytesMax = 3 * kJsonBytesMax;

// A letter or '_', then letters, digits and '_'.
bool IsVariable(std::string_view name);

Json ReportToJson(const Report& report);
// Also checks that `document` has the digest.
Result<Report> ReportFromJson(const Json& json);

}  // namespace ringfence::image
