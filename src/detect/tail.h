#pragma once

// How far a number goes, as a rule: the peaks of the last dozen blocks of samples, and from them
// how rarely a higher one is to be expected. Memory is fixed; what is old falls out; one block that
// went out of bounds does not change what counts as bounds, two do.

#include <array>
#include <cstdint>
#include <span>

#include "detect/short_float.h"

namespace ringfence::detect {

inline constexpr std::size_t kBlocks = 12;
inline constexpr unsigned kBlockSamplesMax = 256;  // so about 3,000 samples are remembered

// The blocks of several tails that are fed together. A block begins with 4 samples; whenever a
// dozen are full, neighbours become one and blocks are twice as long.
struct BlockClock {
  enum class Tick : std::uint8_t { kInside, kBlockEnds, kBlocksMerge };

  std::uint16_t block_samples = 4;
  std::uint16_t inside = 0;
  std::uint16_t seen = 0;  // samples, up to kSeenMax
  std::uint8_t blocks = 0;
  std::uint8_t next = 0;  // the slot that the block which runs now will take

  static constexpr std::uint16_t kSeenMax = 500;
  // Counts one sample that every tail has been given. kBlockEnds and kBlocksMerge are to be passed
  // on to each of them.
  Tick Count();
};

class Tail {
 public:
  // How rare `value` is: log10 of the number of samples among which one such peak is expected.
  // 0 for one that is nothing special. `range` is what counts as a large step for this number.
  float Rarity(float value, float range, const BlockClock& clock) const;

  void Add(float value, const BlockClock& clock);
  void OnTick(BlockClock::Tick tick, const BlockClock& clock);

  float bound() const { return bound_.get(); }  // three of four blocks stay below
  float usual() const { return usual_; }        // the mean, outliers cut off
  bool Ready(const BlockClock& clock) const { return clock.blocks >= kBlocks / 2; }

  // The tail of a series that has no history yet: the spread of what its peers' blocks held.
  // `clock` is the new series' own, with kBlocks blocks.
  struct Peer {
    const Tail* tail;
    const BlockClock* clock;
    float shift;  // to add to its numbers: peers count from origins of their own
  };
  void LearnFrom(std::span<const Peer> peers, const BlockClock& clock);

 private:
  void Judge(const BlockClock& clock);

  std::array<ShortFloat, kBlocks> peaks_ = {};
  ShortFloat running_{kNothing};  // the peak of the block that runs
  ShortFloat bound_;
  ShortFloat excess_;  // how far the blocks above the bound go, on average
  float usual_ = 0;

  static constexpr float kNothing = -3e38F;
};

}  // namespace ringfence::detect
