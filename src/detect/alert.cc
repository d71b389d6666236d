#include "detect/alert.h"

#include <algorithm>
#include <array>

namespace ringfence::detect {
namespace {

constexpr std::size_t kFirstEvents = 8;  // of those that are kept
constexpr std::array<std::string_view, 3> kStatuses = {"open", "acked", "silenced"};

JsonArray ToArray(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

std::int64_t NumberOf(const Json& event) {
  const Json* const number = AtPath(event, "metadata.sequence");
  return number != nullptr && number->is_int64() ? number->get_int64() : -1;
}

Result<Timestamp> ReadTime(JsonReader& reader, std::string_view name) {
  RINGFENCE_ASSIGN(const std::string text, reader.String(name, 32));
  return ParseTime(text);
}

Result<std::uint64_t> ReadCount(JsonReader& reader, std::string_view name) {
  RINGFENCE_ASSIGN(const std::int64_t count, reader.Int(name, 0, std::int64_t{1} << 53U));
  return static_cast<std::uint64_t>(count);
}

Status ReadMatch(JsonReader& reader, Match& match) {
  RINGFENCE_ASSIGN(match.rule, reader.String("rule", 512));
  RINGFENCE_ASSIGN(match.title, reader.String("title", 1024));
  RINGFENCE_ASSIGN(match.description, reader.String("description", 64 * 1024));
  RINGFENCE_ASSIGN(match.false_positives, reader.Strings("false_positives", 256));
  RINGFENCE_ASSIGN(match.tags, reader.Strings("tags", 256));
  RINGFENCE_ASSIGN(const std::string severity, reader.String("severity", 16));
  match.severity = ParseSeverity(severity);
  RINGFENCE_ASSIGN(match.tenant, reader.String("tenant"));
  RINGFENCE_ASSIGN(match.lease, reader.String("lease"));
  RINGFENCE_ASSIGN(match.node, reader.String("node"));
  RINGFENCE_ASSIGN(match.principal, reader.String("principal"));
  RINGFENCE_ASSIGN(match.address, reader.String("address"));
  RINGFENCE_ASSIGN(match.gpus, reader.Strings("gpus", 256));
  RINGFENCE_ASSIGN(const Json* const group, reader.Any("group"));
  if (const auto* object = group->if_object()) {
    for (const auto& member : *object) {
      const auto* text = member.value().if_string();
      match.group.emplace_back(std::string(member.key()),
                               text == nullptr ? "" : std::string(text->data(), text->size()));
    }
  }
  return {};
}

}  // namespace

std::string_view Name(AlertStatus status) { return kStatuses[static_cast<std::size_t>(status)]; }

Result<AlertStatus> ParseAlertStatus(std::string_view text) {
  const auto found = std::find(kStatuses.begin(), kStatuses.end(), text);
  if (found == kStatuses.end()) {
    return Error{Code::kInvalidArgument,
                 "\"" + std::string(text.substr(0, 32)) + "\" is none of open, acked, silenced",
                 {},
                 "status"};
  }
  return static_cast<AlertStatus>(found - kStatuses.begin());
}

std::string Match::What() const {
  std::string what = rule;
  if (!group.empty()) {
    for (const auto& [name, value] : group) {
      what += "\n" + name + "=" + value;
    }
  } else if (!lease.empty()) {
    what += "\nlease=" + lease;
  } else {
    what += "\ntenant=" + tenant + "\nnode=" + node + "\nprincipal=" + principal +
            "\naddress=" + address;
  }
  return what;
}

Match MatchOf(const sigma::Rule& rule, const sigma::CorrelationMatch* correlation) {
  Match match;
  match.rule = rule.Key();
  match.title = rule.title;
  match.description = rule.description;
  match.false_positives = rule.false_positives;
  match.tags = rule.tags;
  match.severity = ParseSeverity(rule.level);
  if (correlation != nullptr) {
    match.group = correlation->group;
    match.events = correlation->events;
    for (const std::uint64_t number : correlation->members) {
      match.members.push_back(static_cast<std::int64_t>(number));
    }
  }
  return match;
}

bool Alert::Takes(Timestamp now) const {
  if (status == AlertStatus::kSilenced) {
    return until.has_value() && now < *until;
  }
  return now - updated <= kAlertWindow;
}

void Alert::Add(const Match& more, std::vector<Json> with, Timestamp now) {
  if (count == 0) {
    match = more;
    first = more.time;
    opened = now;
    last = more.time;
  }
  ++count;
  while_silenced += status == AlertStatus::kSilenced ? 1 : 0;
  first = std::min(first, more.time);
  last = std::max(last, more.time);
  updated = now;
  match.severity = std::max(match.severity, more.severity);
  for (const std::string& gpu : more.gpus) {
    if (match.gpus.size() < 256 &&
        std::find(match.gpus.begin(), match.gpus.end(), gpu) == match.gpus.end()) {
      match.gpus.push_back(gpu);
    }
  }
  for (Json& event : with) {
    const std::int64_t number = NumberOf(event);
    const bool known = std::any_of(events.begin(), events.end(),
                                   [&](const Json& one) { return NumberOf(one) == number; });
    if (known) {
      continue;
    }
    if (events.size() >= kAlertEventsMax) {
      events.erase(events.begin() + kFirstEvents);
    }
    events.push_back(std::move(event));
  }
}

JsonObject AlertToJson(const Alert& alert) {
  const Match& match = alert.match;
  JsonObject group;
  for (const auto& [name, value] : match.group) {
    group[name] = value;
  }
  JsonArray events;
  for (const Json& event : alert.events) {
    events.push_back(event);
  }
  JsonObject json{{"id", alert.id},
                  {"rule", match.rule},
                  {"title", match.title},
                  {"description", match.description},
                  {"false_positives", ToArray(match.false_positives)},
                  {"tags", ToArray(match.tags)},
                  {"severity", std::string(Name(match.severity))},
                  {"group", std::move(group)},
                  {"tenant", match.tenant},
                  {"lease", match.lease},
                  {"node", match.node},
                  {"principal", match.principal},
                  {"address", match.address},
                  {"gpus", ToArray(match.gpus)},
                  {"status", std::string(Name(alert.status))},
                  {"owner", alert.owner},
                  {"note", alert.note},
                  {"count", alert.count},
                  {"while_silenced", alert.while_silenced},
                  {"first", FormatTime(alert.first)},
                  {"last", FormatTime(alert.last)},
                  {"opened", FormatTime(alert.opened)},
                  {"updated", FormatTime(alert.updated)},
                  {"events", std::move(events)}};
  if (alert.until.has_value()) {
    json["until"] = FormatTime(*alert.until);
  }
  return json;
}

Result<Alert> AlertFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "alert"));
  Alert alert;
  RINGFENCE_ASSIGN(alert.id, reader.String("id", 64));
  RINGFENCE_TRY(ReadMatch(reader, alert.match));
  RINGFENCE_ASSIGN(const std::string status, reader.String("status", 16));
  RINGFENCE_ASSIGN(alert.status, ParseAlertStatus(status));
  RINGFENCE_ASSIGN(alert.owner, reader.String("owner"));
  RINGFENCE_ASSIGN(alert.note, reader.String("note"));
  RINGFENCE_ASSIGN(alert.count, ReadCount(reader, "count"));
  RINGFENCE_ASSIGN(alert.while_silenced, ReadCount(reader, "while_silenced"));
  RINGFENCE_ASSIGN(alert.first, ReadTime(reader, "first"));
  RINGFENCE_ASSIGN(alert.last, ReadTime(reader, "last"));
  RINGFENCE_ASSIGN(alert.opened, ReadTime(reader, "opened"));
  RINGFENCE_ASSIGN(alert.updated, ReadTime(reader, "updated"));
  if (reader.Has("until")) {
    RINGFENCE_ASSIGN(alert.until, ReadTime(reader, "until"));
  }
  RINGFENCE_ASSIGN(const auto events, reader.Array("events", kAlertEventsMax));
  for (const Json* event : events) {
    alert.events.push_back(*event);
  }
  RINGFENCE_TRY(reader.Finish());
  alert.match.time = alert.last;
  return alert;
}

