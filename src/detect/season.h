#pragma once

// What is usual at this hour: of the day at first, of the week once enough weeks have been seen.
// Values beyond the usual spread are cut before they are learned, so that a bad night does not
// become the rule.

#include <array>
#include <cstdint>
#include <span>

#include "detect/short_float.h"

namespace ringfence::detect {

class Season {
 public:
  struct Usual {
    float level = 0;
    unsigned days = 0;   // days with this hour of the day
    unsigned weeks = 0;  // weeks with this hour of the week; 0: it is not used yet
  };
  Usual At(std::int64_t time_s) const;
  // In order of time. `spread` is how far values stray from the usual, on average.
  void Learn(std::int64_t time_s, float value, float spread);

  // For a series without history: at each hour of the day the median of its peers.
  struct Peer {
    const Season* season;
    float shift;  // to add to its numbers
  };
  void LearnFrom(std::span<const Peer> peers);

 private:
  struct Blend {
    float level;
    bool known;
  };
  Blend Cell(int weekday, int hour) const;
  void Commit();

  std::array<float, 24> hour_ = {};
  std::array<std::uint8_t, 24> days_ = {};
  std::array<ShortFloat, 84> week_ = {};  // how two hours of the week differ from those of the day
  std::array<std::uint8_t, 7> weeks_ = {};
  std::uint8_t open_ = 0;    // the hour that runs
  std::int32_t day_ = -1;    // its day
  float sum_ = 0;            // how far its values are from the usual level, cut
  std::uint32_t count_ = 0;  // how many
};

}  // namespace ringfence::detect
