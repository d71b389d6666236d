#include "detect/live_event.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "wire/lease_json.h"

namespace ringfence::detect {
namespace {

constexpr std::string_view kSchema = "1.3.0";  // of OCSF, whose names these are
constexpr std::string_view kWho = "actor.user.name";
constexpr std::size_t kCommandLineBytesMax = 4096;
constexpr std::array<std::string_view, 5> kSeverities = {"informational", "low", "medium", "high",
                                                         "critical"};

std::string_view TextOf(const Json& json) {
  const auto* text = json.if_string();
  return text == nullptr ? std::string_view() : std::string_view(text->data(), text->size());
}

bool IsNothing(const Json& json) {
  return json.is_null() || (json.is_string() && json.get_string().empty()) ||
         (json.is_object() && json.get_object().empty()) ||
         (json.is_array() && json.get_array().empty());
}

bool Applies(std::string_view pattern, std::string_view text) {
  if (pattern.ends_with('*')) {
    pattern.remove_suffix(1);
    return text.starts_with(pattern);
  }
  return pattern == text;
}

// What rules ask for and no record has as such.
JsonObject Known(const audit::Entry& entry, const model::Lease& lease) {
  JsonObject known;
  const std::vector<std::string>& command = lease.request.command;
  std::string line;
  for (const std::string& word : command) {
    line += (line.empty() ? "" : " ") + word;
  }
  if (!command.empty()) {
    known["command_line"] = line.substr(0, kCommandLineBytesMax);
    known["program"] = command.front().substr(command.front().rfind('/') + 1);
  }
  JsonArray loader;  // only what the dynamic loader obeys: other values may be secrets
  for (const auto& [name, value] : lease.request.environment) {
    if (name.starts_with("LD_")) {
      loader.emplace_back(name + "=" + value.substr(0, 512));
    }
  }
  known["loader_env"] = std::move(loader);
  if (lease.started.has_value()) {
    known["duration_s"] =
        std::chrono::duration_cast<std::chrono::seconds>(entry.time - *lease.started).count();
  }
  const Json* const code = entry.detail.if_contains("exit_code");
  constexpr std::int64_t kSignalBase = 128;
  if (code != nullptr && code->is_int64() && code->get_int64() > kSignalBase &&
      lease.outcome == "signalled") {
    known["signal"] = code->get_int64() - kSignalBase;
  }
  return known;
}

JsonObject EntryJson(const audit::Entry& entry) {
  return {{"action", entry.action},
          {"decision", entry.decision},
          {"decision_reason", entry.decision_reason},
          {"result", entry.result},
          {"policy", entry.policy},
          {"detail", entry.detail}};
}

std::string PrincipalOf(const JsonObject& event) {
  const Json* const actor = event.if_contains("actor");
  const Json* const name = actor == nullptr ? nullptr : AtPath(*actor, "user.name");
  return name == nullptr ? std::string() : std::string(TextOf(*name));
}

// What every event of an entry says: who, where and whose.
void AddCommon(const audit::Entry& entry, LiveEvent& event) {
  JsonObject& json = event.json;
  event.tenant = entry.tenant;
  event.lease = entry.lease;
  event.node = entry.node;
  event.gpus = entry.gpus;
  JsonObject user{{"name", entry.actor.principal}, {"type", entry.actor.kind}};
  JsonObject actor{{"user", std::move(user)}};
  if (!entry.actor.via.empty()) {
    actor["session"] = JsonObject{{"token_id", entry.actor.via}};
  }
  json["actor"] = std::move(actor);
  if (!entry.actor.address.empty()) {
    json["src_endpoint"] = JsonObject{{"ip", entry.actor.address}};
  }
  if (!entry.tenant.empty()) {
    json["tenant"] = JsonObject{{"path", entry.tenant}};
  }
  if (!entry.lease.empty()) {
    json["lease"] = JsonObject{{"id", entry.lease}};
  }
  if (!entry.node.empty()) {
    json["node"] = JsonObject{{"name", entry.node}};
  }
  JsonArray gpus;
  for (const std::string& uuid : entry.gpus) {
    gpus.emplace_back(JsonObject{{"uuid", uuid}});
  }
  if (gpus.size() == 1) {
    json["gpu"] = gpus[0];
  } else if (!gpus.empty()) {
    json["gpu"] = std::move(gpus);
  }
  const bool failed = entry.result == "error" || entry.decision == "deny";
  json["status"] = failed ? "Failure" : "Success";
}

}  // namespace

std::string_view Name(Severity severity) {
  const auto index = static_cast<std::size_t>(severity) - 1;
  return index < kSeverities.size() ? kSeverities[index] : kSeverities[0];
}

Severity ParseSeverity(std::string_view text) {
  const auto found = std::find(kSeverities.begin(), kSeverities.end(), text);
  return found == kSeverities.end() ? Severity::kInformational
                                    : static_cast<Severity>(found - kSeverities.begin() + 1);
}

void SetPath(JsonObject& object, std::string_view path, Json value) {
  JsonObject* at = &object;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    Json& next = (*at)[path.substr(0, dot)];
    if (!next.is_object()) {
      next = JsonObject();
    }
    at = &next.get_object();
    path.remove_prefix(dot + 1);
  }
  (*at)[path] = std::move(value);
}

