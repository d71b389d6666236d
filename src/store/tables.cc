#include "store/tables.h"

#include <algorithm>

#include "base/check.h"

namespace ringfence::store {
namespace {

// A lease's record may have megabytes; a page of them must not have gigabytes.
constexpr int kRowsPerPage = 64;

std::string Join(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) {
    text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

std::string Parameters(std::size_t count) {
  std::string text;
  for (std::size_t i = 1; i <= count; ++i) {
    text += (text.empty() ? "$" : ", $") + std::to_string(i);
  }
  return text;
}

}  // namespace

const std::vector<TableSpec>& AllTables() {
  static const std::vector<TableSpec> kTables = {
      {"schema_version", Copies::kNothing, {}, {"version", "least"}},
      {"log_turn", Copies::kNothing, {"one"}, {"one", "holder", "epoch", "beat"}},
      {"log_head", Copies::kNothing, {"one"}, {"one", "size", "note"}},
      {"pulses", Copies::kNothing, {"node"}, {"node", "seen_ms", "witnessed"}},
      {"facts", Copies::kRows, {"name"}, {"name", "value"}},
      {"policies", Copies::kRows, {"digest"}, {"digest", "number", "files"}},
      {"policy_versions", Copies::kRows, {"number"}, {"number", "digest", "envelope"}},
      {"access_uses",
       Copies::kRows,
       {"principal", "action", "tenant"},
       {"principal", "action", "tenant", "first_ms", "last_ms", "uses"}},
      {"binding_grants", Copies::kRows, {"one"}, {"one", "grants"}},
      {"cosignatures", Copies::kRows, {"witness"}, {"witness", "size", "line"}},
      {"outputs",
       Copies::kOutput,
       {"lease"},
       {"lease", "sequence", "bytes", "dropped", "changed_ms"}},
      {"output_chunks",
       Copies::kOutput,
       {"lease", "sequence"},
       {"lease", "sequence", "is_error", "data"}},
      {"nodes", Copies::kRows, {"name"}, {"name", "record"}},
      {"gpus", Copies::kRows, {"uuid"}, {"uuid", "node", "lease", "record"}},
      {"leases",
       Copies::kRows,
       {"id"},
       {"id", "number", "tenant", "state", "is_open", "node", "record"}},
      {"mig_orders", Copies::kRows, {"gpu"}, {"gpu", "node", "is_open", "record"}},
      {"receipts", Copies::kRows, {"id"}, {"id", "lease", "node", "verified_by", "envelope"}},
      {"tokens", Copies::kRows, {"id"}, {"id", "principal", "expires_ms", "record"}},
      {"join_tokens", Copies::kRows, {"id"}, {"id", "expires_ms", "record"}},
      {"idempotency",
       Copies::kRows,
       {"principal", "key"},
       {"principal", "key", "digest", "status", "body", "created_ms"}},
      {"events",
       Copies::kRows,
       {"seq"},
       {"seq", "time_ms", "class", "log", "tenant", "lease", "node", "principal", "gpus", "bytes",
        "event"}},
      {"event_blocks",
       Copies::kRows,
       {"last"},
       {"last", "first", "time_min_ms", "time_max_ms", "names", "bytes", "block"}},
      {"alerts",
       Copies::kRows,
       {"id"},
       {"id", "number", "what", "tenant", "status", "severity", "told", "record"}},
      {"detection",
       Copies::kRows,
       {"one"},
       {"one", "audit", "next", "evaluated", "bytes", "silent"}},
      {"intel_feeds",
       Copies::kRows,
       {"name"},
       {"name", "upload", "source", "imported_by", "time_ms", "parts", "indicators", "hunt_from",
        "hunt_until"}},
      {"intel_parts",
       Copies::kRows,
       {"feed", "upload", "part"},
       {"feed", "upload", "part", "time_ms", "indicators", "text"}},
      {"audit", Copies::kEntries, {"seq"}, {"seq", "action", "lease", "entry"}},
  };
  return kTables;
}

const TableSpec* FindTable(std::string_view name) {
  const auto& tables = AllTables();
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [&](const TableSpec& table) { return table.name == name; });
  return found == tables.end() ? nullptr : &*found;
}

Status ForEachRow(Connection& db, const TableSpec& table,
                  const std::function<Status(const Row&)>& visit) {
  RINGFENCE_CHECK(!table.key.empty());
  const std::string select = "SELECT " + Join(table.columns) + " FROM " + std::string(table.name);
  const std::string order =
      " ORDER BY " + Join(table.key) + " LIMIT " + std::to_string(kRowsPerPage);
  const std::string next =
      select + " WHERE (" + Join(table.key) + ") > (" + Parameters(table.key.size()) + ")" + order;
  std::vector<Value> last;
  for (;;) {
    RINGFENCE_ASSIGN(const std::vector<Row> rows,
                     last.empty() ? db.Run(select + order, {}) : db.Run(next, last));
    for (const Row& row : rows) {
      RINGFENCE_TRY(visit(row));
    }
    if (rows.size() < kRowsPerPage) {
      return {};
    }
    last.assign(rows.back().begin(),
                rows.back().begin() + static_cast<std::ptrdiff_t>(table.key.size()));
  }
}

Status InsertRow(Connection& db, const TableSpec& table,
                 const std::vector<std::string_view>& columns, const Row& row) {
  RINGFENCE_CHECK(columns.size() == row.size());
  RINGFENCE_TRY(db.Run("INSERT INTO " + std::string(table.name) + " (" + Join(columns) +
                           ") VALUES (" + Parameters(columns.size()) + ")",
                       row));
  return {};
}

Result<bool> IsEmpty(Connection& db, const TableSpec& table) {
  RINGFENCE_ASSIGN(const std::vector<Row> rows,
                   db.Run("SELECT 1 FROM " + std::string(table.name) + " LIMIT 1", {}));
  return rows.empty();
}

}  // namespace ringfence::store
