#pragma once

// What the pages of reports share: one file each, no script, nothing from elsewhere; they are read
// on wide and narrow screens, and print well.

#include <string>

namespace ringfence::assure {

// Up to where the body begins.
std::string PageBegin(const std::string& title);

// How many there are of each likelihood and impact, [likelihood-1][impact-1].
std::string HeatTable(const int (&cells)[5][5]);

}  // namespace ringfence::assure
