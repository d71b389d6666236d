#pragma once

// What one node may have, so that every answer about its GPUs is bounded.

#include <cstddef>

namespace ringfence::gpu {

inline constexpr std::size_t kGpusMax = 64;
inline constexpr std::size_t kUnitsMax = kGpusMax * 8;  // GPUs, and slices of those that are cut
inline constexpr std::size_t kProcessesMax = 256;       // on one GPU
inline constexpr std::size_t kReportBytesMax = std::size_t{1} << 20U;  // as JSON

}  // namespace ringfence::gpu
