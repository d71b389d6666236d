#include "store/intel_records.h"

namespace ringfence::store {
namespace {

std::int64_t Ms(Timestamp time) { return time.time_since_epoch().count(); }

}  // namespace

Status PutIntelPart(Connection& db, const IntelFeed& feed, std::int64_t part,
                    const std::string& text) {
  RINGFENCE_TRY(db.Run("DELETE FROM intel_parts WHERE feed = $1 AND upload = $2 AND part = $3",
                       {feed.name, feed.upload, part}));
  RINGFENCE_TRY(
      db.Run("INSERT INTO intel_parts (feed, upload, part, time_ms, indicators, text)"
             " VALUES ($1, $2, $3, $4, $5, $6)",
             {feed.name, feed.upload, part, Ms(feed.time), feed.indicators, text}));
  return {};
}

Status PutIntelFeed(Connection& db, IntelFeed& feed) {
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT CAST(COUNT(*) AS BIGINT), CAST(COALESCE(SUM(indicators), 0) AS BIGINT)"
             " FROM intel_parts WHERE feed = $1 AND"
             " upload = $2 AND part < $3",
             {feed.name, feed.upload, feed.parts}));
  if (IntAt(rows[0], 0) != feed.parts) {
    return Error{Code::kConflict,
                 "of " + std::to_string(feed.parts) + " parts " +
                     std::to_string(IntAt(rows[0], 0)) + " are here",
                 "import the feed again"};
  }
  feed.indicators = IntAt(rows[0], 1);
  RINGFENCE_TRY(
      db.Run("DELETE FROM intel_parts WHERE feed = $1 AND upload <> $2", {feed.name, feed.upload}));
  RINGFENCE_TRY(db.Run("DELETE FROM intel_feeds WHERE name = $1", {feed.name}));
  RINGFENCE_TRY(
      db.Run("INSERT INTO intel_feeds (name, upload, source, imported_by, time_ms, parts,"
             " indicators, hunt_from, hunt_until)"
             " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
             {feed.name, feed.upload, feed.source, feed.by, Ms(feed.time), feed.parts,
              feed.indicators, feed.hunt_from, feed.hunt_until}));
  return {};
}

Result<std::vector<IntelFeed>> ListIntelFeeds(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT name, upload, source, imported_by, time_ms, parts, indicators,"
                          " hunt_from, hunt_until FROM intel_feeds ORDER BY name",
                          {}));
  std::vector<IntelFeed> feeds;
  for (const Row& row : rows) {
    feeds.push_back({TextAt(row, 0), TextAt(row, 1), TextAt(row, 2), TextAt(row, 3),
                     Timestamp(Milliseconds(IntAt(row, 4))), IntAt(row, 5), IntAt(row, 6),
                     IntAt(row, 7), IntAt(row, 8)});
  }
  return feeds;
}

Result<std::vector<std::string>> IntelPartsOf(Connection& db, const IntelFeed& feed) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT text FROM intel_parts WHERE feed = $1 AND"
                                           " upload = $2 AND part < $3 ORDER BY part",
                                           {feed.name, feed.upload, feed.parts}));
  std::vector<std::string> parts;
  for (const Row& row : rows) {
    parts.push_back(TextAt(row, 0));
  }
  return parts;
}

Status RemoveIntelFeed(Connection& db, const std::string& name) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT name FROM intel_feeds WHERE name = $1", {name}));
  if (rows.empty()) {
    return Error{Code::kNotFound, "no feed \"" + name.substr(0, 64) + "\"",
                 "`ringfence intel list` shows those there are"};
  }
  RINGFENCE_TRY(db.Run("DELETE FROM intel_parts WHERE feed = $1", {name}));
  RINGFENCE_TRY(db.Run("DELETE FROM intel_feeds WHERE name = $1", {name}));
  return {};
}

Status SetHunted(Connection& db, const IntelFeed& feed) {
  RINGFENCE_TRY(db.Run(
      "UPDATE intel_feeds SET hunt_from = $3, hunt_until = $4 WHERE name = $1 AND upload = $2",
      {feed.name, feed.upload, feed.hunt_from, feed.hunt_until}));
  return {};
}

Status ForgetIntelParts(Connection& db, Timestamp before) {
  RINGFENCE_TRY(
      db.Run("DELETE FROM intel_parts WHERE time_ms < $1 AND NOT EXISTS (SELECT 1 FROM"
             " intel_feeds WHERE intel_feeds.name = intel_parts.feed AND"
             " intel_feeds.upload = intel_parts.upload)",
             {Ms(before)}));
  return {};
}

}  // namespace ringfence::store
