#pragma once

// Versions of NVIDIA's products, as bulletins and package managers write them: "535.183.01",
// "v1.16.2", "12.4U1", "r2.0.0rc0", "10.24.09a", "6.15.6-4", "xx.41.1000", "S2W_3A13".

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringfence::assure {

struct ProductVersion {
  static constexpr std::uint32_t kAny = UINT32_MAX;  // "x" or "xx": any number
  static constexpr std::size_t kPartsMax = 8;

  std::vector<std::uint32_t> parts;     // of the dotted number
  bool series = false;                  // written with a trailing ".x": all that begin so
  std::uint32_t update = 0;             // "12.4U1", "12.4 Update 1"
  char letter = 0;                      // "10.24.09a"
  std::optional<std::uint32_t> before;  // a release candidate or the like: earlier than the release
  std::vector<std::uint32_t> revision;  // "-4"; a package's revision
  std::string opaque;                   // a text that is no dotted number: "s2w_3a13"
  std::string text;                     // as it was written

  bool numbered() const { return opaque.empty(); }
  std::uint32_t first() const { return parts.empty() ? 0 : parts.front(); }
};

// Nothing for a text that is no version. At most 128 bytes are looked at.
std::optional<ProductVersion> ParseProductVersion(std::string_view text);

// How `version` stands to `bound`; unordered where the two are numbered in different ways. Missing
// parts are zeros. A revision counts only where the bound has one; a version without it then comes
// before.
std::partial_ordering Compare(const ProductVersion& version, const ProductVersion& bound);

// "6.16.3" is of "6.16" and of "6.16.x".
bool IsOfSeries(const ProductVersion& version, const ProductVersion& series);

// Year and month ("24.05", "2022.1.1"): such numbers cannot be set beside others of one product.
bool IsCalendar(const ProductVersion& version);

}  // namespace ringfence::assure
