#pragma once

// What changes for whom when one policy takes the place of another.

#include <string>
#include <vector>

#include "policy/outlook.h"

namespace ringfence::policy {

struct Change {
  Point before;  // of the same principal, action and tenant as `after`
  Point after;
};

// Every principal, action and tenant of either; each change is said once, at the topmost tenant
// that has it. Somebody or something that only one of the two declares may nothing in the other.
std::vector<Change> PlanChange(const Policy& before, const Policy& after);

}  // namespace ringfence::policy
