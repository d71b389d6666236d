#include "store/access_records.h"

#include "store/migrations.h"

namespace ringfence::store {
namespace {

std::int64_t Millis(Timestamp time) { return time.time_since_epoch().count(); }
Timestamp TimeAt(const Row& row, std::size_t column) {
  return Timestamp(Milliseconds(IntAt(row, column)));
}

}  // namespace

Result<bool> HasAccessRecords(Connection& db) {
  RINGFENCE_ASSIGN(const int schema, SchemaSeen(db));
  return schema >= SchemaWith("binding_grants");
}

Status AddAccessUses(Connection& db, const std::vector<AccessUse>& uses, std::int64_t rows_max) {
  for (const AccessUse& use : uses) {
    RINGFENCE_TRY(db.Run(
        "INSERT INTO access_uses (principal, action, tenant, first_ms, last_ms, uses)"
        " VALUES ($1, $2, $3, $4, $5, $6)"
        " ON CONFLICT (principal, action, tenant) DO UPDATE SET"
        " last_ms = CASE WHEN excluded.last_ms > access_uses.last_ms THEN excluded.last_ms"
        " ELSE access_uses.last_ms END, uses = access_uses.uses + excluded.uses",
        {use.principal, use.action, use.tenant, Millis(use.first), Millis(use.last), use.count}));
  }
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT CAST(COUNT(*) AS BIGINT) FROM access_uses", {}));
  if (IntAt(rows[0], 0) <= rows_max) {
    return {};
  }
  // The time of the newest one that has no room; those of the same moment go with it.
  RINGFENCE_ASSIGN(const auto edge,
                   db.Run("SELECT last_ms FROM access_uses ORDER BY last_ms DESC LIMIT 1 OFFSET $1",
                          {rows_max}));
  RINGFENCE_TRY(db.Run("DELETE FROM access_uses WHERE last_ms <= $1", {IntAt(edge[0], 0)}));
  return {};
}

Result<std::vector<AccessUse>> ListAccessUses(Connection& db, const std::string& principal) {
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT principal, action, tenant, first_ms, last_ms, uses FROM access_uses"
             " WHERE $1 = '' OR principal = $1 ORDER BY principal, action, tenant LIMIT $2",
             {principal, kAccessUsesMax}));
  std::vector<AccessUse> uses;
  uses.reserve(rows.size());
  for (const Row& row : rows) {
    uses.push_back({TextAt(row, 0), TextAt(row, 1), TextAt(row, 2), TimeAt(row, 3), TimeAt(row, 4),
                    IntAt(row, 5)});
  }
  return uses;
}

Result<std::string> GetBindingGrants(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT grants FROM binding_grants WHERE one = 1", {}));
  return rows.empty() ? std::string() : TextAt(rows[0], 0);
}

Status PutBindingGrants(Connection& db, const std::string& json) {
  RINGFENCE_TRY(
      db.Run("INSERT INTO binding_grants (one, grants) VALUES (1, $1)"
             " ON CONFLICT (one) DO UPDATE SET grants = excluded.grants",
             {json}));
  return {};
}

}  // namespace ringfence::store
