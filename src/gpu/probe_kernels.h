#pragma once

// The kernels of the probe of on-chip memory (probes/chip.cc), which the stand-in of sim/ knows
// too.

#include <cstdint>

namespace ringfence::gpu::kernels {

// Fills a block's shared memory, `words` of it, with the eight words at `secret`:
//   (const uint32_t* secret, uint32_t words)
inline constexpr const char* kPlantName = "ringfence_probe_plant";
// Copies what a block finds in its shared memory to its place in `out`:
//   (uint32_t* out, uint32_t words), words of each block after those of the one before
inline constexpr const char* kSpyName = "ringfence_probe_spy";

inline constexpr unsigned kProbeThreads = 256;
inline constexpr unsigned kSecretWords = 8;

}  // namespace ringfence::gpu::kernels