const Json* AtPath(const Json& json, std::string_view path) {
  const Json* at = &json;
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    const auto* object = at->if_object();
    at = object == nullptr ? nullptr : object->if_contains(path.substr(0, dot));
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return at;
}

std::vector<std::string> TextsAt(const Json& json, std::string_view path) {
  std::vector<std::string> texts;
  if (const auto* list = json.if_array()) {
    for (const Json& element : *list) {
      const auto more = TextsAt(element, path);
      texts.insert(texts.end(), more.begin(), more.end());
    }
    return texts;
  }
  if (path.empty()) {
    if (json.is_string()) {
      texts.emplace_back(TextOf(json));
    } else if (json.is_int64()) {
      texts.push_back(std::to_string(json.get_int64()));
    } else if (json.is_uint64()) {
      texts.push_back(std::to_string(json.get_uint64()));
    } else if (json.is_bool()) {
      texts.emplace_back(json.get_bool() ? "true" : "false");
    }
    return texts;
  }
  const auto* object = json.if_object();
  const std::size_t dot = path.find('.');
  const Json* next = object == nullptr ? nullptr : object->if_contains(path.substr(0, dot));
  if (next == nullptr) {
    return texts;
  }
  return TextsAt(*next, dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1));
}

std::string LiveEvent::Text(std::int64_t sequence) {
  SetPath(json, "metadata.sequence", sequence);
  std::string text = CanonicalJson(json);
  if (text.size() > kLiveEventBytesMax) {
    json.erase("unmapped");
    SetPath(json, "metadata.is_truncated", true);
    text = CanonicalJson(json);
  }
  return text;
}

Result<EventMapping::Row> EventMapping::ReadRow(const Json& json, const std::string& path) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, path));
  Row row;
  RINGFENCE_ASSIGN(row.action, reader.String("action", 128));
  RINGFENCE_ASSIGN(row.own.log, reader.String("log", 32));
  RINGFENCE_ASSIGN(row.own.class_uid, reader.Int("class", 1, 99999));
  RINGFENCE_ASSIGN(row.own.activity, reader.StringOr("activity", "", 64));
  RINGFENCE_ASSIGN(const std::string severity, reader.StringOr("severity", "informational", 16));
  row.own.severity = ParseSeverity(severity);
  if (Name(row.own.severity) != severity) {
    return Error{
        Code::kInvalidArgument, "\"" + severity + "\" is no severity", {}, reader.Path("severity")};
  }
  RINGFENCE_ASSIGN(row.each, reader.StringOr("each", "", 128));
  const auto pairs = [&](std::string_view name, const auto& take) -> Status {
    if (!reader.Has(name)) {
      return {};
    }
    RINGFENCE_ASSIGN(const Json* const value, reader.Any(name));
    if (!value->is_object()) {
      return Error{Code::kInvalidArgument, "must be an object", {}, reader.Path(name)};
    }
    for (const auto& member : value->get_object()) {
      const std::string key(member.key());
      const bool constant = name == "set";
      if (!constant && !member.value().is_string()) {
        return Error{
            Code::kInvalidArgument, "must be text", {}, reader.Path(std::string(name) + "." + key)};
      }
      take(key, member.value());
    }
    return {};
  };
  RINGFENCE_TRY(pairs("when", [&](const std::string& key, const Json& value) {
    row.when.push_back({key, std::string(TextOf(value))});
  }));
  RINGFENCE_TRY(pairs(
      "set", [&](const std::string& key, const Json& value) { row.set.emplace_back(key, value); }));
  RINGFENCE_TRY(pairs("copy", [&](const std::string& key, const Json& value) {
    row.copy.emplace_back(key, std::string(TextOf(value)));
  }));
  RINGFENCE_TRY(reader.Finish());
  const auto of_lease = [](std::string_view source) {
    return source.starts_with("lease.") || source.starts_with("known.");
  };
  row.needs_lease =
      of_lease(row.each) || std::any_of(row.copy.begin(), row.copy.end(),
                                        [&](const auto& one) { return of_lease(one.second); });
  return row;
}

