#pragma once

// Detection, live. Events are born from what is durable already: each audit entry becomes events,
// by their numbers, and the place up to which that was done is stored with them. Rules then see
// each event once, and what they find becomes alerts in the transaction that says up to where they
// have seen. So a server that dies at any moment goes on where it was: no event is lost, and none
// makes a second alert. What is not durable elsewhere (failed sign-ins) waits in a bounded queue;
// what does not fit is counted and told.
//
// All of it happens on a thread of its own: no request waits for it. Of several servers on one
// database, the one whose turn it is to publish the log evaluates; each stores what it saw itself.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "detect/alert.h"
#include "detect/live_event.h"
#include "detect/live_rules.h"
#include "server/live_baselines.h"
#include "server/live_intel.h"
#include "store/alert_records.h"
#include "store/event_records.h"

namespace ringfence::server {

class Core;

// A caller that was not let in.
struct FailedSignIn {
  std::string address;
  std::string principal;  // empty: not known
  std::string token;      // its id, where it is one of ours
  std::string why;        // "token_revoked", "token_expired", "token_unknown", ...
};

// As it is stored, under the number `number`.
store::EventRow RowOf(detect::LiveEvent& event, std::int64_t number);

// Any thread.
class Detector {
 public:
  struct Options {
    std::string mapping;       // file
    std::string observables;   // file: how events show what indicators name
    detect::RulePlaces rules;  // where they are
    Milliseconds keep = std::chrono::hours(24 * 30);
    std::int64_t bytes_max = std::int64_t{256} << 20U;
    Milliseconds telemetry_every = std::chrono::seconds(60);  // that one record of readings sums up
    bool tells = false;                                       // alerts are to be told to a webhook
  };
  // `core` must outlive it. kInvalidArgument for a mapping that is none; bad rules are a problem
  // that health() says, and the others are evaluated.
  static Result<std::unique_ptr<Detector>> Start(Core& core, Options options);
  ~Detector();
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;

  // Evaluates what was acknowledged, and ends the thread.
  void Stop();
  // Entries were committed, here or by another server.
  void Wake();
  // Never waits.
  void Saw(const FailedSignIn& failed);

  const detect::EventMapping& mapping() const { return mapping_; }
  Milliseconds telemetry_every() const { return options_.telemetry_every; }

  struct Health {
    std::size_t rules = 0;
    std::int64_t indicators = 0;
    std::size_t series = 0;         // that have a baseline
    std::int64_t evaluated = 0;     // the next event that rules have to see
    std::uint64_t not_kept = 0;     // failed sign-ins that were only counted
    std::uint64_t not_related = 0;  // events that correlations had no room for
    std::vector<std::string> rule_problems;
    std::string stuck;  // why nothing moves; empty: it does
  };
  Health health() const;

 private:
  // What one address did in the minute that is under way.
  struct Tries {
    std::uint64_t kept = 0;
    std::uint64_t dropped = 0;
  };
  struct Found {
    detect::Match match;
    std::int64_t event = 0;
  };

  Detector(Core& core, Options options, detect::EventMapping mapping, detect::Mapping observables)
      : core_(core),
        options_(std::move(options)),
        mapping_(std::move(mapping)),
        intel_(core, std::move(observables)) {}
  void Loop(const std::stop_token& stop);
  Result<bool> Step(bool leads);
  Result<std::vector<detect::LiveEvent>> OfAudit(store::Detection& seen, bool& more) const;
  std::vector<detect::LiveEvent> OfSilence(store::Detection& seen) const;
  std::vector<detect::LiveEvent> TakeNotices();
  Status Keep(const store::Detection& before, const store::Detection& after,
              std::vector<detect::LiveEvent> events);
  void LoadRules();
  Status WarmUp(std::int64_t evaluated);
  Result<bool> Evaluate();
  Result<bool> Hunt();
  Status Raise(const std::vector<Found>& found, std::int64_t evaluated);
  Status RaiseInside(store::Connection& db, const std::vector<Found>& found) const;
  Status Tidy();
  void EndMinute(Timestamp now);
  detect::LiveEvent SignInEvent(const FailedSignIn& failed, Timestamp time) const;

  Core& core_;
  const Options options_;
  const detect::EventMapping mapping_;
  // The thread's alone.
  LiveIntel intel_;
  LiveBaselines baselines_;
  detect::LiveRules live_;
  std::string stamp_;           // of the rules that live_ was read from
  bool warm_ = false;           // the engine has seen what came before evaluated_
  std::int64_t evaluated_ = 0;  // as far as this server has evaluated
  std::int64_t persisted_ = 0;  // as far as the database knows
  std::optional<std::chrono::steady_clock::time_point> looked_;  // at the rules' files
  std::optional<std::chrono::steady_clock::time_point> tidied_;

  mutable std::mutex mutex_;  // of the members below
  std::vector<detect::LiveEvent> notices_;
  std::map<std::string, Tries> tries_;
  std::int64_t minute_ = 0;
  std::uint64_t kept_this_minute_ = 0;
  std::uint64_t unnamed_ = 0;  // dropped of addresses that found no room in tries_
  Health health_;
  bool pending_ = true;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: stops before what it uses goes
};

}  // namespace ringfence::server
