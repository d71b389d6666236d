#include "store/proofs.h"

namespace ringfence::store {
namespace {

constexpr std::size_t kDocumentBytesMax = std::size_t{1} << 20U;
constexpr std::string_view kLeaks = "proof-leaks:";
constexpr std::string_view kAfterLeaks = "proof-leaks;";  // sorts behind every one of them

std::string DocumentOf(const std::string& node) { return "proofs:" + node; }
std::string LeakOf(const std::string& node) { return std::string(kLeaks) + node; }

Status PutFact(Connection& db, const std::string& name, const JsonObject& value) {
  RINGFENCE_TRY(
      db.Run("INSERT INTO facts (name, value) VALUES ($1, $2)"
             " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
             {name, CanonicalJson(value)}));
  return {};
}

}  // namespace

Result<JsonObject> GetProofs(Connection& db, const std::string& node) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT value FROM facts WHERE name = $1", {DocumentOf(node)}));
  if (rows.empty()) {
    return JsonObject();
  }
  RINGFENCE_ASSIGN(Json json, ParseJson(TextAt(rows[0], 0), kDocumentBytesMax));
  if (!json.is_object()) {
    return Error{Code::kCorrupt, "the proofs of node " + node + " are no object"};
  }
  return std::move(json.get_object());
}

Status PutProofs(Connection& db, const std::string& node, const JsonObject& document,
                 const LeakingNode* leak) {
  RINGFENCE_TRY(PutFact(db, DocumentOf(node), document));
  if (leak == nullptr) {
    RINGFENCE_TRY(db.Run("DELETE FROM facts WHERE name = $1", {LeakOf(node)}));
    return {};
  }
  return PutFact(db, LeakOf(node), {{"probe", leak->probe}, {"time", FormatTime(leak->time)}});
}

Result<std::vector<LeakingNode>> LeakingNodes(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT name, value FROM facts WHERE name >= $1 AND name < $2",
                          {std::string(kLeaks), std::string(kAfterLeaks)}));
  std::vector<LeakingNode> leaks;
  for (const Row& row : rows) {
    RINGFENCE_ASSIGN(const Json json, ParseJson(TextAt(row, 1), kDocumentBytesMax));
    RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json));
    LeakingNode leak;
    leak.node = TextAt(row, 0).substr(kLeaks.size());
    RINGFENCE_ASSIGN(leak.probe, reader.String("probe", 256));
    RINGFENCE_ASSIGN(const std::string time, reader.String("time", 40));
    RINGFENCE_ASSIGN(leak.time, ParseTime(time));
    leaks.push_back(std::move(leak));
  }
  return leaks;
}

}  // namespace ringfence::store
