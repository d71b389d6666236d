#pragma once

#include <compare>
#include <string_view>

namespace ringfence {

// Versions of Debian packages, "[epoch:]upstream[-revision]", in the order of Debian's policy
// manual (5.6.12): digits by their number, letters before other signs, and '~' before everything,
// even the end. Any text has a place in the order.
std::strong_ordering CompareDebianVersions(std::string_view a, std::string_view b);

}  // namespace ringfence
