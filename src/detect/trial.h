#pragma once

// Tries baselines on real series: how often they cry wolf on what is as it was, and how many pasted
// attacks they find.

#include <cstdint>
#include <string>
#include <vector>

#include "detect/series.h"

namespace ringfence::detect {

struct Attack {
  std::string name;
  double least = 0;  // each sample is somewhere from `least` to `most`
  double most = 0;
  std::int64_t lasts_s = 0;
  std::int64_t found_within_s = 0;
};
// An hour at full load, and a miner that holds back.
std::vector<Attack> UsualAttacks();

struct TrialOptions {
  std::uint64_t seed = 1;
  unsigned attacks_per_series = 10;
  std::vector<Attack> attacks = UsualAttacks();
};

struct AttackCount {
  std::string name;
  std::size_t tried = 0;
  std::size_t found = 0;
};
struct TrialReport {
  std::size_t series = 0;
  double days = 0;
  std::size_t false_alarms = 0;
  std::size_t worst_series_alarms = 0;
  std::vector<AttackCount> attacks;
};

// One series alone with its own baseline. An attack begins anywhere after the learning time, and
// ends before the series does; series too short for that count for false alarms only.
TrialReport Try(const std::vector<const Series*>& series, const TrialOptions& options);

}  // namespace ringfence::detect
