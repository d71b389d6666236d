#include "store/migrations.h"

#include <string>

namespace ringfence::store {
namespace {

using Statements = std::vector<std::string_view>;

const std::vector<Statements>& AllMigrations() {
  static const std::vector<Statements> all = {
      {
          "CREATE TABLE nodes (name TEXT PRIMARY KEY, record TEXT NOT NULL)",
          "CREATE TABLE gpus (uuid TEXT PRIMARY KEY, node TEXT NOT NULL, lease TEXT NOT NULL,"
          " record TEXT NOT NULL)",
          "CREATE INDEX gpus_by_node ON gpus (node)",
          "CREATE TABLE leases (id TEXT PRIMARY KEY, number BIGINT NOT NULL UNIQUE,"
          " tenant TEXT NOT NULL, state TEXT NOT NULL, is_open BIGINT NOT NULL,"
          " node TEXT NOT NULL, record TEXT NOT NULL)",
          "CREATE INDEX leases_open ON leases (is_open, node)",
          "CREATE TABLE receipts (id TEXT PRIMARY KEY, lease TEXT NOT NULL, node TEXT NOT NULL,"
          " verified_by TEXT NOT NULL, envelope TEXT NOT NULL)",
          "CREATE INDEX receipts_by_lease ON receipts (lease)",
          "CREATE TABLE tokens (id TEXT PRIMARY KEY, principal TEXT NOT NULL,"
          " expires_ms BIGINT NOT NULL, record TEXT NOT NULL)",
          "CREATE TABLE join_tokens (id TEXT PRIMARY KEY, expires_ms BIGINT NOT NULL,"
          " record TEXT NOT NULL)",
          "CREATE TABLE idempotency (principal TEXT NOT NULL, key TEXT NOT NULL,"
          " digest TEXT NOT NULL, status BIGINT NOT NULL, body TEXT NOT NULL,"
          " created_ms BIGINT NOT NULL, PRIMARY KEY (principal, key))",
          "CREATE TABLE audit (seq BIGINT PRIMARY KEY, action TEXT NOT NULL, lease TEXT NOT NULL,"
          " entry BLOB NOT NULL)",
          "CREATE INDEX audit_by_lease ON audit (lease, seq)",
          "CREATE INDEX audit_by_action ON audit (action, seq)",
      },
  };
  return all;
}

}  // namespace

int NewestSchema() { return static_cast<int>(AllMigrations().size()); }

Status Migrate(Connection& connection) {
  RINGFENCE_TRY(
      connection.Run("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)", {}));
  RINGFENCE_ASSIGN(const auto rows, connection.Run("SELECT version FROM schema_version", {}));
  const int have = rows.empty() ? 0 : static_cast<int>(IntAt(rows[0], 0));
  if (rows.empty()) {
    RINGFENCE_TRY(connection.Run("INSERT INTO schema_version (version) VALUES (0)", {}));
  }
  if (have > NewestSchema()) {
    return Error{Code::kFailedPrecondition,
                 "the database has schema " + std::to_string(have) + ", this version knows up to " +
                     std::to_string(NewestSchema()),
                 "a newer Ringfence wrote it: start that version, or restore an older backup"};
  }
  for (int version = have; version < NewestSchema(); ++version) {
    for (const std::string_view statement : AllMigrations()[static_cast<std::size_t>(version)]) {
      RINGFENCE_TRY(connection.Run(statement, {}));
    }
  }
  if (have < NewestSchema()) {
    RINGFENCE_TRY(
        connection.Run("UPDATE schema_version SET version = $1", {std::int64_t{NewestSchema()}}));
  }
  return {};
}

}  // namespace ringfence::store
