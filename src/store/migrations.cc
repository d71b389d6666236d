#include "store/migrations.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/check.h"
#include "os/log.h"

namespace ringfence::store {
namespace {

// Whether programs that know only the schema before this one can go on working beside it.
enum class Beside { kOlder, kNobody };

struct Migration {
  Beside beside;
  std::vector<std::string_view> statements;
  std::optional<Dialect> only = {};
};

// Only ever added to at the end.
const std::vector<Migration>& AllMigrations() {
  static const std::vector<Migration> all = {
      {Beside::kNobody,
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
       }},
      // The schema that a program must know at least to work with this database.
      {Beside::kOlder, {"ALTER TABLE schema_version ADD COLUMN least BIGINT NOT NULL DEFAULT 1"}},
      // Several servers on one database: whose turn it is to build the log, and how far it is;
      // and what jobs print, for all of them to read.
      {Beside::kNobody,
       {
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
       }},
      // SQLite keeps a table by such a key and no other: one tree less for each entry.
      {Beside::kOlder,
       {
           "CREATE TABLE audit_by_seq (seq INTEGER PRIMARY KEY, action TEXT NOT NULL,"
           " lease TEXT NOT NULL, entry BLOB NOT NULL)",
           "INSERT INTO audit_by_seq SELECT seq, action, lease, entry FROM audit ORDER BY seq",
           "DROP TABLE audit",
           "ALTER TABLE audit_by_seq RENAME TO audit",
           "CREATE INDEX audit_by_lease ON audit (lease, seq)",
           "CREATE INDEX audit_by_action ON audit (action, seq)",
       },
       Dialect::kSqlite},
      // Most entries are of no lease.
      {Beside::kOlder,
       {
           "DROP INDEX audit_by_lease",
           "CREATE INDEX audit_by_lease ON audit (lease, seq) WHERE lease <> ''",
       }},
      // What happened, as detection sees it; what it found; and how far it is.
      {Beside::kOlder,
       {
           "CREATE TABLE events (seq BIGINT PRIMARY KEY, time_ms BIGINT NOT NULL,"
           " class BIGINT NOT NULL, log TEXT NOT NULL, tenant TEXT NOT NULL, lease TEXT NOT NULL,"
           " node TEXT NOT NULL, principal TEXT NOT NULL, gpus TEXT NOT NULL,"
           " bytes BIGINT NOT NULL, event TEXT NOT NULL)",
           "CREATE INDEX events_by_time ON events (time_ms)",
           "CREATE INDEX events_by_lease ON events (lease, seq) WHERE lease <> ''",
           "CREATE TABLE alerts (id TEXT PRIMARY KEY, number BIGINT NOT NULL UNIQUE,"
           " what TEXT NOT NULL, tenant TEXT NOT NULL, status TEXT NOT NULL,"
           " severity BIGINT NOT NULL, told BIGINT NOT NULL, record TEXT NOT NULL)",
           "CREATE INDEX alerts_by_what ON alerts (what, number)",
           "CREATE INDEX alerts_untold ON alerts (number) WHERE told = 0",
           "CREATE TABLE detection (one BIGINT PRIMARY KEY, audit BIGINT NOT NULL,"
           " next BIGINT NOT NULL, evaluated BIGINT NOT NULL, bytes BIGINT NOT NULL,"
           " silent TEXT NOT NULL)",
       }},
      // Feeds of known-bad indicators, in parts.
      {Beside::kOlder,
       {
           "CREATE TABLE intel_feeds (name TEXT PRIMARY KEY, upload TEXT NOT NULL,"
           " source TEXT NOT NULL, imported_by TEXT NOT NULL, time_ms BIGINT NOT NULL,"
           " parts BIGINT NOT NULL, indicators BIGINT NOT NULL, hunt_from BIGINT NOT NULL,"
           " hunt_until BIGINT NOT NULL)",
           "CREATE TABLE intel_parts (feed TEXT NOT NULL, upload TEXT NOT NULL,"
           " part BIGINT NOT NULL, time_ms BIGINT NOT NULL, indicators BIGINT NOT NULL,"
           " text TEXT NOT NULL, PRIMARY KEY (feed, upload, part))",
       }},
      // Each time that a policy came into force, with who and why, signed.
      {Beside::kOlder,
       {
           "CREATE TABLE policy_versions (number BIGINT PRIMARY KEY, digest TEXT NOT NULL,"
           " envelope TEXT NOT NULL)",
           "CREATE INDEX policy_versions_by_digest ON policy_versions (digest)",
       }},
      // Which permissions are used, and since when each binding is there.
      {Beside::kOlder,
       {
           "CREATE TABLE access_uses (principal TEXT NOT NULL, action TEXT NOT NULL,"
           " tenant TEXT NOT NULL, first_ms BIGINT NOT NULL, last_ms BIGINT NOT NULL,"
           " uses BIGINT NOT NULL, PRIMARY KEY (principal, action, tenant))",
           "CREATE INDEX access_uses_by_last ON access_uses (last_ms)",
           "CREATE TABLE binding_grants (one BIGINT PRIMARY KEY, grants TEXT NOT NULL)",
       }},
      // Events that came together, packed. Rules of an older program that leads meanwhile do not
      // see them.
      {Beside::kOlder,
       {
           "CREATE TABLE event_blocks (last BIGINT PRIMARY KEY, first BIGINT NOT NULL,"
           " time_min_ms BIGINT NOT NULL, time_max_ms BIGINT NOT NULL, names TEXT NOT NULL,"
           " bytes BIGINT NOT NULL, block BLOB NOT NULL)",
           "CREATE INDEX event_blocks_by_time ON event_blocks (time_max_ms)",
       }},
      // What was ordered last of each GPU's MIG.
      {Beside::kOlder,
       {
           "CREATE TABLE mig_orders (gpu TEXT PRIMARY KEY, node TEXT NOT NULL,"
           " is_open BIGINT NOT NULL, record TEXT NOT NULL)",
       }},
  };
  return all;
}

constexpr int kFirstWithLeast = 2;

// The newest schema up to `version` that older programs cannot work with.
std::int64_t LeastFor(int version) {
  for (int schema = version; schema > 1; --schema) {
    if (AllMigrations()[static_cast<std::size_t>(schema - 1)].beside == Beside::kNobody) {
      return schema;
    }
  }
  return 1;
}

bool IsWordPart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

Error TooOldFor(std::int64_t have, std::int64_t least, int known) {
  return Error{Code::kFailedPrecondition,
               "the database has schema " + std::to_string(have) +
                   " and takes programs that know schema " + std::to_string(least) +
                   "; this version knows up to " + std::to_string(known),
               "a newer Ringfence changed it: start that version, or restore an older backup"};
}

Status CheckNewer(Connection& connection, std::int64_t have, int known) {
  RINGFENCE_ASSIGN(const auto rows, connection.Run("SELECT least FROM schema_version", {}));
  const std::int64_t least = IntAt(rows[0], 0);
  if (least > known) {
    return TooOldFor(have, least, known);
  }
  os::Log(os::Level::kInfo, "database_newer",
          {{"schema", std::to_string(have)}, {"known", std::to_string(known)}});
  return {};
}

}  // namespace

