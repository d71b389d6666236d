#pragma once

// What is installed where, for questions about many nodes at once.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::assure {

inline constexpr std::size_t kInventoryBytesMax = std::size_t{64} << 20U;
inline constexpr std::size_t kInventoryItemsMax = 200'000;

struct InventoryItem {
  std::string node;
  std::string product;
  std::string platform;  // "Linux" when it is not given
  std::string version;
};

// JSON: a list of {"node", "product", "platform", "version"}, or {"nodes": [...]}; an entry may
// have "components", a list of the same without "node", instead of a product of its own. CSV: the
// same names in the first line. Errors name the line or the entry.
Result<std::vector<InventoryItem>> ParseInventory(std::string_view text, const std::string& file);

}  // namespace ringfence::assure
