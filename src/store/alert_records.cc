#include "store/alert_records.h"

namespace ringfence::store {
namespace {

constexpr std::string_view kColumns =
    "id, number, what, tenant, status, severity, told, record FROM alerts";

AlertRow RowOf(const Row& row) {
  return {TextAt(row, 0), IntAt(row, 1), TextAt(row, 2),     TextAt(row, 3),
          TextAt(row, 4), IntAt(row, 5), IntAt(row, 6) != 0, TextAt(row, 7)};
}

std::vector<AlertRow> RowsOf(const std::vector<Row>& rows) {
  std::vector<AlertRow> alerts;
  alerts.reserve(rows.size());
  for (const Row& row : rows) {
    alerts.push_back(RowOf(row));
  }
  return alerts;
}

std::string Select(std::string_view rest) {
  return "SELECT " + std::string(kColumns) + " " + std::string(rest);
}

}  // namespace

Status InsertAlert(Connection& db, const AlertRow& row) {
  RINGFENCE_ASSIGN(const auto newest,
                   db.Run("SELECT COALESCE(MAX(number), 0) + 1 FROM alerts", {}));
  const std::int64_t number = IntAt(newest[0], 0);
  RINGFENCE_TRY(
      db.Run("INSERT INTO alerts (id, number, what, tenant, status, severity, told, record)"
             " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
             {row.id, number, row.what, row.tenant, row.status, row.severity,
              std::int64_t{row.told ? 1 : 0}, row.record}));
  RINGFENCE_TRY(db.Run("DELETE FROM alerts WHERE number <= $1", {number - kAlertsMax}));
  return {};
}

Status UpdateAlert(Connection& db, const AlertRow& row) {
  RINGFENCE_TRY(db.Run("UPDATE alerts SET status = $2, severity = $3, record = $4 WHERE id = $1",
                       {row.id, row.status, row.severity, row.record}));
  return {};
}

Result<AlertRow> GetAlert(Connection& db, const std::string& id) {
  RINGFENCE_ASSIGN(const auto rows, db.Run(Select("WHERE id = $1"), {id}));
  if (rows.empty()) {
    return Error{Code::kNotFound, "no alert \"" + id.substr(0, 64) + "\"",
                 "`ringfence alert list --all` shows those there are"};
  }
  return RowOf(rows[0]);
}

Result<std::optional<AlertRow>> FindAlert(Connection& db, const std::string& what) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run(Select("WHERE what = $1 ORDER BY number DESC LIMIT 1"), {what}));
  return rows.empty() ? std::optional<AlertRow>() : std::optional(RowOf(rows[0]));
}

Result<std::vector<AlertRow>> ListAlerts(Connection& db, const AlertFilter& filter) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run(Select("WHERE ($1 = '' OR status = $1) AND ($2 = '' OR tenant = $2 OR"
                                 " (tenant >= $3 AND tenant < $4)) AND severity >= $5"
                                 " AND ($6 = 0 OR number < $6) ORDER BY number DESC LIMIT $7"),
                          {filter.status, filter.tenant, filter.tenant + "/", filter.tenant + "0",
                           filter.severity_least, filter.before, filter.limit}));
  return RowsOf(rows);
}

Result<std::int64_t> CountAlerts(Connection& db, const std::string& status) {
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT CAST(COUNT(*) AS BIGINT) FROM alerts WHERE status = $1", {status}));
  return IntAt(rows[0], 0);
}

Result<std::vector<AlertRow>> UntoldAlerts(Connection& db, std::int64_t limit) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run(Select("WHERE told = 0 ORDER BY number LIMIT $1"), {limit}));
  return RowsOf(rows);
}

Status SetTold(Connection& db, const std::string& id) {
  RINGFENCE_TRY(db.Run("UPDATE alerts SET told = 1 WHERE id = $1", {id}));
  return {};
}

}  // namespace ringfence::store
