#pragma once

// Events born in the server: one JSON schema (docs/formats/events.md), OCSF's names where it has
// them, with whose lease it was. Which audit entry becomes which events is data
// (content/mappings/events.json).

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "audit/entry.h"
#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "model/lease.h"

namespace ringfence::detect {

inline constexpr std::size_t kMappingBytesMax = std::size_t{1} << 20U;
inline constexpr std::size_t kEventsPerEntryMax = 128;
inline constexpr std::size_t kLiveEventBytesMax = 64 * 1024;

// What an event is searched by is beside its JSON.
struct LiveEvent {
  Timestamp time;
  std::int64_t class_uid = 0;
  std::string log;
  std::string tenant;
  std::string lease;
  std::string node;
  std::string principal;
  std::vector<std::string> gpus;
  JsonObject json;

  // Its JSON as it is stored, under the number `sequence`. What is too long loses its unmapped
  // part, which is in the audit log.
  std::string Text(std::int64_t sequence);
};

enum class Severity : std::uint8_t { kInformational = 1, kLow, kMedium, kHigh, kCritical };
std::string_view Name(Severity severity);
Severity ParseSeverity(std::string_view text);  // what is none: informational

// Never changes once it was read; any thread.
class EventMapping {
 public:
  // kInvalidArgument with the place, when it is no mapping.
  static Result<EventMapping> Read(std::string_view text, const std::string& file);

  // Whether events of this action tell of the lease's record.
  bool NeedsLease(std::string_view action) const;
  // At least one. `lease` may be null: then what comes from its record is left out.
  std::vector<LiveEvent> FromAudit(std::int64_t index, const audit::Entry& entry,
                                   const model::Lease* lease) const;

  // An event that is no audit entry's.
  struct Own {
    Timestamp time;
    std::int64_t class_uid = 0;
    std::string log;
    std::string activity;
    Severity severity = Severity::kInformational;
    std::string uid;
  };
  LiveEvent Make(const Own& own) const;

 private:
  struct Condition {
    std::string path;
    std::string value;  // one that ends with '*' is a beginning
  };
  struct Row {
    std::string action;
    std::string each;
    std::vector<Condition> when;
    Own own;
    std::vector<std::pair<std::string, Json>> set;
    std::vector<std::pair<std::string, std::string>> copy;
    bool needs_lease = false;
  };
  struct Class {
    std::string name;
    std::int64_t category = 0;
  };
  static Result<Row> ReadRow(const Json& json, const std::string& path);

  std::map<std::int64_t, Class> classes_;
  std::vector<Row> rows_;
};

// Sets "a.b.c" in an object, making what is on the way.
void SetPath(JsonObject& object, std::string_view path, Json value);
// What lies at "a.b.c"; null when nothing does. Not through lists.
const Json* AtPath(const Json& json, std::string_view path);

// Every value at a path, through lists as rules see them, as text: for filters.
std::vector<std::string> TextsAt(const Json& json, std::string_view path);

}  // namespace ringfence::detect
