#include "detect/baseline.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ringfence::detect {
namespace {

// An alarm is something expected less than once in 20,000 samples; early on, when the history is
// short and likely to be one-sided, in more.
constexpr float kReach = 4.3F;
constexpr float kReachPerHalving = 1.5F;         // added for each halving of the history below:
constexpr float kSettledSamples = 256.0F;        // for a level that is held
constexpr float kBriefSettledSamples = 1024.0F;  // for what may be over with the next sample
// An episode is over after so many samples below kCalmShare of an alarm. Within it, a leap to
// something rarer by so much is an alarm of its own.
constexpr unsigned kCalmSamples = 40;
constexpr float kCalmShare = 0.7F;
constexpr float kWorse = 1.5F;
constexpr float kInEpisode = 0.49F;  // the most that a sample of a known episode scores

constexpr float kRestlessRate = 0.05F;
constexpr float kStrayRate = 0.01F;
constexpr float kGapRate = 0.05F;
constexpr float kGapFactor = 20.0F;  // so many times the usual gap between samples: a hole

constexpr std::size_t kFirstByHour = static_cast<std::size_t>(Sign::kHighForHour);
constexpr std::size_t kHighSide = static_cast<std::size_t>(Sign::kHigh);
constexpr std::size_t kLowSide = static_cast<std::size_t>(Sign::kLow);

constexpr std::size_t Index(Sign sign) { return static_cast<std::size_t>(sign); }
// Numbers of one sign are kept as "how far", so that each has only an upper end.
constexpr float Side(std::size_t sign) { return sign % 2 == 0 ? 1.0F : -1.0F; }
constexpr bool IsLong(Sign sign) { return sign == Sign::kLongHigh || sign == Sign::kLongLow; }
constexpr bool IsHeld(Sign sign) {
  return IsLong(sign) || sign == Sign::kHeldHigh || sign == Sign::kHeldLow;
}
constexpr bool IsLevel(std::size_t sign) { return sign < Index(Sign::kStepUp); }

struct Window {
  float least = 3e38F;
  float most = -3e38F;
  float sum = 0;

  void Add(float value) {
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
  }
};

}  // namespace

const BlockClock& Baseline::ClockOf(std::size_t sign) const {
  return sign >= kFirstByHour ? hour_clock_ : clock_;
}

Baseline::Measures Baseline::Measure(float value, const Season::Usual& usual) {
  Measures measures{};
  Window whole;
  for (const float one : recent_) {
    whole.Add(one);
  }
  Window held;
  for (std::size_t i = 0, at = at_; i < kHeldSamples; ++i) {  // from the last one backwards
    at = at == 0 ? kLongSamples - 1 : at - 1;
    held.Add(recent_[at]);
  }
  const float level = held.sum / static_cast<float>(kHeldSamples);
  const float before = (whole.sum - held.sum) / static_cast<float>(kLongSamples - kHeldSamples);
  const float span = std::max(0.0F, tails_[kHighSide].bound() + tails_[kLowSide].bound());
  measures[Index(Sign::kHigh)] = value;
  measures[Index(Sign::kLow)] = -value;
  measures[Index(Sign::kHeldHigh)] = held.least;
  measures[Index(Sign::kHeldLow)] = -held.most;
  measures[Index(Sign::kLongHigh)] = whole.least;
  measures[Index(Sign::kLongLow)] = -whole.most;
  measures[Index(Sign::kStepUp)] = level - before;
  measures[Index(Sign::kStepDown)] = before - level;
  measures[Index(Sign::kRestless)] = restless_;
  // Stillness counts in proportions; what is within a thousandth of the span is as good as still.
  measures[Index(Sign::kStill)] = -std::log(restless_ + 1e-3F * span + 1e-30F);
  const float off = SeasonKnown(usual) ? value - usual.level : 0;
  const float smooth = (off + off_[0] + off_[1]) / 3;
  measures[Index(Sign::kHighForHour)] = smooth;
  measures[Index(Sign::kLowForHour)] = -smooth;
  off_[1] = off_[0];
  off_[0] = off;
  return measures;
}

