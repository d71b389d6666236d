#include "store/output_records.h"

namespace ringfence::store {
namespace {

constexpr std::int64_t kForgetMax = 64;  // leases a call: each may have 64 MiB

struct Totals {
  std::int64_t sequence = 0;
  std::int64_t bytes = 0;
  std::int64_t dropped = 0;
};

Result<Totals> TotalsOf(Connection& db, const std::string& lease) {
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT sequence, bytes, dropped FROM outputs WHERE lease = $1", {lease}));
  return rows.empty() ? Totals() : Totals{IntAt(rows[0], 0), IntAt(rows[0], 1), IntAt(rows[0], 2)};
}

}  // namespace

Status AppendOutput(Connection& db, const std::string& lease, std::int64_t first,
                    const std::vector<OutputChunk>& chunks, Timestamp now) {
  RINGFENCE_ASSIGN(Totals totals, TotalsOf(db, lease));
  if (first > totals.sequence + 1) {
    return Error{Code::kFailedPrecondition,
                 "output of " + lease + ": expected " + std::to_string(totals.sequence + 1)};
  }
  const std::int64_t before = totals.sequence;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const OutputChunk& chunk = chunks[i];
    const auto bytes = static_cast<std::int64_t>(chunk.data.size());
    const std::int64_t sequence = first + static_cast<std::int64_t>(i);
    if (chunk.data.size() > kOutputChunkBytesMax) {
      return Error{Code::kInvalidArgument, "output chunk is too long", {}, "chunks"};
    }
    if (sequence <= before) {
      continue;
    }
    totals.sequence = sequence;
    if (totals.bytes + bytes > kOutputBytesMax) {
      totals.dropped += bytes;
      continue;
    }
    totals.bytes += bytes;
    RINGFENCE_TRY(
        db.Run("INSERT INTO output_chunks (lease, sequence, is_error, data)"
               " VALUES ($1, $2, $3, $4)",
               {lease, sequence, std::int64_t{chunk.is_error ? 1 : 0}, chunk.data}));
  }
  if (totals.sequence == before) {
    return {};
  }
  RINGFENCE_TRY(
      db.Run("INSERT INTO outputs (lease, sequence, bytes, dropped, changed_ms)"
             " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (lease) DO UPDATE SET"
             " sequence = $2, bytes = $3, dropped = $4, changed_ms = $5",
             {lease, totals.sequence, totals.bytes, totals.dropped,
              std::int64_t{now.time_since_epoch().count()}}));
  return {};
}

Result<OutputPage> ReadOutput(Connection& db, const std::string& lease, std::int64_t after) {
  OutputPage page;
  page.next = after;
  RINGFENCE_ASSIGN(const Totals totals, TotalsOf(db, lease));
  page.dropped = totals.dropped;
  // The lengths first: a page has many small chunks or a few large ones.
  RINGFENCE_ASSIGN(const auto lengths,
                   db.Run("SELECT sequence, length(data) FROM output_chunks"
                          " WHERE lease = $1 AND sequence > $2 ORDER BY sequence LIMIT 1024",
                          {lease, after}));
  std::int64_t bytes = 0;
  for (const Row& row : lengths) {
    if (bytes > 0 && bytes + IntAt(row, 1) > kOutputPageBytesMax) {
      break;
    }
    bytes += IntAt(row, 1);
    page.next = IntAt(row, 0);
  }
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT is_error, data FROM output_chunks WHERE lease = $1"
                          " AND sequence > $2 AND sequence <= $3 ORDER BY sequence",
                          {lease, after, page.next}));
  for (const Row& row : rows) {
    page.chunks.push_back({IntAt(row, 0) != 0, BlobAt(row, 1)});
  }
  page.at_end = rows.size() == lengths.size() && lengths.size() < 1024;
  return page;
}

Result<bool> ForgetOutput(Connection& db, Timestamp before) {
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT lease FROM outputs WHERE changed_ms < $1 AND NOT EXISTS"
             " (SELECT 1 FROM leases WHERE leases.id = outputs.lease AND leases.is_open = 1)"
             " ORDER BY changed_ms LIMIT $2",
             {std::int64_t{before.time_since_epoch().count()}, kForgetMax}));
  for (const Row& row : rows) {
    const std::string& lease = TextAt(row, 0);
    RINGFENCE_TRY(db.Run("DELETE FROM output_chunks WHERE lease = $1", {lease}));
    RINGFENCE_TRY(db.Run("DELETE FROM outputs WHERE lease = $1", {lease}));
  }
  return static_cast<std::int64_t>(rows.size()) == kForgetMax;
}

}  // namespace ringfence::store
