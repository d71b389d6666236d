#include "store/queue_records.h"

namespace ringfence::store {
namespace {

std::string BeatOf(const std::string& lease) { return "queue-beat:" + lease; }

}  // namespace

// No lease that waits has a node, and the index of open leases has the node in it.
Result<bool> AnyQueued(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT 1 FROM leases WHERE is_open = 1 AND node = ''"
                                           " AND state = 'queued' LIMIT 1",
                                           {}));
  return !rows.empty();
}

Result<std::int64_t> CountQueued(Connection& db, const std::string& tenant) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT COUNT(*) FROM leases WHERE is_open = 1 AND node = ''"
                          " AND state = 'queued' AND ($1 = '' OR tenant = $1)",
                          {tenant}));
  return IntAt(rows[0], 0);
}

Result<std::int64_t> QueuePosition(Connection& db, const std::string& lease) {
  RINGFENCE_ASSIGN(const auto own, db.Run("SELECT number FROM leases WHERE id = $1 AND"
                                          " state = 'queued'",
                                          {lease}));
  if (own.empty()) {
    return std::int64_t{0};
  }
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT COUNT(*) FROM leases WHERE is_open = 1 AND node = ''"
                          " AND state = 'queued' AND number <= $1",
                          {IntAt(own[0], 0)}));
  return IntAt(rows[0], 0);
}

Status PutBeat(Connection& db, const std::string& lease, Timestamp now) {
  RINGFENCE_TRY(
      db.Run("INSERT INTO facts (name, value) VALUES ($1, $2)"
             " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
             {BeatOf(lease), FormatTime(now)}));
  return {};
}

Result<std::optional<Timestamp>> GetBeat(Connection& db, const std::string& lease) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT value FROM facts WHERE name = $1", {BeatOf(lease)}));
  if (rows.empty()) {
    return std::optional<Timestamp>();
  }
  RINGFENCE_ASSIGN(const Timestamp time, ParseTime(TextAt(rows[0], 0)));
  return std::optional<Timestamp>(time);
}

Status DropBeat(Connection& db, const std::string& lease) {
  RINGFENCE_TRY(db.Run("DELETE FROM facts WHERE name = $1", {BeatOf(lease)}));
  return {};
}

}  // namespace ringfence::store
