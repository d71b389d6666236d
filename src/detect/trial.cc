#include "detect/trial.h"

#include <algorithm>
#include <random>

#include "detect/baseline.h"

namespace ringfence::detect {
namespace {

// Rows at which the baseline raised an alarm.
std::vector<std::size_t> AlarmsOf(const std::vector<Sample>& samples) {
  Baseline baseline;
  std::vector<std::size_t> alarms;
  for (std::size_t row = 0; row < samples.size(); ++row) {
    if (baseline.Update(samples[row].time_s, samples[row].value).alarm) {
      alarms.push_back(row);
    }
  }
  return alarms;
}

// The standard's distributions differ between libraries: this does not.
double Uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11U) / static_cast<double>(std::uint64_t{1} << 53U);
}

enum class Outcome { kNoRoom, kMissed, kFound };
Outcome TryAttack(const Series& series, const Attack& attack, std::mt19937_64& random) {
  const std::vector<Sample>& samples = series.samples;
  const std::int64_t latest = samples.empty() ? 0 : samples.back().time_s - attack.lasts_s;
  std::size_t room = 0;  // rows where it may begin
  while (kLearningSamples + room < samples.size() &&
         samples[kLearningSamples + room].time_s <= latest) {
    ++room;
  }
  if (room == 0) {
    return Outcome::kNoRoom;
  }
  const std::size_t begin = kLearningSamples + static_cast<std::size_t>(random() % room);
  const std::int64_t from = samples[begin].time_s;
  // Half of them hold one level, as a capped program does, half of them waver.
  const bool steady = random() % 2 == 0;
  const double level = attack.least + Uniform(random) * (attack.most - attack.least);
  std::vector<Sample> attacked = samples;
  for (std::size_t row = begin;
       row < attacked.size() && attacked[row].time_s < from + attack.lasts_s; ++row) {
    attacked[row].value =
        steady ? level : attack.least + Uniform(random) * (attack.most - attack.least);
  }
  const std::vector<std::size_t> alarms = AlarmsOf(attacked);
  const bool found = std::any_of(alarms.begin(), alarms.end(), [&](std::size_t row) {
    return row >= begin && attacked[row].time_s <= from + attack.found_within_s;
  });
  return found ? Outcome::kFound : Outcome::kMissed;
}

}  // namespace

std::vector<Attack> UsualAttacks() {
  return {{.name = "full load for an hour, found within 5 minutes",
           .least = 93,
           .most = 97,
           .lasts_s = 3600,
           .found_within_s = 300},
          {.name = "40 to 60 % for 3 hours, found within them",
           .least = 40,
           .most = 60,
           .lasts_s = 3 * 3600,
           .found_within_s = 3 * 3600}};
}

TrialReport Try(const std::vector<const Series*>& series, const TrialOptions& options) {
  TrialReport report;
  std::mt19937_64 random(options.seed);
  for (const Attack& attack : options.attacks) {
    report.attacks.push_back({attack.name, 0, 0});
  }
  for (const Series* one : series) {
    ++report.series;
    const std::size_t alarms = AlarmsOf(one->samples).size();
    report.false_alarms += alarms;
    report.worst_series_alarms = std::max(report.worst_series_alarms, alarms);
    if (!one->samples.empty()) {
      report.days +=
          static_cast<double>(one->samples.back().time_s - one->samples.front().time_s) / 86400;
    }
    for (std::size_t i = 0; i < options.attacks.size(); ++i) {
      for (unsigned n = 0; n < options.attacks_per_series; ++n) {
        const Outcome outcome = TryAttack(*one, options.attacks[i], random);
        report.attacks[i].tried += outcome == Outcome::kNoRoom ? 0 : 1;
        report.attacks[i].found += outcome == Outcome::kFound ? 1 : 0;
      }
    }
  }
  return report;
}

}  // namespace ringfence::detect
