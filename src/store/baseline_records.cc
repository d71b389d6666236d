#include "store/baseline_records.h"

namespace ringfence::store {

Status PutBaselines(Connection& db, const std::vector<BaselineRow>& rows) {
  for (const BaselineRow& row : rows) {
    RINGFENCE_TRY(
        db.Run("INSERT INTO baselines (name, heard_ms, state) VALUES ($1, $2, $3)"
               " ON CONFLICT (name) DO UPDATE SET heard_ms = $2, state = $3",
               {row.name, row.heard.time_since_epoch().count(), row.state}));
  }
  return {};
}

Result<std::vector<BaselineRow>> ListBaselines(Connection& db, std::int64_t limit) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT name, heard_ms, state FROM baselines"
                                           " ORDER BY heard_ms DESC, name LIMIT $1",
                                           {limit}));
  std::vector<BaselineRow> all;
  for (const Row& row : rows) {
    all.push_back({TextAt(row, 0), Timestamp(Milliseconds(IntAt(row, 1))), BlobAt(row, 2)});
  }
  return all;
}

Status ForgetBaselines(Connection& db, Timestamp before) {
  RINGFENCE_TRY(
      db.Run("DELETE FROM baselines WHERE heard_ms < $1", {before.time_since_epoch().count()}));
  return {};
}

}  // namespace ringfence::store