Result<EventMapping> EventMapping::Read(std::string_view text, const std::string& file) {
  const auto fail = [&](Error error) { return Prefix(file, std::move(error)); };
  auto json = ParseJson(text, kMappingBytesMax);
  if (!json.has_value()) {
    return fail(json.error());
  }
  EventMapping mapping;
  const auto read = [&]() -> Status {
    RINGFENCE_ASSIGN(auto reader, JsonReader::Open(*json));
    RINGFENCE_TRY(reader.String("name", 64));
    RINGFENCE_TRY(reader.StringOr("about", "", 4096));
    RINGFENCE_ASSIGN(const Json* const classes, reader.Any("classes"));
    if (!classes->is_object()) {
      return Error{Code::kInvalidArgument, "must be an object", {}, "classes"};
    }
    for (const auto& member : classes->get_object()) {
      const std::string key(member.key());
      RINGFENCE_ASSIGN(auto one, JsonReader::Open(member.value(), "classes." + key));
      Class known;
      RINGFENCE_ASSIGN(known.name, one.String("name", 64));
      RINGFENCE_ASSIGN(known.category, one.Int("category", 0, 99));
      RINGFENCE_TRY(one.Finish());
      mapping.classes_[std::strtoll(key.c_str(), nullptr, 10)] = known;
    }
    RINGFENCE_ASSIGN(const auto rows, reader.Array("events", 1024));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string path = "events[" + std::to_string(i) + "]";
      RINGFENCE_ASSIGN(Row row, ReadRow(*rows[i], path));
      if (!mapping.classes_.contains(row.own.class_uid)) {
        return Error{Code::kInvalidArgument,
                     "class " + std::to_string(row.own.class_uid) + " is not under classes",
                     {},
                     path + ".class"};
      }
      mapping.rows_.push_back(std::move(row));
    }
    return reader.Finish();
  };
  if (const Status done = read(); !done.has_value()) {
    return fail(done.error());
  }
  return mapping;
}

bool EventMapping::NeedsLease(std::string_view action) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
    return row.needs_lease && Applies(row.action, action);
  });
}

LiveEvent EventMapping::Make(const Own& own) const {
  constexpr std::int64_t kOther = 99;
  LiveEvent event;
  event.time = own.time;
  event.class_uid = own.class_uid;
  event.log = own.log;
  const auto found = classes_.find(own.class_uid);
  const Class known = found == classes_.end() ? Class{} : found->second;
  event.json = {
      {"time", own.time.time_since_epoch().count()},
      {"time_dt", FormatTime(own.time)},
      {"class_uid", own.class_uid},
      {"class_name", known.name},
      {"category_uid", known.category},
      {"activity_id", kOther},
      {"activity_name", own.activity},
      {"type_uid", own.class_uid * 100 + kOther},
      {"severity", std::string(Name(own.severity))},
      {"severity_id", static_cast<std::int64_t>(own.severity)},
      {"metadata",
       JsonObject{{"product", JsonObject{{"name", "ringfence"}, {"version", RINGFENCE_VERSION}}},
                  {"version", std::string(kSchema)},
                  {"log_name", own.log},
                  {"uid", own.uid}}}};
  return event;
}

std::vector<LiveEvent> EventMapping::FromAudit(std::int64_t index, const audit::Entry& entry,
                                               const model::Lease* lease) const {
  JsonObject sources{{"entry", EntryJson(entry)}};
  if (lease != nullptr) {
    sources["lease"] = wire::LeaseToJson(*lease);
    sources["known"] = Known(entry, *lease);
  }
  Json input(std::move(sources));
  std::vector<LiveEvent> events;
  for (const Row& row : rows_) {
    if (!Applies(row.action, entry.action)) {
      continue;
    }
    static const Json kOnce(JsonArray{Json()});
    const Json* const list = row.each.empty() ? &kOnce : AtPath(input, row.each);
    const JsonArray items = list != nullptr && list->is_array() ? list->get_array() : JsonArray();
    for (const Json& item : items) {
      input.get_object()["item"] = item;
      const bool wanted =
          std::all_of(row.when.begin(), row.when.end(), [&](const Condition& condition) {
            const Json* const value = AtPath(input, condition.path);
            return value != nullptr && Applies(condition.value, TextOf(*value));
          });
      if (!wanted || events.size() >= kEventsPerEntryMax) {
        continue;
      }
      Own own = row.own;
      own.time = entry.time;
      own.uid = "audit-" + std::to_string(index) + "-" + std::to_string(events.size());
      LiveEvent event = Make(own);
      SetPath(event.json, "metadata.original_event_uid", Json(entry.id));
      SetPath(event.json, "metadata.audit_index", index);
      AddCommon(entry, event);
      for (const auto& [path, value] : row.set) {
        SetPath(event.json, path, value);
      }
      for (const auto& [path, source] : row.copy) {
        const Json* const value = AtPath(input, source);
        if (value == nullptr || IsNothing(*value)) {
          continue;
        }
        if (path == kWho) {  // another one than the caller, whose session and address it is not
          event.json.erase("actor");
          event.json.erase("src_endpoint");
        }
        SetPath(event.json, path, *value);
      }
      event.principal = PrincipalOf(event.json);
      events.push_back(std::move(event));
    }
  }
  return events;
}

}  // namespace ringfence::detect
