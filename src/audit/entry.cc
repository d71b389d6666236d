#include "audit/entry.h"

#include <algorithm>
#include <array>

#include "base/encoding.h"

namespace ringfence::audit {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kNameBytesMax = 512;
constexpr std::size_t kReasonBytesMax = 4096;
constexpr std::int64_t kNumberMax = std::int64_t{1} << 53U;
constexpr Timestamp kTimeMax{std::chrono::milliseconds(253402300799999)};  // the year 9999

Error Wrong(std::string_view field, std::string_view why) {
  return {Code::kInvalidArgument,
          "audit entry: " + std::string(field) + " " + std::string(why),
          {},
          std::string(field)};
}

Status CheckText(std::string_view field, std::string_view text, std::size_t bytes_max) {
  if (text.size() > bytes_max) {
    return Wrong(field, "is longer than " + std::to_string(bytes_max) + " bytes");
  }
  return IsUtf8(text) ? Status() : Wrong(field, "is not UTF-8");
}

Status CheckOneOf(std::string_view field, std::string_view text,
                  std::initializer_list<std::string_view> allowed) {
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) {
    return {};
  }
  std::string list;
  for (const std::string_view one : allowed) {
    list += (list.empty() ? "\"" : ", \"") + std::string(one) + "\"";
  }
  return Wrong(field, "must be one of " + list);
}

bool IsAction(std::string_view text) {
  bool after_dot = true;
  bool has_dot = false;
  for (const char c : text) {
    if (c == '.') {
      if (after_dot) {
        return false;
      }
      has_dot = true;
    } else if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_') {
      return false;
    }
    after_dot = c == '.';
  }
  return has_dot && !after_dot;
}

std::string_view View(boost::json::string_view text) { return {text.data(), text.size()}; }

// CanonicalJson can only write whole numbers of this size, and readers are bounded in depth.
Status CheckDetail(const Json& value, std::size_t depth) {
  if (depth > kEntryDetailDepthMax) {
    return Wrong("detail", "is nested deeper than " + std::to_string(kEntryDetailDepthMax));
  }
  if (const auto* object = value.if_object()) {
    for (const auto& member : *object) {
      RINGFENCE_TRY(CheckText("detail", View(member.key()), kEntryDetailBytesMax));
      RINGFENCE_TRY(CheckDetail(member.value(), depth + 1));
    }
  } else if (const auto* array = value.if_array()) {
    for (const Json& element : *array) {
      RINGFENCE_TRY(CheckDetail(element, depth + 1));
    }
  } else if (const auto* text = value.if_string()) {
    RINGFENCE_TRY(CheckText("detail", View(*text), kEntryDetailBytesMax));
  } else if (value.is_number()) {
    const auto* number = value.if_int64();
    const auto* large = value.if_uint64();
    const bool fits = number != nullptr ? *number <= kNumberMax && *number >= -kNumberMax
                                        : large != nullptr && *large <= std::uint64_t{kNumberMax};
    if (!fits) {
      return Wrong("detail", "holds a number that is not whole or is beyond 2^53");
    }
  }
  return {};
}

Status CheckFields(const Entry& entry) {
  if (entry.time < Timestamp() || entry.time > kTimeMax) {
    return Wrong("time", "is not in the years 1970 to 9999");
  }
  if (entry.id.empty()) {
    return Wrong("id", "is empty");
  }
  if (!IsAction(entry.action)) {
    return Wrong("action", "must look like lease.request");
  }
  RINGFENCE_TRY(CheckOneOf("actor.kind", entry.actor.kind, {"user", "service", "node", "system"}));
  RINGFENCE_TRY(CheckOneOf("decision", entry.decision, {"allow", "deny", ""}));
  RINGFENCE_TRY(CheckOneOf("result", entry.result, {"ok", "error", ""}));
  struct Text {
    std::string_view field;
    const std::string& text;
  };
  const std::array names = {Text{"id", entry.id},
                            Text{"actor.principal", entry.actor.principal},
                            Text{"actor.via", entry.actor.via},
                            Text{"actor.address", entry.actor.address},
                            Text{"action", entry.action},
                            Text{"tenant", entry.tenant},
                            Text{"lease", entry.lease},
                            Text{"node", entry.node},
                            Text{"policy", entry.policy}};
  for (const Text& name : names) {
    RINGFENCE_TRY(CheckText(name.field, name.text, kNameBytesMax));
  }
  RINGFENCE_TRY(CheckText("decision_reason", entry.decision_reason, kReasonBytesMax));
  if (entry.gpus.size() > kEntryGpusMax) {
    return Wrong("gpus", "has more than " + std::to_string(kEntryGpusMax) + " elements");
  }
  for (const std::string& gpu : entry.gpus) {
    RINGFENCE_TRY(CheckText("gpus", gpu, kNameBytesMax));
  }
  return {};
}