int NewestSchema() {
  const int all = static_cast<int>(AllMigrations().size());
#ifdef RINGFENCE_FAILPOINTS
  // A program from before the newest schemas, for the test of a rolling upgrade.
  static const char* const older = std::getenv("RINGFENCE_TEST_SCHEMA");
  if (older != nullptr) {
    return std::min(all, std::atoi(older));  // NOLINT(cert-err34-c): a test's own number
  }
#endif
  return all;
}

int SchemaWith(std::string_view table) {
  const std::string statement = "CREATE TABLE " + std::string(table) + " (";
  const auto makes_it = [&](const Migration& migration) {
    return std::any_of(migration.statements.begin(), migration.statements.end(),
                       [&](std::string_view one) { return one.starts_with(statement); });
  };
  const auto& all = AllMigrations();
  const auto found = std::find_if(all.begin(), all.end(), makes_it);
  RINGFENCE_CHECK(found != all.end());
  return static_cast<int>(found - all.begin()) + 1;
}

Error TooOld(std::int64_t have, std::int64_t least) {
  return TooOldFor(have, least, NewestSchema());
}

std::string InDialect(std::string_view statement, Dialect dialect) {
  std::string text;
  while (!statement.empty()) {
    std::size_t end = 0;
    while (end < statement.size() && IsWordPart(statement[end])) {
      ++end;
    }
    const std::string_view word = statement.substr(0, end);
    if (dialect == Dialect::kPostgres && word == "BLOB") {
      text += "BYTEA";
    } else if (dialect == Dialect::kPostgres && word == "TEXT") {
      text += "TEXT COLLATE \"C\"";  // by bytes, as in SQLite: ranges and orders depend on it
    } else {
      text += end == 0 ? statement.substr(0, 1) : word;
    }
    statement.remove_prefix(end == 0 ? 1 : end);
  }
  return text;
}

Status Migrate(Connection& connection, Dialect dialect, int known) {
  RINGFENCE_TRY(
      connection.Run("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)", {}));
  RINGFENCE_ASSIGN(const auto rows, connection.Run("SELECT version FROM schema_version", {}));
  const std::int64_t have = rows.empty() ? 0 : IntAt(rows[0], 0);
  if (rows.empty()) {
    RINGFENCE_TRY(connection.Run("INSERT INTO schema_version (version) VALUES (0)", {}));
  }
  if (have >= known) {
    return have > known ? CheckNewer(connection, have, known) : Status();
  }
  for (std::int64_t version = have; version < known; ++version) {
    const Migration& migration = AllMigrations()[static_cast<std::size_t>(version)];
    if (migration.only.value_or(dialect) != dialect) {
      continue;
    }
    for (const auto statement : migration.statements) {
      RINGFENCE_TRY(connection.Run(InDialect(statement, dialect), {}));
    }
  }
  RINGFENCE_TRY(connection.Run("UPDATE schema_version SET version = $1", {std::int64_t{known}}));
  if (known >= kFirstWithLeast) {
    RINGFENCE_TRY(connection.Run("UPDATE schema_version SET least = $1", {LeastFor(known)}));
  }
  return {};
}

Result<int> SchemaAt(const std::string& where) {
  return IsPostgresUrl(where) ? SchemaAtPostgres(where) : SchemaAtSqlite(where);
}

Result<int> SchemaSeen(Connection& connection) {
  RINGFENCE_ASSIGN(const auto rows, connection.Run("SELECT version FROM schema_version", {}));
  if (rows.empty()) {
    return Error{Code::kNotFound, "the database has no schema yet"};
  }
  const std::int64_t have = IntAt(rows[0], 0);
  if (have > NewestSchema()) {
    RINGFENCE_TRY(CheckNewer(connection, have, NewestSchema()));
  }
  return static_cast<int>(have);
}

}  // namespace ringfence::store
