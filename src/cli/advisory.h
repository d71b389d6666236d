#pragma once

// What the files of `ringfence advisory` share.

#include <limits>
#include <vector>

#include "assure/advisory_match.h"
#include "base/json.h"
#include "base/time.h"
#include "cli/command.h"

namespace ringfence::cli {

inline constexpr int kNeverFails = std::numeric_limits<int>::max();

struct Loaded {
  assure::BulletinSet set;
  Timestamp now{};
  Timestamp newest{};
  Milliseconds most{};  // the age from which on data is stale
  bool stale = false;
};

struct Counts {
  std::size_t by_verdict[4] = {};
  std::size_t Of(assure::Verdict verdict) const {
    return by_verdict[static_cast<std::size_t>(verdict)];
  }
};

std::string DateOf(Timestamp time);
Json DataJson(const Loaded& loaded);
Json ScoreJson(int tenths);
Json CountsJson(const Counts& counts);
Counts CountOf(const std::vector<assure::FlawVerdict>& flaws);
void WarnOfData(Console& console, const Loaded& loaded);
bool Trips(const std::vector<assure::FlawVerdict>& flaws, int rank);
bool DataTrips(const Loaded& loaded, int rank);

Result<Loaded> LoadFor(Invocation& invocation);
Result<int> FailRank(const Parsed& parsed);  // by --fail-on; without it kNeverFails

Result<int> AdvisoryExposure(Invocation& invocation);
Result<int> MatchInventory(Invocation& invocation, const Loaded& loaded, int rank);

}  // namespace ringfence::cli