float Baseline::Range(std::size_t sign, float span) const {
  const Tail& tail = tails_[sign];
  switch (static_cast<Sign>(sign)) {
    case Sign::kStill:
      return 2.0F;
    case Sign::kRestless:
      return std::max(tail.bound(), 0.1F * span);
    case Sign::kHeldHigh:
    case Sign::kHeldLow:
    case Sign::kLongHigh:
    case Sign::kLongLow:
      return std::max(2 * (tail.bound() - tail.usual()), 0.45F * span);
    case Sign::kHigh:
    case Sign::kLow:
    case Sign::kStepUp:
    case Sign::kStepDown:
    case Sign::kHighForHour:
    case Sign::kLowForHour:
      break;
  }
  return std::max(2 * (tail.bound() - tail.usual()), 0.3F * span);
}

float Baseline::Reach(Sign sign) const {
  const auto history = static_cast<float>(samples_);
  const float settled = IsHeld(sign) ? kSettledSamples : kBriefSettledSamples;
  return kReach +
         (history < settled && !peers_ ? kReachPerHalving * std::log2(settled / history) : 0.0F);
}

void Baseline::Rarest(const Measures& measures, Verdict& verdict) const {
  const float span = std::max(0.0F, tails_[kHighSide].bound() + tails_[kLowSide].bound());
  std::size_t rarest = 0;
  float most = 0;  // of what an alarm needs
  for (std::size_t sign = 0; sign < kSigns; ++sign) {
    if (measures[sign] <= tails_[sign].bound() ||
        (sign >= kFirstByHour && !SeasonKnown({.days = verdict.days}))) {
      continue;
    }
    const float rarity = tails_[sign].Rarity(measures[sign], Range(sign, span), ClockOf(sign));
    if (const float share = rarity / Reach(static_cast<Sign>(sign)); share > most) {
      most = share;
      verdict.rarity = rarity;
      rarest = sign;
    }
  }
  verdict.sign = static_cast<Sign>(rarest);
  const double shift = IsLevel(rarest) ? origin_ : 0;
  verdict.measure = static_cast<double>(Side(rarest) * measures[rarest]) + shift;
  verdict.bound = static_cast<double>(Side(rarest) * tails_[rarest].bound()) + shift;
}

void Baseline::Decide(Verdict& verdict) {
  verdict.peers = peers_;
  if (verdict.learning) {
    // What begins now is not news when the learning ends.
    episode_ = verdict.rarity >= Reach(verdict.sign) || (episode_ && ++calm_ <= kCalmSamples);
    calm_ = verdict.rarity >= Reach(verdict.sign) ? 0 : calm_;
    peak_rarity_ = std::max(peak_rarity_, verdict.rarity);
    return;
  }
  verdict.score = std::min(1.0F, verdict.rarity / (2 * Reach(verdict.sign)));
  if (episode_) {
    // While a window still fills with what raised the alarm, what it shows is that thing.
    age_ = static_cast<std::uint8_t>(std::min<unsigned>(age_ + 1U, kLongSamples + 1));
    const bool echo = age_ <= (IsLong(verdict.sign) ? kLongSamples : kHeldSamples);
    if (verdict.score >= kAlarmScore && verdict.rarity > peak_rarity_ + kWorse && !echo) {
      episode_ = false;
    } else if (verdict.score >= kCalmShare * kAlarmScore) {
      calm_ = 0;
    } else if (++calm_ > kCalmSamples) {
      episode_ = false;
    }
    // What grows sample by sample is one thing: only a leap is another.
    peak_rarity_ = std::max(peak_rarity_, verdict.rarity);
    if (episode_) {
      verdict.episode = verdict.score >= kAlarmScore;
      verdict.score = std::min(verdict.score, kInEpisode);
    }
  }
  if (!episode_ && verdict.score >= kAlarmScore) {
    verdict.alarm = true;
    episode_ = true;
    calm_ = 0;
    age_ = 0;
    peak_rarity_ = verdict.rarity;
  }
}

void Baseline::Feed(const Measures& measures, std::size_t from, std::size_t to, BlockClock& clock) {
  for (std::size_t sign = from; sign < to; ++sign) {
    tails_[sign].Add(measures[sign], clock);
  }
  const BlockClock::Tick tick = clock.Count();
  for (std::size_t sign = from; tick != BlockClock::Tick::kInside && sign < to; ++sign) {
    tails_[sign].OnTick(tick, clock);
  }
}

