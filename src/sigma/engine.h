#pragma once

// Rules, matcher and correlations together: events in, findings out. One thread's.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sigma/correlate.h"
#include "sigma/matcher.h"
#include "sigma/ruleset.h"

namespace ringfence::sigma {

struct EngineOptions {
  std::vector<std::string> time_fields = {};  // empty: DefaultTimeFields()
  bool always_time = false;                   // find each event's time, not only for correlations
  CorrelatorLimits limits = {};
};

struct Finding {
  const Rule* rule = nullptr;
  std::size_t index = 0;                          // of the set's rules, or of its correlations
  const CorrelationMatch* correlation = nullptr;  // null: a single event
  std::uint64_t event = 0;                        // the caller's number
  std::optional<Timestamp> time;
};

struct EngineCounts {
  std::uint64_t events = 0;
  std::uint64_t malformed = 0;
  std::uint64_t findings = 0;
  std::uint64_t without_time = 0;  // only counted where times are looked for
};

class Engine {
 public:
  explicit Engine(RuleSet set, EngineOptions options = {});
  ~Engine();

  using Report = std::function<void(const Finding&)>;
  // One event. An error says why it is not one; it is counted, and the next can come. An event
  // without a time takes that of the one before.
  Status Feed(std::uint64_t number, std::string_view json, bool padded, const Report& report);

  const RuleSet& set() const { return *set_; }
  const Matcher& matcher() const { return *matcher_; }
  const EngineCounts& counts() const { return counts_; }
  std::uint64_t dropped() const { return correlator_.dropped(); }

 private:
  std::optional<Timestamp> TimeOf() const;

  std::unique_ptr<const RuleSet> set_;
  EngineOptions options_;
  Correlator correlator_;
  std::unique_ptr<const Matcher> matcher_;
  std::unique_ptr<Matcher::Session> session_;
  EngineCounts counts_;
  Timestamp last_time_{};
  std::vector<CorrelationMatch> correlated_;
};

}  // namespace ringfence::sigma
