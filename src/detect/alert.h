#pragma once

// An alert: what a rule found, about whom, with the events that made it, until somebody has seen
// to it. Matches of the same rule about the same lease (or else tenant, node, principal) within
// kAlertWindow of each other are one alert that counts up.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "detect/live_event.h"
#include "sigma/correlate.h"
#include "sigma/rule.h"

namespace ringfence::detect {

inline constexpr Milliseconds kAlertWindow = std::chrono::hours(1);
inline constexpr std::size_t kAlertEventsMax = 24;  // kept with it: the first ones and the last
inline constexpr std::size_t kAlertJsonBytesMax = std::size_t{4} << 20U;

enum class AlertStatus : std::uint8_t { kOpen, kAcked, kSilenced };
std::string_view Name(AlertStatus status);
Result<AlertStatus> ParseAlertStatus(std::string_view text);

// What a rule found, with what is known of the event that completed it.
struct Match {
  std::string rule;  // its key
  std::string title;
  std::string description;
  std::vector<std::string> false_positives;
  std::vector<std::string> tags;
  Severity severity = Severity::kMedium;
  std::vector<std::pair<std::string, std::string>> group;  // of a correlation
  std::uint64_t events = 1;                                // how many took part
  std::vector<std::int64_t> members;                       // their numbers, the last ones
  Timestamp time;
  std::string tenant;
  std::string lease;
  std::string node;
  std::string principal;
  std::string address;
  std::vector<std::string> gpus;

  // The rule and whom it is about.
  std::string What() const;
};
Match MatchOf(const sigma::Rule& rule, const sigma::CorrelationMatch* correlation);

struct Alert {
  std::string id;
  Match match;  // of the first; time, severity and events go on
  AlertStatus status = AlertStatus::kOpen;
  std::string owner;               // who acknowledged or silenced it
  std::optional<Timestamp> until;  // of a silence
  std::string note;                // what the owner said
  std::uint64_t count = 0;         // matches
  std::uint64_t while_silenced = 0;
  Timestamp first;  // of the first match and of the last, by their events' time
  Timestamp last;
  Timestamp opened;   // by the server's clock
  Timestamp updated;  // the last match or change, by the server's clock
  std::vector<Json> events;

  // Whether a further match belongs to it.
  bool Takes(Timestamp now) const;
  void Add(const Match& more, std::vector<Json> with, Timestamp now);
};
JsonObject AlertToJson(const Alert& alert);
Result<Alert> AlertFromJson(const Json& json);

// What to do next, most urgent first, as commands where there are some.
std::vector<std::string> NextSteps(const Alert& alert);

}  // namespace ringfence::detect
