#pragma once

// The linear program behind Workload::Worth: the least number of bins that hold a mix of items, and
// what each item is worth in bins. Column generation (Gilmore and Gomory): patterns are found as
// they pay.

#include <functional>
#include <vector>

namespace ringfence::place {

inline constexpr std::size_t kItemsMax = 128;

// A way to fill one bin: how many of each item.
using Pattern = std::vector<double>;

struct Packing {
  std::vector<double> prices;  // of each item, in bins, none below 0; no pattern is worth above 1
  double bins = 0;             // that the demands need at least
};

// `demands` are above 0; `alone[i]` is how many of item i fill a bin by themselves. `best` gives
// the pattern worth most at given prices, and that worth.
struct BestPattern {
  Pattern pattern;
  double worth = 0;
};
Packing PackItems(const std::vector<double>& demands, const std::vector<double>& alone,
                  const std::function<BestPattern(const std::vector<double>&)>& best);

}  // namespace ringfence::place
