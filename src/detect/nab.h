#pragma once

// The score of the Numenta Anomaly Benchmark (NAB): in each labelled window the first alarm counts,
// the earlier the more; an alarm outside costs, less so right after a window; a missed window
// costs. 0 is a detector that says nothing, 100 one that finds every window at its begin.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace ringfence::detect {

struct NabProfile {
  std::string name = "standard";
  double true_positive = 1.0;
  double false_negative = 1.0;
  double false_positive = 0.11;
};

struct NabWindow {
  std::size_t first = 0;  // rows, both included
  std::size_t last = 0;
};

struct NabSeries {
  std::string name;
  std::vector<float> scores;       // one for each row
  std::vector<NabWindow> windows;  // in order, not overlapping
};

struct NabFileCount {
  std::string name;
  std::size_t windows = 0;
  std::size_t found = 0;
  std::size_t false_alarms = 0;
};

struct NabScore {
  double score = 0;        // with the threshold that serves the whole corpus best
  double threshold = 0;    // that threshold
  double fixed_score = 0;  // with the threshold given
};

// The rows at the begin of a series that do not count: 15 %, of at most 5,000 rows.
std::size_t NabProbation(std::size_t rows);

NabScore ScoreNab(const std::vector<NabSeries>& corpus, const NabProfile& profile,
                  double fixed_threshold);
// What the fixed threshold finds in each file.
std::vector<NabFileCount> CountNab(const std::vector<NabSeries>& corpus, double threshold);

// The benchmark's profiles.json.
Result<std::vector<NabProfile>> ParseNabProfiles(const Json& json);
// The benchmark's windows: for each file a list of pairs of times (seconds since 1970).
struct NabLabels {
  std::string file;
  std::vector<std::pair<std::int64_t, std::int64_t>> windows;
};
Result<std::vector<NabLabels>> ParseNabWindows(const Json& json);

}  // namespace ringfence::detect