std::vector<std::string> NextSteps(const Alert& alert) {
  const Match& match = alert.match;
  std::vector<std::string> steps;
  if (!match.lease.empty()) {
    steps.push_back("see what runs: ringfence lease show " + match.lease);
    if (match.severity >= Severity::kHigh) {
      steps.push_back("if it is what it looks like, end it: ringfence lease end " + match.lease);
    }
    steps.push_back("all that happened on the lease: ringfence event search --lease " +
                    match.lease);
  }
  if (!match.node.empty() && match.lease.empty()) {
    steps.push_back("look at the node: ringfence node show " + match.node);
  }
  if (!match.principal.empty()) {
    steps.push_back("what else they did: ringfence event search actor.user.name=" +
                    match.principal);
  }
  if (!match.address.empty()) {
    steps.push_back("what else came from there: ringfence event search src_endpoint.ip=" +
                    match.address);
  }
  std::string harmless;
  for (const std::string& one : match.false_positives) {
    harmless += (harmless.empty() ? "" : "; ") + one;
  }
  if (!harmless.empty()) {
    steps.push_back("rule out what is harmless: " + harmless);
  }
  steps.push_back("take it: ringfence alert ack " + alert.id +
                  "; or, if it is known: ringfence alert silence " + alert.id +
                  " --for 8h --note WHY");
  return steps;
}

}  // namespace ringfence::detect