// Puts one sample into the window of the last ones.
void Baseline::Take(std::int64_t time_s, float level, bool forward) {
  if (samples_ > 0 && forward) {
    const auto gap = static_cast<float>(time_s - time_s_);
    if (gap_s_ > 0 && gap > kGapFactor * gap_s_) {
      filled_ = 0;
    } else {
      gap_s_ = gap_s_ > 0 ? gap_s_ + kGapRate * (gap - gap_s_) : gap;
    }
  }
  time_s_ = forward ? time_s : time_s_;
  if (filled_ > 0) {
    const float last = recent_[(at_ + kLongSamples - 1U) % kLongSamples];
    restless_ += kRestlessRate * (std::fabs(level - last) - restless_);
  }
  recent_[at_] = level;
  at_ = static_cast<std::uint8_t>((at_ + 1U) % kLongSamples);
  filled_ = static_cast<std::uint8_t>(std::min<unsigned>(filled_ + 1U, kLongSamples));
}

Verdict Baseline::Update(std::int64_t time_s, double value) {
  if (samples_ == 0 && !peers_) {
    origin_ = value;
  }
  const auto level = static_cast<float>(value - origin_);
  const bool forward = samples_ == 0 || time_s > time_s_;
  Take(time_s, level, forward);

  Verdict verdict;
  verdict.value = value;
  verdict.time_s = time_s_;
  const Season::Usual usual = season_.At(time_s_);
  verdict.usual = static_cast<double>(usual.level) + origin_;
  verdict.days = usual.days;
  verdict.weeks = usual.weeks;
  verdict.learning = samples_ < kLearningSamples && !peers_;
  if (filled_ == kLongSamples) {
    const Measures measures = Measure(level, usual);
    Rarest(measures, verdict);
    Decide(verdict);
    Feed(measures, 0, kFirstByHour, clock_);
    if (SeasonKnown(usual)) {
      stray_ += kStrayRate * (std::fabs(off_[0]) - stray_);
      Feed(measures, kFirstByHour, kSigns, hour_clock_);
    }
  }
  if (forward) {
    season_.Learn(time_s_, level, stray_);
  }
  samples_ += samples_ < UINT32_MAX ? 1 : 0;
  peers_ = peers_ && samples_ < static_cast<std::uint32_t>(kSettledSamples);
  return verdict;
}

Baseline Baseline::FromPeers(std::span<const Baseline* const> peers) {
  std::vector<const Baseline*> known;
  std::copy_if(peers.begin(), peers.end(), std::back_inserter(known), [](const Baseline* peer) {
    return peer->samples_ >= kLearningSamples && peer->clock_.blocks >= kBlocks / 2;
  });
  Baseline fresh;
  if (known.empty()) {
    return fresh;
  }
  fresh.peers_ = true;
  fresh.origin_ = known.front()->origin_;
  // As if a dozen of the peers' blocks had just gone by.
  fresh.clock_ = known.front()->clock_;
  fresh.clock_.blocks = kBlocks;
  fresh.clock_.next = 0;
  fresh.clock_.inside = 0;
  std::vector<Season::Peer> seasons;
  for (const Baseline* peer : known) {
    seasons.push_back({&peer->season_, static_cast<float>(peer->origin_ - fresh.origin_)});
    fresh.restless_ += peer->restless_ / static_cast<float>(known.size());
    fresh.stray_ += peer->stray_ / static_cast<float>(known.size());
  }
  fresh.season_.LearnFrom(seasons);
  for (std::size_t sign = 0; sign < kFirstByHour; ++sign) {
    std::vector<Tail::Peer> tails;
    for (const Baseline* peer : known) {
      const auto shift = static_cast<float>(peer->origin_ - fresh.origin_);
      tails.push_back({&peer->tails_[sign], &peer->clock_, IsLevel(sign) ? Side(sign) * shift : 0});
    }
    fresh.tails_[sign].LearnFrom(tails, fresh.clock_);
  }
  return fresh;
}

}  // namespace ringfence::detect
