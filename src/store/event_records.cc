#include "store/event_records.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/check.h"
#include "store/records.h"

namespace ringfence::store {
namespace {

constexpr std::int64_t kForgetMax = 2000;  // rows a call
constexpr std::size_t kBlockEventsLeast = 4;
constexpr std::int64_t kBlocksAtOnce = 4;
constexpr std::string_view kColumns =
    "seq, time_ms, class, log, tenant, lease, node, principal, gpus, event";

std::int64_t Millis(Timestamp time) { return time.time_since_epoch().count(); }

std::vector<EventRow> RowsOf(const std::vector<Row>& rows) {
  std::vector<EventRow> events;
  events.reserve(rows.size());
  for (const Row& row : rows) {
    events.push_back({IntAt(row, 0), Timestamp(Milliseconds(IntAt(row, 1))), IntAt(row, 2),
                      TextAt(row, 3), TextAt(row, 4), TextAt(row, 5), TextAt(row, 6),
                      TextAt(row, 7), Unspaced(TextAt(row, 8)), TextAt(row, 9)});
  }
  return events;
}

// Only what is asked for, so that the database can use an index for it.
class Where {
 public:
  void Add(std::string_view condition, Value value) {
    values_.push_back(std::move(value));
    text_ += (text_.empty() ? " WHERE " : " AND ") + std::string(condition) + " $" +
             std::to_string(values_.size());
  }
  void Equal(std::string_view column, const std::string& value) {
    if (!value.empty()) {
      Add(std::string(column) + " =", value);
    }
  }
  std::string Next(Value value) {
    values_.push_back(std::move(value));
    return "$" + std::to_string(values_.size());
  }
  // A column of Spaced names has this one.
  void Named(const std::string& column, std::string_view name) {
    std::string pattern = "% ";
    for (const char c : name) {
      pattern += c == '%' || c == '_' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    Text(column + " LIKE " + Next(pattern + " %") + " ESCAPE '\\'");
  }
  void Text(const std::string& condition) {
    text_ += (text_.empty() ? " WHERE " : " AND ") + condition;
  }
  const std::string& text() const { return text_; }
  const std::vector<Value>& values() const { return values_; }

 private:
  std::string text_;
  std::vector<Value> values_;
};

Where WhereOf(const EventFilter& filter) {
  Where where;
  if (filter.newest_first) {
    where.Add("seq <", filter.from == 0 ? INT64_MAX : filter.from);
  } else {
    where.Add("seq >=", filter.from);
  }
  if (filter.since) {
    where.Add("time_ms >=", Millis(*filter.since));
  }
  if (filter.until) {
    where.Add("time_ms <", Millis(*filter.until));
  }
  if (filter.class_uid != 0) {
    where.Add("class =", filter.class_uid);
  }
  if (!filter.lease.empty()) {
    where.Text("lease <> ''");
    where.Equal("lease", filter.lease);
  }
  where.Equal("log", filter.log);
  where.Equal("node", filter.node);
  where.Equal("principal", filter.principal);
  if (!filter.tenant.empty()) {
    const std::string same = where.Next(filter.tenant);
    const std::string first = where.Next(filter.tenant + "/");
    const std::string end = where.Next(filter.tenant + "0");  // '0' follows '/'
    std::string condition = "(tenant = " + same;
    condition += " OR (tenant >= " + first + " AND tenant < " + end + "))";
    where.Text(condition);
  }
  if (!filter.gpu.empty()) {
    where.Named("gpus", filter.gpu);
  }
  return where;
}

// Blocks that may hold such events; which of them do is seen inside.
Where BlocksOf(const EventFilter& filter, std::int64_t from) {
  Where where;
  if (filter.newest_first) {
    where.Add("first <", from);
    const auto reach = static_cast<std::int64_t>(kBlockEventsMax);
    where.Add("last <", from > INT64_MAX - reach ? INT64_MAX : from + reach);
  } else {
    where.Add("last >=", from);
  }
  if (filter.since) {
    where.Add("time_max_ms >=", Millis(*filter.since));
  }
  if (filter.until) {
    where.Add("time_min_ms <", Millis(*filter.until));
  }
  for (const std::string* const name :
       {&filter.log, &filter.lease, &filter.node, &filter.gpu, &filter.principal}) {
    if (!name->empty()) {
      where.Named("names", *name);
    }
  }
  return where;
}

bool IsWanted(const EventRow& row, const EventFilter& filter) {
  const bool in_place =
      filter.newest_first ? filter.from == 0 || row.seq < filter.from : row.seq >= filter.from;
  const auto is = [](const std::string& wanted, const std::string& value) {
    return wanted.empty() || wanted == value;
  };
  const bool in_tenant =
      is(filter.tenant, row.tenant) || row.tenant.starts_with(filter.tenant + "/");
  return in_place && in_tenant && (!filter.since || row.time >= *filter.since) &&
         (!filter.until || row.time < *filter.until) &&
         (filter.class_uid == 0 || row.class_uid == filter.class_uid) && is(filter.log, row.log) &&
         is(filter.lease, row.lease) && is(filter.node, row.node) &&
         is(filter.principal, row.principal) &&
         (filter.gpu.empty() ||
          std::find(row.gpus.begin(), row.gpus.end(), filter.gpu) != row.gpus.end());
}

// Adds what blocks hold to `found`, in order, until there are enough, or all that follows comes
// after `stop_at` anyway.
Status ListPacked(Connection& db, const EventFilter& filter, std::optional<std::int64_t> stop_at,
                  std::vector<EventRow>& found) {
  const bool down = filter.newest_first;
  std::int64_t from = down && filter.from == 0 ? INT64_MAX : filter.from;
  std::int64_t taken = 0;
  while (taken < filter.limit) {
    Where where = BlocksOf(filter, from);
    const std::string limit = where.Next(kBlocksAtOnce);
    RINGFENCE_ASSIGN(const auto blocks,
                     db.Run("SELECT first, last, block FROM event_blocks" + where.text() +
                                " ORDER BY last" + (down ? " DESC" : "") + " LIMIT " + limit,
                            where.values()));
    for (const Row& block : blocks) {
      const std::int64_t first = IntAt(block, 0);
      const std::int64_t last = IntAt(block, 1);
      if (taken >= filter.limit || (stop_at && (down ? last < *stop_at : first > *stop_at))) {
        return {};
      }
      RINGFENCE_ASSIGN(std::vector<EventRow> rows, UnpackEvents(BlobAt(block, 2), first));
      if (down) {
        std::reverse(rows.begin(), rows.end());
      }
      for (EventRow& row : rows) {
        if (taken < filter.limit && IsWanted(row, filter)) {
          found.push_back(std::move(row));
          ++taken;
        }
      }
      from = down ? first : last + 1;
    }
    if (static_cast<std::int64_t>(blocks.size()) < kBlocksAtOnce) {
      break;
    }
  }
  return {};
}

}  // namespace

Result<Detection> GetDetection(Connection& db) {
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT audit, next, evaluated, bytes, silent FROM detection WHERE one = 1", {}));
  if (rows.empty()) {
    return Error{Code::kNotFound, "detection has not begun"};
  }
  return Detection{IntAt(rows[0], 0), IntAt(rows[0], 1), IntAt(rows[0], 2), IntAt(rows[0], 3),
                   Unspaced(TextAt(rows[0], 4))};
}

Result<Detection> SettleDetection(Connection& db) {
  auto known = GetDetection(db);
  if (known.has_value() || known.error().code != Code::kNotFound) {
    return known;
  }
  Detection detection;
  RINGFENCE_ASSIGN(detection.audit, AuditSize(db));
  RINGFENCE_TRY(PutDetection(db, detection));
  return detection;
}

Status PutDetection(Connection& db, const Detection& detection) {
  RINGFENCE_TRY(
      db.Run("INSERT INTO detection (one, audit, next, evaluated, bytes, silent)"
             " VALUES (1, $1, $2, $3, $4, $5) ON CONFLICT (one) DO UPDATE SET"
             " audit = $1, next = $2, evaluated = $3, bytes = $4, silent = $5",
             {detection.audit, detection.next, detection.evaluated, detection.bytes,
              Spaced(detection.silent)}));
  return {};
}

Status InsertEvent(Connection& db, Detection& detection, EventRow row) {
  RINGFENCE_CHECK(row.seq == detection.next);
  const auto bytes = static_cast<std::int64_t>(row.event.size());
  RINGFENCE_TRY(
      db.Run("INSERT INTO events (seq, time_ms, class, log, tenant, lease, node, principal, gpus,"
             " bytes, event) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
             {row.seq, Millis(row.time), row.class_uid, std::move(row.log), std::move(row.tenant),
              std::move(row.lease), std::move(row.node), std::move(row.principal), Spaced(row.gpus),
              bytes, std::move(row.event)}));
  ++detection.next;
  detection.bytes += bytes;
  return {};
}

EventBatch::EventBatch(std::vector<EventRow> rows) : size_(static_cast<std::int64_t>(rows.size())) {
  if (rows.size() < kBlockEventsLeast) {
    few_ = std::move(rows);
    return;
  }
  for (std::size_t at = 0; at < rows.size(); at += kBlockEventsMax) {
    const std::size_t end = std::min(rows.size(), at + kBlockEventsMax);
    const std::vector<EventRow> part(
        std::make_move_iterator(rows.begin() + static_cast<std::ptrdiff_t>(at)),
        std::make_move_iterator(rows.begin() + static_cast<std::ptrdiff_t>(end)));
    Block block{static_cast<std::int64_t>(part.size()), INT64_MAX, INT64_MIN, {}, {}};
    std::set<std::string> names;
    for (const EventRow& row : part) {
      block.time_min_ms = std::min(block.time_min_ms, Millis(row.time));
      block.time_max_ms = std::max(block.time_max_ms, Millis(row.time));
      for (const std::string* const name : {&row.log, &row.lease, &row.node, &row.principal}) {
        if (!name->empty()) {
          names.insert(*name);
        }
      }
      names.insert(row.gpus.begin(), row.gpus.end());
    }
    block.names = Spaced({names.begin(), names.end()});
    block.block = PackEvents(part);
    blocks_.push_back(std::move(block));
  }
}

Status InsertEvents(Connection& db, Detection& detection, const EventBatch& batch) {
  for (EventRow row : batch.few_) {
    NumberEvent(row, detection.next);
    RINGFENCE_TRY(InsertEvent(db, detection, std::move(row)));
  }
  for (const EventBatch::Block& block : batch.blocks_) {
    const auto bytes = static_cast<std::int64_t>(block.block.size() + block.names.size());
    const std::int64_t last = detection.next + block.count - 1;
    RINGFENCE_TRY(
        db.Run("INSERT INTO event_blocks (last, first, time_min_ms, time_max_ms, names, bytes,"
               " block) VALUES ($1, $2, $3, $4, $5, $6, $7)",
               {last, detection.next, block.time_min_ms, block.time_max_ms, block.names, bytes,
                block.block}));
    detection.next += block.count;
    detection.bytes += bytes;
  }
  return {};
}

Result<std::vector<EventRow>> ListEvents(Connection& db, const EventFilter& filter) {
  Where where = WhereOf(filter);
  const std::string limit = where.Next(filter.limit);
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT " + std::string(kColumns) + " FROM events" + where.text() + " ORDER BY seq" +
                 (filter.newest_first ? " DESC" : "") + " LIMIT " + limit,
             where.values()));
  std::vector<EventRow> events = RowsOf(rows);
  const auto alone = static_cast<std::ptrdiff_t>(events.size());
  const bool enough = alone >= filter.limit;
  RINGFENCE_TRY(
      ListPacked(db, filter, enough ? std::optional(events.back().seq) : std::nullopt, events));
  std::inplace_merge(events.begin(), events.begin() + alone, events.end(),
                     [&](const EventRow& a, const EventRow& b) {
                       return filter.newest_first ? a.seq > b.seq : a.seq < b.seq;
                     });
  if (events.size() > static_cast<std::size_t>(filter.limit)) {
    events.resize(static_cast<std::size_t>(filter.limit));
  }
  return events;
}

