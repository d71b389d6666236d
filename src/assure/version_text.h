#pragma once

// What a bulletin says about versions in prose: "All driver versions prior to 535.183.01",
// "20.10 to 24.03", "470.141.03(All versions prior to and including vGPU 13.6)". A text of which
// any part is not understood is not understood at all; nobody guesses.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assure/product_version.h"

namespace ringfence::assure {

// From `low` to `high`; without either, all versions.
struct VersionSpan {
  std::optional<ProductVersion> low;
  std::optional<ProductVersion> high;
  bool low_included = true;
  bool high_included = true;
  // Said of whole series ("6.16.x", "9.0-9.2"): a fix within the series limits it.
  bool loose = false;
};

enum class Holds {
  kYes,
  kLoosely,  // by its series
  kBelow,    // earlier than the first
  kNo,
  kUnlike,  // numbered in another way
};
Holds Contains(const VersionSpan& span, const ProductVersion& version);

struct VersionText {
  bool understood = false;
  std::vector<VersionSpan> spans;
  std::vector<VersionSpan> vgpu_spans;  // the same in the numbers of the vGPU software
  std::string condition;                // "CDI mode only for ..."; may be empty
  std::string component;                // "bmc", "sbios"; may be empty
};

VersionText ReadVersionText(std::string_view text);

// The first good versions that a text about the fix names; none where it is not understood.
std::vector<ProductVersion> FixesOf(const std::vector<VersionSpan>& spans);

}  // namespace ringfence::assure
