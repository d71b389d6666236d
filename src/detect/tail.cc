#include "detect/tail.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ringfence::detect {
namespace {

// The tail beyond the bound falls off like (1 + x / (shape * scale))^-shape: nearly exponential,
// a little heavier, as the scale is only an estimate.
constexpr float kShape = 20.0F;
constexpr float kExcessShare = 0.35F;  // of the mean excess, in the scale
constexpr float kRangeShare = 0.1F;    // of the range: a prior, for peaks that are all the same
constexpr float kRarityMost = 99.0F;   // more says nothing more
constexpr float kBoundBlocks = 3.5F;   // one block in so many goes beyond the bound

// The blocks that count: from the dozen, the highest is left out. It may be the very thing that
// is hunted.
constexpr std::size_t Counted(std::size_t blocks) {
  return blocks >= kBlocks * 3 / 4 ? blocks - 1 : blocks;
}

}  // namespace

BlockClock::Tick BlockClock::Count() {
  seen = static_cast<std::uint16_t>(std::min<unsigned>(seen + 1U, kSeenMax));
  if (++inside < block_samples) {
    return Tick::kInside;
  }
  inside = 0;
  if (blocks == kBlocks) {
    next = static_cast<std::uint8_t>((next + 1U) % kBlocks);
    return Tick::kBlockEnds;
  }
  ++blocks;
  next = static_cast<std::uint8_t>(blocks % kBlocks);
  if (blocks < kBlocks || block_samples >= kBlockSamplesMax) {
    return Tick::kBlockEnds;
  }
  block_samples = static_cast<std::uint16_t>(block_samples * 2U);
  blocks = kBlocks / 2;
  next = blocks;
  return Tick::kBlocksMerge;
}

float Tail::Rarity(float value, float range, const BlockClock& clock) const {
  const float beyond = value - bound_.get();
  if (beyond <= 0 || !Ready(clock)) {
    return 0;
  }
  const float tiny = std::max(1e-9F * std::fabs(bound_.get()), 1e-30F);
  const float scale = kExcessShare * excess_.get() + kRangeShare * range + tiny;
  return std::min(kRarityMost, std::log10(kBoundBlocks * static_cast<float>(clock.block_samples)) +
                                   kShape * std::log10(1 + beyond / (kShape * scale)));
}

void Tail::Add(float value, const BlockClock& clock) {
  const float cut = Ready(clock) ? std::min(value, bound_.get()) : value;
  usual_ +=
      (cut - usual_) / static_cast<float>(std::min<int>(clock.seen + 1, BlockClock::kSeenMax));
  if (value > running_.get()) {
    running_ = ShortFloat(value);
  }
}

void Tail::OnTick(BlockClock::Tick tick, const BlockClock& clock) {
  if (tick == BlockClock::Tick::kBlocksMerge) {
    peaks_[kBlocks - 1] = running_;
    for (std::size_t i = 0; i < kBlocks / 2; ++i) {
      peaks_[i] = ShortFloat(std::max(peaks_[2 * i].get(), peaks_[2 * i + 1].get()));
    }
  } else {
    peaks_[(clock.next + kBlocks - 1U) % kBlocks] = running_;
  }
  running_ = ShortFloat(kNothing);
  Judge(clock);
}

void Tail::Judge(const BlockClock& clock) {
  std::array<float, kBlocks> sorted{};
  std::transform(peaks_.begin(), peaks_.begin() + clock.blocks, sorted.begin(),
                 [](ShortFloat peak) { return peak.get(); });
  std::sort(sorted.begin(), sorted.begin() + clock.blocks);
  const std::size_t counted = Counted(clock.blocks);
  const std::size_t at = counted * 3 / 4;
  bound_ = ShortFloat(sorted[at]);
  float sum = 0;
  for (std::size_t i = at + 1; i < counted; ++i) {
    sum += sorted[i] - sorted[at];
  }
  excess_ = ShortFloat(sum / static_cast<float>(std::max<std::size_t>(1, counted - at - 1)));
}

void Tail::LearnFrom(std::span<const Peer> peers, const BlockClock& clock) {
  std::vector<float> all;
  float usual = 0;
  for (const Peer& peer : peers) {
    for (std::size_t i = 0; i < peer.clock->blocks; ++i) {
      all.push_back(peer.tail->peaks_[i].get() + peer.shift);
    }
    usual += (peer.tail->usual_ + peer.shift) / static_cast<float>(peers.size());
  }
  if (all.empty()) {
    return;
  }
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < kBlocks; ++i) {  // evenly spaced, the highest included
    peaks_[i] = ShortFloat(all[(i + 1) * all.size() / kBlocks - (all.size() < kBlocks ? 0 : 1)]);
  }
  usual_ = usual;
  Judge(clock);
}

}  // namespace ringfence::detect