Result<std::vector<EventRow>> EventsNumbered(Connection& db,
                                             const std::vector<std::int64_t>& numbers) {
  std::vector<EventRow> events;
  std::vector<EventRow> block;
  for (const std::int64_t number : std::set<std::int64_t>(numbers.begin(), numbers.end())) {
    RINGFENCE_ASSIGN(
        const auto rows,
        db.Run("SELECT " + std::string(kColumns) + " FROM events WHERE seq = $1", {number}));
    if (!rows.empty()) {
      events.push_back(std::move(RowsOf(rows).front()));
      continue;
    }
    if (block.empty() || number < block.front().seq || number > block.back().seq) {
      RINGFENCE_ASSIGN(const auto packed,
                       db.Run("SELECT first, block FROM event_blocks WHERE last >= $1"
                              " ORDER BY last LIMIT 1",
                              {number}));
      block.clear();
      if (!packed.empty() && IntAt(packed[0], 0) <= number) {
        RINGFENCE_ASSIGN(block, UnpackEvents(BlobAt(packed[0], 1), IntAt(packed[0], 0)));
      }
    }
    if (!block.empty() && number >= block.front().seq && number <= block.back().seq) {
      events.push_back(block[static_cast<std::size_t>(number - block.front().seq)]);
    }
  }
  return events;
}

