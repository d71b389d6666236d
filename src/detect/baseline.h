#pragma once

// The baseline of one series: fed sample by sample, it says how unusual each one is, and when to
// raise an alarm and why. It knows nothing of what the numbers mean; the same settings serve load,
// memory, temperature, counts and prices.
//
// Six things are watched, upwards and downwards: the value; the least (most) of the last 5 and of
// the last 20, that is a level which is held; the step from one level to the next; how restless the
// values are; and how far they are from what is usual at this hour. For each of them a Tail
// knows how far it goes as a rule, whatever its distribution, and how rarely further. One alarm is
// raised for one episode.

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/time.h"
#include "detect/season.h"
#include "detect/tail.h"

namespace ringfence::detect {

enum class Sign : std::uint8_t {
  kHigh,
  kLow,
  kHeldHigh,
  kHeldLow,
  kLongHigh,
  kLongLow,
  kStepUp,
  kStepDown,
  kRestless,
  kStill,
  kHighForHour,
  kLowForHour,
};
inline constexpr std::size_t kSigns = 12;

inline constexpr unsigned kHeldSamples = 5;
inline constexpr unsigned kLongSamples = 20;
inline constexpr unsigned kLearningSamples = 96;  // no alarm before
inline constexpr float kAlarmScore = 0.5F;

struct Verdict {
  float score = 0;  // 0 to 1, see docs/anomaly.md; from kAlarmScore on it is alarming
  bool alarm = false;
  bool episode = false;   // belongs to an alarm that was raised already
  bool learning = false;  // too little history for any alarm
  bool peers = false;     // judged by the history of its peers
  Sign sign = Sign::kHigh;
  float rarity = 0;    // log10 of the samples among which one such is expected
  double value = 0;    // the sample
  double measure = 0;  // what the sign looks at: a level held, a step, ...
  double bound = 0;    // how far it goes as a rule
  double usual = 0;    // at this hour
  unsigned days = 0;   // of history at this hour; 0: `usual` says nothing
  unsigned weeks = 0;  // of history at this hour of the week
  std::int64_t time_s = 0;
};

// In words with numbers; empty for what is not worth any.
std::string Explain(const Verdict& verdict);

// Not safe for several threads. Everything is in the object: copying it copies what was learned.
class Baseline {
 public:
  Baseline() = default;
  // A series that begins: judged at once, by what was learned of its peers, until it has a history
  // of its own. Without a peer that is past learning, the same as Baseline().
  static Baseline FromPeers(std::span<const Baseline* const> peers);

  // `value` must be finite. A time that is not after the one before is taken for that one, and
  // nothing is learned of the hour; after a gap of many samples, runs begin anew.
  Verdict Update(std::int64_t time_s, double value);

  std::uint32_t samples() const { return samples_; }

 private:
  using Measures = std::array<float, kSigns>;
  Measures Measure(float value, const Season::Usual& usual);
  float Reach(Sign sign) const;  // the rarity of an alarm
  void Rarest(const Measures& measures, Verdict& verdict) const;
  void Decide(Verdict& verdict);
  void Take(std::int64_t time_s, float level, bool forward);
  void Feed(const Measures& measures, std::size_t from, std::size_t to, BlockClock& clock);
  float Range(std::size_t sign, float span) const;
  const BlockClock& ClockOf(std::size_t sign) const;
  bool SeasonKnown(const Season::Usual& usual) const { return usual.days >= 2; }

  std::array<Tail, kSigns> tails_ = {};
  Season season_;
  std::array<float, kLongSamples> recent_ = {};  // minus origin_
  double origin_ = 0;                            // the first value: small numbers keep their digits
  std::int64_t time_s_ = 0;
  BlockClock clock_;       // of what needs only values
  BlockClock hour_clock_;  // of what needs to know the hour
  std::uint32_t samples_ = 0;
  float gap_s_ = 0;          // between samples, as a rule
  float restless_ = 0;       // mean step between samples
  float stray_ = 0;          // mean distance from what is usual at the hour
  float off_[2] = {};        // the last two such distances
  float peak_rarity_ = 0;    // of the episode
  std::uint8_t at_ = 0;      // in recent_: where the next goes
  std::uint8_t filled_ = 0;  // of recent_
  std::uint8_t calm_ = 0;    // samples since the episode was last seen
  std::uint8_t age_ = 0;     // samples since the alarm, up to a little more than a window
  bool episode_ = false;
  bool peers_ = false;
};
static_assert(sizeof(Baseline) <= 896, "docs/anomaly.md states it");

}  // namespace ringfence::detect
