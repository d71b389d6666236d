#pragma once

// Correlations over matches: counts, sums and sequences of what rules found, by group, in time.
//
// What can only become true as more comes in (counts, sums and sequences with gt or gte) is
// reported at the event that makes it so, over the time span before that event, and starts anew
// after it. Everything else (lt, lte, eq, neq, averages, percentiles) is judged when a window that
// began with a group's first event is over; a window that is not over at the end is not judged.
//
// Memory is bounded: groups and entries beyond the limits are dropped and counted. One thread's.

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "sigma/ruleset.h"

namespace ringfence::sigma {

struct CorrelatorLimits {
  std::size_t groups_max = 100'000;  // of one correlation
  std::size_t entries_max = 10'000;  // of one group
};

inline constexpr std::size_t kMatchMembersMax = 16;

struct CorrelationMatch {
  std::size_t correlation = 0;  // index into the set's
  Timestamp time;               // of the event that completed it, or the window's end
  std::uint64_t event = 0;      // the caller's number of the last event in it
  std::uint64_t events = 0;     // how many took part
  double value = 0;             // what was compared
  std::vector<std::pair<std::string, std::string>> group;
  std::vector<std::uint64_t> members = {};  // the last kMatchMembersMax events that took part
};

class Correlator {
 public:
  // `set` must outlive it.
  explicit Correlator(const RuleSet& set, CorrelatorLimits limits = {});

  // Fields that it will ask for.
  std::vector<std::string> Fields() const;

  using Lookup = std::function<std::vector<std::string>(std::string_view field)>;
  // One event: the rules that it matched, and its values. Times may go back by a time span.
  void Add(Timestamp time, std::uint64_t event, const std::vector<std::uint32_t>& rules,
           const Lookup& lookup, std::vector<CorrelationMatch>& out);
  // Judges the windows that are over at `time`; Add does it too.
  void Advance(Timestamp time, std::vector<CorrelationMatch>& out);

  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Entry {
    Timestamp time;
    std::uint64_t event = 0;
    std::uint32_t part = 0;
    std::string value;
    double number = 0;
  };
  struct Group {
    std::deque<Entry> entries;  // by time
    std::vector<std::pair<std::string, std::string>> names;
    Timestamp opened;
  };
  struct State {
    std::unordered_map<std::string, Group> groups;
    std::multimap<Timestamp, std::string> closing;  // windows by their end
    bool rising = true;
  };

  void Feed(std::size_t correlation, std::uint32_t part, Timestamp time, std::uint64_t event,
            const Lookup& lookup, std::vector<CorrelationMatch>& out);
  void Judge(std::size_t correlation, const std::string& key, Timestamp time, const Lookup& lookup,
             std::vector<CorrelationMatch>& out);
  bool MakeRoom(State& state, const Correlation& rule, Timestamp time);
  double ValueOf(const ReadyCorrelation& correlation, const Group& group) const;
  void PassOn(const CorrelationMatch& match, const Lookup& lookup,
              std::vector<CorrelationMatch>& out);

  const RuleSet& set_;
  CorrelatorLimits limits_;
  std::vector<State> states_;
  // For each rule and each correlation: the correlations that it takes part in, and as which part.
  std::vector<std::vector<std::pair<std::size_t, std::uint32_t>>> of_rule_;
  std::vector<std::vector<std::pair<std::size_t, std::uint32_t>>> of_correlation_;
  std::uint64_t dropped_ = 0;
};

}  // namespace ringfence::sigma
