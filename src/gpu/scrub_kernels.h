#pragma once

// What the kernels of scrub.cu share with the program that starts them and with the stand-in of
// sim/, which does the same by these very functions: names, reports and patterns. Read by nvcc and
// by g++, so nothing but C.

#include <stdint.h>

#ifdef __CUDACC__
#define RINGFENCE_BOTH_SIDES __host__ __device__ __forceinline__
#else
#define RINGFENCE_BOTH_SIDES inline
#endif

namespace ringfence::gpu::kernels {

inline constexpr const char* kFillName = "ringfence_fill";
inline constexpr const char* kCountName = "ringfence_count";
inline constexpr const char* kReadName = "ringfence_read";
inline constexpr const char* kOnChipName = "ringfence_on_chip";

inline constexpr unsigned kThreads = 256;  // of a block, for every kernel here
inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kWarps = kThreads / kWarp;
inline constexpr unsigned kVectorBytes = 16;  // memory is written and read in these
// 32-bit registers that each thread of ringfence_on_chip holds at the same time.
inline constexpr unsigned kHeldRegisters = 232;

// What one warp did to memory; its own place in an array, so that nothing is shared. A pass adds
// to it launch after launch. The starter adds all of them up: vectors that nobody came to are
// missing there.
struct Tally {
  uint64_t vectors;
  uint64_t wrong_bytes;
};

// What one warp found on its multiprocessor.
struct OnChipTally {
  uint32_t multiprocessor;
  uint32_t done;  // 1
  uint64_t shared_bytes;
  uint64_t residue_bytes;  // not zero before anything was written
  uint64_t wrong_bytes;    // of shared memory or registers
};

struct Vector {
  uint32_t word[4];
};

// The 16 bytes for one place of the card. An odd factor permutes the 32-bit numbers, so no two
// places have the same vector, and memory that shows up twice is noticed; the seed is another one
// for each scrub, so that what an earlier one left never passes.
RINGFENCE_BOTH_SIDES Vector PatternAt(uint64_t place, uint64_t seed) {
  const uint32_t a = static_cast<uint32_t>(place) * 0x9e3779b1U + static_cast<uint32_t>(seed);
  const uint32_t b = ((a ^ (a >> 15U)) + static_cast<uint32_t>(place >> 32U)) * 0x85ebca77U +
                     static_cast<uint32_t>(seed >> 32U);
  return Vector{{a, b, ~a, ~b}};
}

// The word for one place of a multiprocessor's shared memory.
RINGFENCE_BOTH_SIDES uint32_t CellPattern(uint32_t place, uint32_t seed) {
  return (place * 0x9e3779b1U) ^ seed;
}

// How many of the four bytes are not zero.
RINGFENCE_BOTH_SIDES uint32_t NonZeroBytes(uint32_t word) {
  word |= word >> 4U;
  word |= word >> 2U;
  word |= word >> 1U;
  word &= 0x01010101U;
  return (word * 0x01010101U) >> 24U;
}

}  // namespace ringfence::gpu::kernels
