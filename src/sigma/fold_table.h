#pragma once

#include <cstddef>
#include <cstdint>

namespace ringfence::sigma {

struct FoldRange {
  std::uint32_t first;
  std::uint32_t last;
  std::int32_t delta;
  std::uint32_t step;
};
extern const FoldRange kFoldRanges[];
extern const std::size_t kFoldRangeCount;

}  // namespace ringfence::sigma
