#include "store/telemetry_records.h"

#include "base/json.h"

namespace ringfence::store {
namespace {

constexpr std::size_t kFactBytesMax = std::size_t{8} << 20U;
constexpr std::string_view kPrefix = "telemetry:";

Result<NodeTelemetry> Read(const std::string& node, const std::string& text) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kFactBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, std::string(kPrefix) + node));
  NodeTelemetry known;
  known.node = node;
  RINGFENCE_ASSIGN(known.epoch, reader.String("epoch", 128));
  RINGFENCE_ASSIGN(known.next, reader.Int("next", 0, INT64_MAX));
  RINGFENCE_ASSIGN(known.missing, reader.Int("missing", 0, INT64_MAX));
  RINGFENCE_ASSIGN(known.dropped, reader.Int("dropped", 0, INT64_MAX));
  RINGFENCE_ASSIGN(known.gaps, reader.Int("gaps", 0, INT64_MAX));
  RINGFENCE_ASSIGN(known.waiting, reader.Int("waiting", 0, INT64_MAX));
  RINGFENCE_ASSIGN(const std::int64_t heard, reader.Int("heard", 0, INT64_MAX));
  RINGFENCE_ASSIGN(const std::int64_t read, reader.Int("read", 0, INT64_MAX));
  known.heard = Timestamp(Milliseconds(heard));
  known.read = Timestamp(Milliseconds(read));
  RINGFENCE_ASSIGN(known.blind, reader.String("blind", 1024));
  RINGFENCE_ASSIGN(const Json* const readings, reader.Any("readings"));
  known.readings = CanonicalJson(*readings);
  return known;
}

}  // namespace

Result<NodeTelemetry> GetTelemetry(Connection& db, const std::string& node) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT value FROM facts WHERE name = $1",
                                           {std::string(kPrefix) + node}));
  if (rows.empty()) {
    NodeTelemetry none;
    none.node = node;
    return none;
  }
  return Read(node, TextAt(rows[0], 0));
}

Status PutTelemetry(Connection& db, const NodeTelemetry& telemetry) {
  RINGFENCE_ASSIGN(const Json readings, ParseJson(telemetry.readings, kFactBytesMax));
  const JsonObject json{{"epoch", telemetry.epoch},
                        {"next", telemetry.next},
                        {"missing", telemetry.missing},
                        {"dropped", telemetry.dropped},
                        {"gaps", telemetry.gaps},
                        {"waiting", telemetry.waiting},
                        {"heard", telemetry.heard.time_since_epoch().count()},
                        {"read", telemetry.read.time_since_epoch().count()},
                        {"blind", telemetry.blind},
                        {"readings", readings}};
  RINGFENCE_TRY(
      db.Run("INSERT INTO facts (name, value) VALUES ($1, $2)"
             " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
             {std::string(kPrefix) + telemetry.node, CanonicalJson(json)}));
  return {};
}

Result<std::vector<NodeTelemetry>> ListTelemetry(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT name, value FROM facts WHERE name >= 'telemetry:'"
                          " AND name < 'telemetry;' ORDER BY name",
                          {}));
  std::vector<NodeTelemetry> all;
  for (const Row& row : rows) {
    RINGFENCE_ASSIGN(NodeTelemetry one,
                     Read(TextAt(row, 0).substr(kPrefix.size()), TextAt(row, 1)));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace ringfence::store
