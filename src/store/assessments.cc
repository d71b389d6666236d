#include "store/assessments.h"

namespace ringfence::store {
namespace {

constexpr std::size_t kDocumentBytesMax = std::size_t{2} << 20U;
constexpr std::string_view kTrends = "assessment-trend:";
constexpr std::string_view kAfterTrends = "assessment-trend;";  // sorts behind every one of them

std::string DocumentOf(const std::string& node) { return "assessment:" + node; }
std::string TrendOf(const std::string& node) { return std::string(kTrends) + node; }

Result<JsonObject> ReadFact(const std::string& text) {
  RINGFENCE_ASSIGN(Json json, ParseJson(text, kDocumentBytesMax));
  if (!json.is_object()) {
    return Error{Code::kCorrupt, "a stored assessment is no object"};
  }
  return std::move(json.get_object());
}

Result<JsonObject> GetFact(Connection& db, const std::string& name) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT value FROM facts WHERE name = $1", {name}));
  return rows.empty() ? Result<JsonObject>(JsonObject()) : ReadFact(TextAt(rows[0], 0));
}

Status PutFact(Connection& db, const std::string& name, const JsonObject& value) {
  RINGFENCE_TRY(
      db.Run("INSERT INTO facts (name, value) VALUES ($1, $2)"
             " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
             {name, CanonicalJson(value)}));
  return {};
}

}  // namespace

Result<JsonObject> GetAssessment(Connection& db, const std::string& node) {
  return GetFact(db, DocumentOf(node));
}

Result<JsonObject> GetAssessmentTrend(Connection& db, const std::string& node) {
  return GetFact(db, TrendOf(node));
}

Status PutAssessment(Connection& db, const std::string& node, const JsonObject& assessment,
                     const JsonObject& trend) {
  RINGFENCE_TRY(PutFact(db, DocumentOf(node), assessment));
  return PutFact(db, TrendOf(node), trend);
}

Result<JsonArray> ListAssessmentTrends(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT value FROM facts WHERE name >= $1 AND name < $2 ORDER BY name",
                          {std::string(kTrends), std::string(kAfterTrends)}));
  JsonArray trends;
  for (const Row& row : rows) {
    RINGFENCE_ASSIGN(JsonObject trend, ReadFact(TextAt(row, 0)));
    trends.push_back(std::move(trend));
  }
  return trends;
}

}  // namespace ringfence::store
