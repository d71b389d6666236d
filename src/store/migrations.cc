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
      {
          // Several servers on one database: whose turn it is to build the log, and how far it is.
          "CREATE TABLE log_turn (one BIGINT PRIMARY KEY, holder TEXT NOT NULL,"
          " epoch BIGINT NOT NULL, beat BIGINT NOT NULL)",
          "INSERT INTO log_turn (one, holder, epoch, beat) VALUES (1, '', 0, 0)",
          "CREATE TABLE log_head (one BIGINT PRIMARY KEY, size BIGINT NOT NULL,"
          " note TEXT NOT NULL)",
          "INSERT INTO log_head (one, size, note) VALUES (1, 0, '')",
          "CREATE TABLE cosignatures (witness TEXT PRIMARY KEY, size BIGINT NOT NULL,"
          " line TEXT NOT NULL)",
          "CREATE TABLE pulses (node TEXT PRIMARY KEY, seen_ms BIGINT NOT NULL,"
          " witnessed BIGINT NOT NULL)",
          "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
          "CREATE TABLE policies (digest TEXT PRIMARY KEY, number BIGINT NOT NULL UNIQUE,"
          " files TEXT NOT NULL)",
          "CREATE TABLE outputs (lease TEXT PRIMARY KEY, sequence BIGINT NOT NULL,"
          " bytes BIGINT NOT NULL, dropped BIGINT NOT NULL, changed_ms BIGINT NOT NULL)",
          "CREATE INDEX outputs_by_change ON outputs (changed_ms)",
          "CREATE TABLE output_chunks (lease TEXT NOT NULL, sequence BIGINT NOT NULL,"
          " is_error BIGINT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (lease, sequence))",
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
