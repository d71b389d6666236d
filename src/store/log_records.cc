#include "store/log_records.h"

namespace ringfence::store {
namespace {

Error Taken() {
  return {Code::kConflict, "another server has taken the turn to build the audit log"};
}

// The statement returns a row when it changed one.
Status Changed(const Result<std::vector<Row>>& result) {
  RINGFENCE_TRY(result);
  return result->empty() ? Status(Taken()) : Status();
}

}  // namespace

Result<LogHead> GetLogHead(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT size, note FROM log_head WHERE one = 1", {}));
  if (rows.size() != 1) {
    return Error{Code::kCorrupt, "the database does not say how far its log is",
                 "restore it from a backup"};
  }
  return LogHead{IntAt(rows[0], 0), TextAt(rows[0], 1)};
}

Result<LogTurn> GetLogTurn(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT holder, epoch, beat FROM log_turn WHERE one = 1", {}));
  if (rows.size() != 1) {
    return Error{Code::kCorrupt, "the database does not say whose turn it is to build its log",
                 "restore it from a backup"};
  }
  return LogTurn{TextAt(rows[0], 0), IntAt(rows[0], 1), IntAt(rows[0], 2)};
}

Result<LogTurn> TakeLogTurn(Connection& db, const LogTurn& seen, const std::string& holder) {
  const LogTurn mine{holder, seen.epoch + 1, 0};
  RINGFENCE_TRY(
      Changed(db.Run("UPDATE log_turn SET holder = $1, epoch = $2, beat = 0"
                     " WHERE one = 1 AND epoch = $3 AND beat = $4 RETURNING one",
                     {mine.holder, mine.epoch, seen.epoch, seen.beat})));
  return mine;
}

Status KeepLogTurn(Connection& db, const LogTurn& turn) {
  return Changed(
      db.Run("UPDATE log_turn SET beat = beat + 1"
             " WHERE one = 1 AND holder = $1 AND epoch = $2 RETURNING one",
             {turn.holder, turn.epoch}));
}

Status GiveBackLogTurn(Connection& db, const LogTurn& turn) {
  return Changed(
      db.Run("UPDATE log_turn SET holder = '', beat = beat + 1"
             " WHERE one = 1 AND holder = $1 AND epoch = $2 RETURNING one",
             {turn.holder, turn.epoch}));
}

Status PublishLogHead(Connection& db, const LogTurn& turn, const LogHead& head) {
  RINGFENCE_TRY(KeepLogTurn(db, turn));
  return Changed(
      db.Run("UPDATE log_head SET size = $1, note = $2"
             " WHERE one = 1 AND size <= $1 RETURNING one",
             {head.size, head.note}));
}

Status RestoreLogHead(Connection& db, const LogHead& head) {
  RINGFENCE_ASSIGN(const LogHead before, GetLogHead(db));
  if (before.size != 0 || !before.note.empty()) {
    return Error{Code::kConflict, "the database has published a log of its own"};
  }
  RINGFENCE_TRY(
      db.Run("UPDATE log_head SET size = $1, note = $2 WHERE one = 1", {head.size, head.note}));
  return {};
}

Status PutCosignature(Connection& db, const std::string& witness, std::int64_t size,
                      const std::string& line) {
  RINGFENCE_TRY(
      db.Run("INSERT INTO cosignatures (witness, size, line) VALUES ($1, $2, $3)"
             " ON CONFLICT (witness) DO UPDATE SET size = $2, line = $3"
             " WHERE cosignatures.size <= $2",
             {witness, size, line}));
  return {};
}

Result<std::vector<std::string>> CosignaturesOf(Connection& db, std::int64_t size) {
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT line FROM cosignatures WHERE size = $1 ORDER BY witness", {size}));
  std::vector<std::string> lines;
  lines.reserve(rows.size());
  for (const Row& row : rows) {
    lines.push_back(TextAt(row, 0));
  }
  return lines;
}

}  // namespace ringfence::store
