#include "store/event_records.h"

#include "base/check.h"
#include "store/records.h"

namespace ringfence::store {
namespace {

constexpr std::int64_t kForgetMax = 2000;  // events a call
constexpr std::string_view kColumns =
    "seq, time_ms, class, log, tenant, lease, node, principal, gpus, event";

std::int64_t Millis(Timestamp time) { return time.time_since_epoch().count(); }

// " a b ": each name between blanks, so that one of them can be looked for.
std::string Spaced(const std::vector<std::string>& names) {
  std::string text = names.empty() ? "" : " ";
  for (const std::string& name : names) {
    text += name + " ";
  }
  return text;
}

std::vector<std::string> Unspaced(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    if (space != 0) {
      names.emplace_back(text.substr(0, space));
    }
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return names;
}

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
    std::string pattern = "% ";
    for (const char c : filter.gpu) {
      pattern += c == '%' || c == '_' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    where.Text("gpus LIKE " + where.Next(pattern + " %") + " ESCAPE '\\'");
  }
  return where;
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

Result<std::vector<EventRow>> ListEvents(Connection& db, const EventFilter& filter) {
  Where where = WhereOf(filter);
  const std::string limit = where.Next(filter.limit);
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT " + std::string(kColumns) + " FROM events" + where.text() + " ORDER BY seq" +
                 (filter.newest_first ? " DESC" : "") + " LIMIT " + limit,
             where.values()));
  return RowsOf(rows);
}

Result<std::vector<EventRow>> EventsNumbered(Connection& db,
                                             const std::vector<std::int64_t>& numbers) {
  if (numbers.empty()) {
    return std::vector<EventRow>();
  }
  std::vector<Value> values;
  std::string list;
  for (const std::int64_t number : numbers) {
    values.emplace_back(number);
    list += (list.empty() ? "$" : ", $") + std::to_string(values.size());
  }
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT " + std::string(kColumns) + " FROM events WHERE seq IN (" + list +
                              ") ORDER BY seq",
                          values));
  return RowsOf(rows);
}

Result<bool> ForgetEvents(Connection& db, const EventLimits& limits) {
  RINGFENCE_ASSIGN(Detection detection, GetDetection(db));
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT seq, time_ms, bytes FROM events ORDER BY seq LIMIT $1", {kForgetMax}));
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
  RINGFENCE_TRY(PutDetection(db, detection));
  return count == kForgetMax;
}

}  // namespace ringfence::store
