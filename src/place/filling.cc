#include "place/filling.h"

#include <algorithm>

#include "base/check.h"

namespace ringfence::place {
namespace {

constexpr int kRoundsMax = 4000;  // a few times the items in practice
constexpr double kTiny = 1e-9;

}  // namespace

Packing PackItems(const std::vector<double>& demands, const std::vector<double>& alone,
                  const std::function<BestPattern(const std::vector<double>&)>& best) {
  const std::size_t n = demands.size();
  RINGFENCE_CHECK(n == alone.size() && n <= kItemsMax);
  // The revised simplex method: the inverse of the basis, and how often each of its patterns runs.
  std::vector<std::vector<double>> inverse(n, std::vector<double>(n, 0));
  std::vector<double> level(n);
  for (std::size_t i = 0; i < n; ++i) {
    inverse[i][i] = 1 / alone[i];
    level[i] = demands[i] / alone[i];
  }
  Packing packing{std::vector<double>(n, 0), 0};
  for (int round = 0; round < kRoundsMax; ++round) {
    for (std::size_t j = 0; j < n; ++j) {
      packing.prices[j] = 0;
      for (std::size_t i = 0; i < n; ++i) {
        packing.prices[j] += inverse[i][j];
      }
    }
    const BestPattern entering = best(packing.prices);
    if (entering.worth <= 1 + kTiny) {
      break;
    }
    std::vector<double> column(n, 0);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        column[i] += inverse[i][j] * entering.pattern[j];
      }
    }
    std::size_t leaving = n;
    for (std::size_t i = 0; i < n; ++i) {
      if (column[i] > kTiny &&
          (leaving == n || level[i] / column[i] < level[leaving] / column[leaving])) {
        leaving = i;
      }
    }
    if (leaving == n) {
      break;
    }
    const double step = level[leaving] / column[leaving];
    for (double& value : inverse[leaving]) {
      value /= column[leaving];
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (i != leaving && column[i] != 0) {
        for (std::size_t j = 0; j < n; ++j) {
          inverse[i][j] -= column[i] * inverse[leaving][j];
        }
        level[i] -= column[i] * step;
      }
    }
    level[leaving] = step;
  }
  // Rounding may leave a pattern worth a little above a bin, and a price a little below nothing.
  for (double& price : packing.prices) {
    price = std::max(price, 0.0);
  }
  const double most = best(packing.prices).worth;
  for (std::size_t i = 0; i < n; ++i) {
    packing.prices[i] /= std::max(most, 1.0);
    packing.bins += packing.prices[i] * demands[i];
  }
  return packing;
}

}  // namespace ringfence::place
