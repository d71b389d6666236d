#include "base/closest.h"

#include <algorithm>
#include <array>

namespace ringfence {
namespace {

constexpr std::size_t kTextBytesMax = 128;  // longer names are not typing errors of one another

}  // namespace

std::size_t EditDistance(std::string_view a, std::string_view b, std::size_t most) {
  const std::size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference > most || a.size() > kTextBytesMax || b.size() > kTextBytesMax) {
    return most + 1;
  }
  using Row = std::array<std::size_t, kTextBytesMax + 1>;
  Row before_last{};
  Row last{};
  Row row{};
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = last;
    last = row;
    row[0] = i;
    std::size_t least = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
      least = std::min(least, row[j]);
    }
    if (least > most) {
      return most + 1;
    }
  }
  return std::min(row[b.size()], most + 1);
}

std::optional<std::string> Closest(std::string_view text,
                                   const std::vector<std::string_view>& candidates) {
  std::optional<std::string> closest;
  std::size_t most = std::max<std::size_t>(1, text.size() / 3);
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = EditDistance(text, candidate, most);
    if (distance <= most) {
      closest = candidate;
      if (distance == 0) {
        break;
      }
      most = distance - 1;
    }
  }
  return closest;
}

}  // namespace ringfence
