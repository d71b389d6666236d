// The kernels that scrub a card: they fill memory, read it back and count, and clear what is on
// the chip. Compiled to scrub.ptx by scripts/kernels.sh; no build needs a CUDA compiler.
//
// Memory comes as `vectors` times 16 bytes, of which the first has the number `first` on its card.
// `mask` is all ones for the pattern and 0 for zeros.

#include "gpu/scrub_kernels.h"

using namespace ringfence::gpu::kernels;

namespace {

constexpr unsigned kAtOnce = 4;  // loads or stores of a thread that do not wait for each other

__device__ __forceinline__ Vector Expected(uint64_t place, uint64_t seed, uint32_t mask) {
  Vector vector = PatternAt(place, seed);
  for (uint32_t& word : vector.word) {
    word &= mask;
  }
  return vector;
}

__device__ __forceinline__ uint4 Load(const uint4* from) { return __ldcs(from); }

// Bytes of `got` other than expected; nearly always none, which costs one comparison.
__device__ __forceinline__ uint32_t Differences(const uint4& got, const Vector& expected) {
  const uint32_t x = got.x ^ expected.word[0];
  const uint32_t y = got.y ^ expected.word[1];
  const uint32_t z = got.z ^ expected.word[2];
  const uint32_t w = got.w ^ expected.word[3];
  if ((x | y | z | w) == 0) {
    return 0;
  }
  return NonZeroBytes(x) + NonZeroBytes(y) + NonZeroBytes(z) + NonZeroBytes(w);
}

__device__ __forceinline__ uint64_t WarpSum(uint64_t value) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_down_sync(0xffffffffU, value, distance);
  }
  return value;
}

__device__ __forceinline__ uint64_t ThreadOfGrid() {
  return static_cast<uint64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
__device__ __forceinline__ uint64_t ThreadsOfGrid() {
  return static_cast<uint64_t>(gridDim.x) * kThreads;
}

__device__ __forceinline__ void Report(Tally* tallies, uint64_t vectors, uint64_t wrong_bytes) {
  vectors = WarpSum(vectors);
  wrong_bytes = WarpSum(wrong_bytes);
  if (threadIdx.x % kWarp == 0) {
    Tally& own = tallies[ThreadOfGrid() / kWarp];
    own.vectors += vectors;
    own.wrong_bytes += wrong_bytes;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    ringfence_fill(uint4* memory, uint64_t vectors, uint64_t first, uint64_t seed, uint32_t mask,
                   Tally* tallies) {
  const uint64_t step = ThreadsOfGrid();
  uint64_t done = 0;
#pragma unroll 4
  for (uint64_t at = ThreadOfGrid(); at < vectors; at += step) {
    const Vector value = Expected(first + at, seed, mask);
    __stcs(memory + at, make_uint4(value.word[0], value.word[1], value.word[2], value.word[3]));
    ++done;
  }
  Report(tallies, done, 0);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    ringfence_count(const uint4* memory, uint64_t vectors, uint64_t first, uint64_t seed,
                    uint32_t mask, Tally* tallies) {
  const uint64_t step = ThreadsOfGrid();
  uint64_t at = ThreadOfGrid();
  uint64_t done = 0;
  uint64_t wrong = 0;
  for (; at + (kAtOnce - 1) * step < vectors; at += kAtOnce * step) {
    uint4 got[kAtOnce];
#pragma unroll
    for (unsigned i = 0; i < kAtOnce; ++i) {
      got[i] = Load(memory + at + i * step);
    }
#pragma unroll
    for (unsigned i = 0; i < kAtOnce; ++i) {
      wrong += Differences(got[i], Expected(first + at + i * step, seed, mask));
    }
    done += kAtOnce;
  }
  for (; at < vectors; at += step) {
    wrong += Differences(Load(memory + at), Expected(first + at, seed, mask));
    ++done;
  }
  Report(tallies, done, wrong);
}

// The floor that a scrub is held against: reads every vector and does nothing else. What it makes
// of them goes into the report so that no load can be left out.
extern "C" __global__ void __launch_bounds__(kThreads)
    ringfence_read(const uint4* memory, uint64_t vectors, Tally* tallies) {
  const uint64_t step = ThreadsOfGrid();
  uint64_t at = ThreadOfGrid();
  uint64_t done = 0;
  uint32_t all = 0;
  for (; at + (kAtOnce - 1) * step < vectors; at += kAtOnce * step) {
    uint4 got[kAtOnce];
#pragma unroll
    for (unsigned i = 0; i < kAtOnce; ++i) {
      got[i] = Load(memory + at + i * step);
    }
#pragma unroll
    for (unsigned i = 0; i < kAtOnce; ++i) {
      all |= got[i].x | got[i].y | got[i].z | got[i].w;
    }
    done += kAtOnce;
  }
  for (; at < vectors; at += step) {
    const uint4 got = Load(memory + at);
    all |= got.x | got.y | got.z | got.w;
    ++done;
  }
  Report(tallies, done, NonZeroBytes(all));
}

// One block fills a multiprocessor: its dynamic shared memory leaves no room for a second one, and
// 256 threads at 255 registers are the whole register file. Counts what shared memory held, then
// writes a pattern and zeros and reads both back, from shared memory and from registers.
//
// A register cannot be read before it is written. What can be done: each thread holds
// kHeldRegisters words across a barrier. Loads are volatile, so the first ones lie before the
// barrier and those that they are compared with behind it, and no register can serve twice; the
// starter asks the driver whether all of it really is in registers.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    ringfence_on_chip(uint32_t shared_words, uint32_t seed, OnChipTally* tallies) {
  extern __shared__ uint32_t memory[];
  volatile uint32_t* cells = memory;
  const uint32_t me = threadIdx.x;
  const uint32_t other = (me + kThreads / 2) % kThreads;  // reads what another warp wrote
  const uint32_t lane = me % kWarp;
  uint64_t cleared = 0;
  uint64_t residue = 0;
  uint64_t wrong = 0;
  for (uint32_t at = me; at < shared_words; at += kThreads) {
    residue += NonZeroBytes(cells[at]);
  }
#pragma unroll 1
  for (unsigned round = 0; round < 2; ++round) {
    const uint32_t mask = round == 0 ? 0xffffffffU : 0U;
    __syncthreads();
    for (uint32_t at = me; at < shared_words; at += kThreads) {
      cells[at] = CellPattern(at, seed) & mask;
    }
    __syncthreads();
    for (uint32_t at = other; at < shared_words; at += kThreads) {
      wrong += NonZeroBytes(cells[at] ^ (CellPattern(at, seed) & mask));
      cleared += mask == 0 ? sizeof(uint32_t) : 0;
    }
    uint32_t held[kHeldRegisters];
#pragma unroll
    for (unsigned i = 0; i < kHeldRegisters; ++i) {
      held[i] = cells[i * kWarp + lane];
    }
    __syncthreads();
    uint32_t differences = 0;
#pragma unroll
    for (unsigned i = 0; i < kHeldRegisters; ++i) {
      differences |= held[i] ^ cells[i * kWarp + lane];
    }
    wrong += NonZeroBytes(differences);
  }
  cleared = WarpSum(cleared);
  residue = WarpSum(residue);
  wrong = WarpSum(wrong);
  if (lane == 0) {
    uint32_t multiprocessor = 0;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    tallies[ThreadOfGrid() / kWarp] = {multiprocessor, 1, cleared, residue, wrong};
  }
}