Result<Actor> ParseActor(const Json& value) {
  Actor actor;
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(value, "actor"));
  RINGFENCE_ASSIGN(actor.principal, reader.String("principal", kNameBytesMax));
  RINGFENCE_ASSIGN(actor.kind, reader.String("kind", kNameBytesMax));
  RINGFENCE_ASSIGN(actor.via, reader.String("via", kNameBytesMax));
  RINGFENCE_ASSIGN(actor.address, reader.String("address", kNameBytesMax));
  RINGFENCE_TRY(reader.Finish());
  return actor;
}

Result<Entry> ParseFields(const Json& document) {
  Entry entry;
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(document));
  RINGFENCE_TRY(reader.Int("version", kVersion, kVersion));
  RINGFENCE_ASSIGN(const std::string time, reader.String("time", 32));
  RINGFENCE_ASSIGN(entry.time, ParseTime(time));
  RINGFENCE_ASSIGN(entry.id, reader.String("id", kNameBytesMax));
  RINGFENCE_ASSIGN(const Json* actor, reader.Any("actor"));
  RINGFENCE_ASSIGN(entry.actor, ParseActor(*actor));
  RINGFENCE_ASSIGN(entry.action, reader.String("action", kNameBytesMax));
  RINGFENCE_ASSIGN(entry.tenant, reader.String("tenant", kNameBytesMax));
  RINGFENCE_ASSIGN(entry.lease, reader.String("lease", kNameBytesMax));
  RINGFENCE_ASSIGN(entry.node, reader.String("node", kNameBytesMax));
  RINGFENCE_ASSIGN(entry.gpus, reader.Strings("gpus", kEntryGpusMax, kNameBytesMax));
  RINGFENCE_ASSIGN(entry.decision, reader.String("decision", kNameBytesMax));
  RINGFENCE_ASSIGN(entry.decision_reason, reader.String("decision_reason", kReasonBytesMax));
  RINGFENCE_ASSIGN(entry.result, reader.String("result", kNameBytesMax));
  RINGFENCE_ASSIGN(const Json* detail, reader.Any("detail"));
  if (!detail->is_object()) {
    return Wrong("detail", "must be an object");
  }
  entry.detail = detail->get_object();
  RINGFENCE_ASSIGN(entry.policy, reader.String("policy", kNameBytesMax));
  RINGFENCE_TRY(reader.Finish());
  return entry;
}

}  // namespace

Result<Bytes> Entry::ToBytes() const {
  RINGFENCE_TRY(CheckFields(*this));
  RINGFENCE_TRY(CheckDetail(Json(detail), 0));
  if (CanonicalJson(Json(detail)).size() > kEntryDetailBytesMax) {
    return Wrong("detail", "is longer than " + std::to_string(kEntryDetailBytesMax) + " bytes");
  }
  JsonArray gpu_list;
  for (const std::string& gpu : gpus) {
    gpu_list.emplace_back(gpu);
  }
  const JsonObject who = {{"principal", actor.principal},
                          {"kind", actor.kind},
                          {"via", actor.via},
                          {"address", actor.address}};
  const std::string text = CanonicalJson(JsonObject{{"version", kVersion},
                                                    {"time", FormatTime(time)},
                                                    {"id", id},
                                                    {"actor", who},
                                                    {"action", action},
                                                    {"tenant", tenant},
                                                    {"lease", lease},
                                                    {"node", node},
                                                    {"gpus", std::move(gpu_list)},
                                                    {"decision", decision},
                                                    {"decision_reason", decision_reason},
                                                    {"result", result},
                                                    {"detail", detail},
                                                    {"policy", policy}});
  if (text.size() > kEntryBytesMax) {
    return Wrong("gpus",
                 "makes the entry longer than " + std::to_string(kEntryBytesMax) + " bytes");
  }
  return ringfence::ToBytes(text);
}

Result<Entry> Entry::Parse(ByteView bytes) {
  RINGFENCE_ASSIGN(const Json document, ParseJson(AsText(bytes), kEntryBytesMax));
  RINGFENCE_ASSIGN(Entry entry, ParseFields(document));
  RINGFENCE_ASSIGN(const Bytes canonical, entry.ToBytes());
  if (!std::equal(canonical.begin(), canonical.end(), bytes.begin(), bytes.end())) {
    return Error{Code::kInvalidArgument, "audit entry: not in canonical form"};
  }
  return entry;
}

}  // namespace ringfence::audit
