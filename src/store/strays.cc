#include "store/strays.h"

#include "base/json.h"

namespace ringfence::store {
namespace {

constexpr std::size_t kListBytesMax = std::size_t{1} << 20U;

std::string FactOf(const std::string& node) { return "strays:" + node; }

}  // namespace

Result<Strays> GetStrays(Connection& db, const std::string& node) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT value FROM facts WHERE name = $1", {FactOf(node)}));
  Strays strays;
  if (rows.empty()) {
    return strays;
  }
  strays.held = true;
  const auto json = ParseJson(TextAt(rows[0], 0), kListBytesMax);
  if (json.has_value() && json->is_array()) {
    for (const Json& lease : json->get_array()) {
      if (lease.is_string()) {
        strays.to_end.emplace_back(lease.get_string());
      }
    }
  }
  return strays;
}

Status SetStrays(Connection& db, const std::string& node, const Strays& strays) {
  RINGFENCE_ASSIGN(const Strays before, GetStrays(db, node));
  if (before == strays) {
    return {};
  }
  if (!strays.held) {
    RINGFENCE_TRY(db.Run("DELETE FROM facts WHERE name = $1", {FactOf(node)}));
    return {};
  }
  JsonArray list;
  for (const std::string& lease : strays.to_end) {
    list.emplace_back(lease);
  }
  RINGFENCE_TRY(
      db.Run("INSERT INTO facts (name, value) VALUES ($1, $2)"
             " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
             {FactOf(node), CanonicalJson(list)}));
  return {};
}

}  // namespace ringfence::store