Result<bool> ForgetEvents(Connection& db, const EventLimits& limits) {
  RINGFENCE_ASSIGN(Detection detection, GetDetection(db));
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT last, time_ms, bytes FROM (SELECT * FROM (SELECT seq AS last,"
                          " time_ms, bytes FROM events ORDER BY seq LIMIT $1) AS alone UNION ALL"
                          " SELECT * FROM (SELECT last, time_max_ms AS time_ms, bytes FROM"
                          " event_blocks ORDER BY last LIMIT $1) AS packed) AS oldest"
                          " ORDER BY last LIMIT $1",
                          {kForgetMax}));
  std::int64_t end = -1;
  std::int64_t count = 0;
  for (const Row& row : rows) {
    const bool is_old = IntAt(row, 1) < Millis(limits.keep_after);
    // What rules have not seen yet stays.
    if ((!is_old && detection.bytes <= limits.bytes_max) || IntAt(row, 0) >= detection.evaluated) {
      break;
    }
    end = IntAt(row, 0);
    detection.bytes -= IntAt(row, 2);
    ++count;
  }
  if (end < 0) {
    return false;
  }
  RINGFENCE_TRY(db.Run("DELETE FROM events WHERE seq <= $1", {end}));
  RINGFENCE_TRY(db.Run("DELETE FROM event_blocks WHERE last <= $1", {end}));
  RINGFENCE_TRY(PutDetection(db, detection));
  return count == kForgetMax;
}

}  // namespace ringfence::store
