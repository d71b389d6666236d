#include "detect/nab.h"

#include <algorithm>
#include <cmath>

#include "detect/series.h"

namespace ringfence::detect {
namespace {

constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

double ScaledSigmoid(double position) {
  return position > 3.0 ? -1.0 : 2.0 / (1.0 + std::exp(5.0 * position)) - 1.0;
}

// One row: its score by the detector, and what an alarm there is worth.
struct Point {
  float score;
  double worth;
  std::size_t window;  // in the corpus; kNowhere: outside
};

void AddPoints(const NabSeries& series, const NabProfile& profile, std::size_t first_window,
               std::vector<Point>& points) {
  const std::size_t probation = NabProbation(series.scores.size());
  std::size_t next = 0;
  const NabWindow* before = nullptr;
  for (std::size_t row = 0; row < series.scores.size(); ++row) {
    Point point{series.scores[row], 0, kNowhere};
    const NabWindow* inside = next < series.windows.size() && row >= series.windows[next].first
                                  ? &series.windows[next]
                                  : nullptr;
    if (inside != nullptr) {
      const auto width = static_cast<double>(inside->last - inside->first + 1);
      const double position = -static_cast<double>(inside->last - row + 1) / width;
      point.worth = ScaledSigmoid(position) / ScaledSigmoid(-1.0) * profile.true_positive;
      point.window = first_window + next;
    } else if (before == nullptr) {
      point.worth = -profile.false_positive;
    } else {
      const auto width = static_cast<double>(before->last - before->first);
      const auto past = static_cast<double>(row - before->last);
      point.worth = ScaledSigmoid(width > 0 ? past / width : 4.0) * profile.false_positive;
    }
    if (row >= probation) {
      points.push_back(point);
    }
    if (inside != nullptr && row == inside->last) {
      before = inside;
      ++next;
    }
  }
}

}  // namespace

std::size_t NabProbation(std::size_t rows) {
  return static_cast<std::size_t>(
      std::min(std::floor(0.15 * static_cast<double>(rows)), 0.15 * 5000));
}

NabScore ScoreNab(const std::vector<NabSeries>& corpus, const NabProfile& profile,
                  double fixed_threshold) {
  std::vector<Point> points;
  std::size_t windows = 0;
  for (const NabSeries& series : corpus) {
    AddPoints(series, profile, windows, points);
    windows += series.windows.size();
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.score > b.score; });
  const double nothing = -profile.false_negative * static_cast<double>(windows);
  const double everything = profile.true_positive * static_cast<double>(windows);
  const auto normal = [&](double raw) {
    return windows == 0 ? 0.0 : 100 * (raw - nothing) / (everything - nothing);
  };
  std::vector<double> parts(windows, -profile.false_negative);
  double sum = nothing;
  double best = nothing;
  double fixed = nothing;
  NabScore result{.score = 0, .threshold = 1.1, .fixed_score = 0};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& point = points[i];
    if (point.window == kNowhere) {
      sum += point.worth;
    } else if (point.worth > parts[point.window]) {
      sum += point.worth - parts[point.window];
      parts[point.window] = point.worth;
    }
    // A threshold takes all rows of the same score.
    if (i + 1 < points.size() && points[i + 1].score == point.score) {
      continue;
    }
    if (sum > best) {
      best = sum;
      result.threshold = static_cast<double>(point.score);
    }
    fixed = static_cast<double>(point.score) >= fixed_threshold ? sum : fixed;
  }
  result.score = normal(best);
  result.fixed_score = normal(fixed);
  return result;
}

std::vector<NabFileCount> CountNab(const std::vector<NabSeries>& corpus, double threshold) {
  std::vector<NabFileCount> counts;
  for (const NabSeries& series : corpus) {
    NabFileCount count{series.name, series.windows.size(), 0, 0};
    std::vector<bool> found(series.windows.size());
    for (std::size_t row = NabProbation(series.scores.size()); row < series.scores.size(); ++row) {
      if (static_cast<double>(series.scores[row]) < threshold) {
        continue;
      }
      const auto window =
          std::find_if(series.windows.begin(), series.windows.end(),
                       [&](const NabWindow& w) { return row >= w.first && row <= w.last; });
      if (window == series.windows.end()) {
        ++count.false_alarms;
      } else {
        found[static_cast<std::size_t>(window - series.windows.begin())] = true;
      }
    }
    count.found = static_cast<std::size_t>(std::count(found.begin(), found.end(), true));
    counts.push_back(std::move(count));
  }
  return counts;
}

Result<std::vector<NabProfile>> ParseNabProfiles(const Json& json) {
  const Error bad{Code::kInvalidArgument, "these are not the benchmark's profiles",
                  "profiles.json of NAB has an object with a CostMatrix for each profile"};
  if (!json.is_object()) {
    return bad;
  }
  std::vector<NabProfile> profiles;
  for (const auto& [name, value] : json.get_object()) {
    const Json* matrix = value.is_object() ? value.get_object().if_contains("CostMatrix") : nullptr;
    if (matrix == nullptr || !matrix->is_object()) {
      return bad;
    }
    NabProfile profile;
    profile.name = std::string(name);
    for (const auto& [key, into] : {std::pair{"tpWeight", &profile.true_positive},
                                    std::pair{"fnWeight", &profile.false_negative},
                                    std::pair{"fpWeight", &profile.false_positive}}) {
      const Json* weight = matrix->get_object().if_contains(key);
      if (weight == nullptr || !weight->is_number()) {
        return bad;
      }
      *into = weight->is_double() ? weight->get_double()
                                  : static_cast<double>(weight->to_number<std::int64_t>());
    }
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

Result<std::vector<NabLabels>> ParseNabWindows(const Json& json) {
  if (!json.is_object()) {
    return Error{Code::kInvalidArgument, "these are not the benchmark's windows",
                 "an object: for each file a list of [begin, end]"};
  }
  std::vector<NabLabels> all;
  for (const auto& [name, value] : json.get_object()) {
    NabLabels labels;
    labels.file = std::string(name);
    const Error bad{Code::kInvalidArgument,
                    labels.file + ": its windows are not [begin, end] pairs",
                    "times are written as 2014-04-10 07:15:00.000000", labels.file};
    if (!value.is_array()) {
      return bad;
    }
    for (const Json& window : value.get_array()) {
      if (!window.is_array() || window.get_array().size() != 2 ||
          !window.get_array()[0].is_string() || !window.get_array()[1].is_string()) {
        return bad;
      }
      RINGFENCE_ASSIGN(const auto first,
                       ParseSeriesTime(std::string_view(window.get_array()[0].get_string())));
      RINGFENCE_ASSIGN(const auto last,
                       ParseSeriesTime(std::string_view(window.get_array()[1].get_string())));
      if (last < first || (!labels.windows.empty() && first <= labels.windows.back().second)) {
        return Error{Code::kInvalidArgument, labels.file + ": its windows are not in order",
                     "the end comes after the begin, and windows do not overlap", labels.file};
      }
      labels.windows.emplace_back(first, last);
    }
    all.push_back(std::move(labels));
  }
  return all;
}

}  // namespace ringfence::detect
