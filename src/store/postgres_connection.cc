#include "store/postgres_connection.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "os/wait.h"

namespace ringfence::store {
namespace {

constexpr Milliseconds kConnectMax{
    5000};  // without looking up a host's name, which libpq does itself
constexpr int kOldestServer = 140000;

// Of PostgreSQL's catalogue (pg_type.dat); they never change.
constexpr Oid kBool = 16;
constexpr Oid kBytea = 17;
constexpr Oid kName = 19;
constexpr Oid kInt8 = 20;
constexpr Oid kInt2 = 21;
constexpr Oid kInt4 = 23;
constexpr Oid kText = 25;
constexpr Oid kVarchar = 1043;
constexpr Oid kVoid = 2278;

constexpr int kBinary = 1;

Oid TypeOf(const Value& value) {
  constexpr std::array<Oid, 4> kTypes{0, kInt8, kText, kBytea};  // in the order of Value's kinds
  return kTypes.at(value.index());
}

// docs: PostgreSQL, appendix A. A class is the first two characters.
Code CodeOf(std::string_view state) {
  const std::string_view family = state.substr(0, 2);
  if (family == "23") {
    return Code::kConflict;  // a broken constraint
  }
  if (state == "22021" || state == "22P05") {
    return Code::kInvalidArgument;  // text that is not UTF-8, or holds NUL
  }
  if (family == "08" || family == "53" || family == "57" || family == "58" || family == "40" ||
      state == "55P03" || state == "25P03" || state == "25P04" || state == "25006") {
    return Code::kUnavailable;  // connection, resources, shutdown, I/O, conflict, time, standby
  }
  if (state == "42501") {
    return Code::kFailedPrecondition;  // the role may not do this
  }
  return state == "XX001" || state == "XX002" ? Code::kCorrupt : Code::kInternal;
}

std::string OneLine(const char* text) {
  std::string line(text == nullptr ? "" : text);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) {
    line.pop_back();
  }
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

std::string SessionSettings() {
  const auto set = [](std::string_view name, Milliseconds value) {
    return "SET " + std::string(name) + " = " + std::to_string(value.count()) + ";";
  };
  return set("idle_in_transaction_session_timeout", kIdleInTransactionMax) +
         set("lock_timeout", kLockWaitMax) + set("statement_timeout", kStatementMax) +
         set("idle_session_timeout", Milliseconds(0)) +
         // One that died while it waits for its turn does not get it.
         set("client_connection_check_interval", Milliseconds(2000)) +
         "SET default_transaction_isolation = 'read committed';"
         "SELECT set_config('synchronous_commit', 'on', false)"
         " WHERE current_setting('synchronous_commit') <> 'remote_apply';";
}

}  // namespace

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::Open(
    const PostgresOptions& options) {
  RINGFENCE_ASSIGN(const Libpq* const libpq, LoadLibpq());
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  for (const auto& [keyword, value] : options.keywords) {
    keywords.push_back(keyword.c_str());
    values.push_back(value.c_str());
  }
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  PGconn* const raw = libpq->PQconnectStartParams(keywords.data(), values.data(), 0);
  RINGFENCE_CHECK(raw != nullptr);  // out of memory
  std::unique_ptr<PostgresConnection> connection(new PostgresConnection(*libpq, raw));
  (void)libpq->PQsetNoticeProcessor(raw, [](void*, const char*) {}, nullptr);
  RINGFENCE_TRY(connection->Connect(options.shown));
  RINGFENCE_TRY(connection->SetUp(options.shown));
  return connection;
}

PostgresConnection::~PostgresConnection() { libpq_.PQfinish(connection_); }

Status PostgresConnection::Connect(const std::string& shown) {
  const Deadline deadline = std::chrono::steady_clock::now() + kConnectMax;
  const auto failed = [&](const std::string& why) {
    lost_ = true;
    return Error{Code::kUnavailable, "database " + shown + " cannot be reached: " + why,
                 "see whether PostgreSQL runs there and lets this server in"};
  };
  bool write = true;  // as libpq wants it before the first PQconnectPoll
  while (libpq_.PQstatus(connection_) != CONNECTION_BAD) {
    RINGFENCE_ASSIGN(const bool ready, Wait(!write, write, deadline));
    if (!ready) {
      return failed("no answer within " + FormatDuration(kConnectMax));
    }
    const PostgresPollingStatusType polled = libpq_.PQconnectPoll(connection_);
    if (polled == PGRES_POLLING_OK) {
      (void)libpq_.PQsetnonblocking(connection_, 1);
      return {};
    }
    if (polled == PGRES_POLLING_FAILED) {
      break;
    }
    write = polled == PGRES_POLLING_WRITING;
  }
  return failed(OneLine(libpq_.PQerrorMessage(connection_)));
}

Status PostgresConnection::SetUp(const std::string& shown) {
  RINGFENCE_ASSIGN(const Answers about,
                   Script("SELECT current_setting('server_version_num'), current_setting('fsync'),"
                          " current_setting('full_page_writes'),"
                          " current_setting('server_encoding')"));
  const Row& row = about.rows.at(0);
  if (std::atoi(TextAt(row, 0).c_str()) < kOldestServer) {  // NOLINT(cert-err34-c): its own number
    return Error{Code::kFailedPrecondition, "database " + shown + " is too old",
                 "use PostgreSQL 14 or newer"};
  }
  for (const auto& [column, name] : {std::pair{1, "fsync"}, {2, "full_page_writes"}}) {
    if (TextAt(row, static_cast<std::size_t>(column)) != "on") {
      return Error{Code::kFailedPrecondition,
                   "database " + shown + " has " + name +
                       " off: acknowledged writes would not survive a power cut",
                   "set " + std::string(name) + " = on in its postgresql.conf and reload it"};
    }
  }
  if (TextAt(row, 3) != "UTF8") {
    return Error{Code::kFailedPrecondition, "database " + shown + " does not keep text as UTF-8",
                 "make one with: createdb --encoding=UTF8 --template=template0"};
  }
  RINGFENCE_TRY(Script(SessionSettings()));
  return {};
}

Result<bool> PostgresConnection::Wait(bool read, bool write, Deadline deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
  if (left <= Milliseconds(0)) {
    return false;
  }
  const os::Wanted wanted{libpq_.PQsocket(connection_), read, write};
  RINGFENCE_TRY(os::WaitAny(std::span(&wanted, 1), left));
  return true;
}

Error PostgresConnection::Lost(std::string_view what) {
  lost_ = true;
  return Error{Code::kUnavailable, "database: " + std::string(what)};
}

Error PostgresConnection::ErrorOf(const PGresult* result) {
  const auto field = [&](int which) {
    const char* const text = libpq_.PQresultErrorField(result, which);
    return std::string_view(text == nullptr ? "" : text);
  };
  const std::string_view severity = field(PG_DIAG_SEVERITY_NONLOCALIZED);
  if (severity == "FATAL" || severity == "PANIC" ||
      libpq_.PQstatus(connection_) == CONNECTION_BAD) {
    lost_ = true;
  }
  const std::string_view state = field(PG_DIAG_SQLSTATE);
  if (state.empty()) {  // libpq's own: the connection
    return Lost(OneLine(libpq_.PQresultErrorMessage(result)));
  }
  // The primary message alone: the detail may repeat what a record holds.
  return Error{lost_ ? Code::kUnavailable : CodeOf(state),
               "database: " + OneLine(libpq_.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY))};
}

Result<PostgresConnection::ResultPtr> PostgresConnection::Next(Deadline deadline) {
  for (;;) {
    const int flushed = libpq_.PQflush(connection_);
    if (flushed < 0 || (flushed == 0 && libpq_.PQisBusy(connection_) == 0)) {
      break;  // if it failed: the reason is the next result
    }
    RINGFENCE_ASSIGN(const bool in_time, Wait(true, flushed > 0, deadline));
    if (!in_time) {
      return Lost("no answer in time");
    }
    if (libpq_.PQconsumeInput(connection_) == 0) {
      break;  // the reason is the next result
    }
  }
  return ResultPtr(libpq_.PQgetResult(connection_), ResultFree{&libpq_});
}

Result<std::vector<PostgresConnection::ResultPtr>> PostgresConnection::Collect(int sent) {
  if (lost_ || sent == 0) {
    return Lost(OneLine(libpq_.PQerrorMessage(connection_)));
  }
  const Deadline deadline = std::chrono::steady_clock::now() + limit_;
  std::vector<ResultPtr> results;
  std::optional<Error> error;
  for (;;) {
    RINGFENCE_ASSIGN(ResultPtr result, Next(deadline));
    if (result == nullptr) {
      break;
    }
    const ExecStatusType status = libpq_.PQresultStatus(result.get());
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
      results.push_back(std::move(result));
    } else if (!error.has_value()) {
      error = ErrorOf(result.get());
    }
  }
  if (error.has_value()) {
    return *error;
  }
  return results;
}

Result<PostgresConnection::Answers> PostgresConnection::Script(const std::string& sql) {
  RINGFENCE_ASSIGN(const auto results, Collect(libpq_.PQsendQuery(connection_, sql.c_str())));
  Answers answers;
  for (const ResultPtr& result : results) {
    for (int row = 0; row < libpq_.PQntuples(result.get()); ++row) {
      Row values;
      for (int column = 0; column < libpq_.PQnfields(result.get()); ++column) {
        values.emplace_back(std::string(libpq_.PQgetvalue(result.get(), row, column)));
      }
      answers.rows.push_back(std::move(values));
    }
    answers.last_tag = libpq_.PQcmdStatus(result.get());
  }
  return answers;
}

Result<std::string> PostgresConnection::Prepare(std::string_view sql,
                                                const std::vector<Value>& values) {
  std::string key(sql);
  std::vector<Oid> types;
  for (const Value& value : values) {
    types.push_back(TypeOf(value));
    key += static_cast<char>('0' + value.index());
  }
  const auto found = prepared_.find(key);
  if (found != prepared_.end()) {
    return found->second;
  }
  const std::string name = "s" + std::to_string(prepared_.size());
  RINGFENCE_TRY(Collect(libpq_.PQsendPrepare(connection_, name.c_str(), std::string(sql).c_str(),
                                             static_cast<int>(types.size()), types.data())));
  prepared_.emplace(std::move(key), name);  // our own constant texts only: bounded by the source
  return name;
}

Result<std::vector<Row>> PostgresConnection::Execute(std::string_view sql,
                                                     const std::vector<Value>& values) {
  RINGFENCE_ASSIGN(const std::string name, Prepare(sql, values));
  std::vector<std::array<std::byte, 8>> numbers(values.size());
  std::vector<const char*> data(values.size(), nullptr);
  std::vector<int> lengths(values.size(), 0);
  const std::vector<int> formats(values.size(), kBinary);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ByteView bytes;
    if (const auto* number = std::get_if<std::int64_t>(&values[i])) {
      numbers[i] = PutBigEndian(static_cast<std::uint64_t>(*number));
      bytes = numbers[i];
    } else if (const auto* text = std::get_if<std::string>(&values[i])) {
      bytes = AsBytes(*text);
    } else if (const auto* blob = std::get_if<Bytes>(&values[i])) {
      bytes = *blob;
    } else {
      continue;  // NULL
    }
    // An empty value still needs an address: without one it is NULL.
    data[i] = bytes.empty() ? "" : reinterpret_cast<const char*>(bytes.data());
    lengths[i] = static_cast<int>(bytes.size());
  }
  RINGFENCE_ASSIGN(
      const auto results,
      Collect(libpq_.PQsendQueryPrepared(connection_, name.c_str(), static_cast<int>(values.size()),
                                         data.data(), lengths.data(), formats.data(), kBinary)));
  std::vector<Row> rows;
  for (const ResultPtr& result : results) {
    for (int row = 0; row < libpq_.PQntuples(result.get()); ++row) {
      RINGFENCE_ASSIGN(Row values_of_row, ReadRow(result.get(), row));
      rows.push_back(std::move(values_of_row));
    }
  }
  return rows;
}

Result<Row> PostgresConnection::ReadRow(const PGresult* result, int row) const {
  Row values;
  const int columns = libpq_.PQnfields(result);
  values.reserve(static_cast<std::size_t>(columns));
  for (int column = 0; column < columns; ++column) {
    const Oid type = libpq_.PQftype(result, column);
    const ByteView bytes =
        std::as_bytes(std::span(libpq_.PQgetvalue(result, row, column),
                                static_cast<std::size_t>(libpq_.PQgetlength(result, row, column))));
    if (libpq_.PQgetisnull(result, row, column) != 0 || type == kVoid) {
      values.emplace_back(std::monostate{});
    } else if (type == kInt8) {
      values.emplace_back(static_cast<std::int64_t>(GetBigEndian<std::uint64_t>(bytes)));
    } else if (type == kInt4) {
      values.emplace_back(
          std::int64_t{static_cast<std::int32_t>(GetBigEndian<std::uint32_t>(bytes))});
    } else if (type == kInt2) {
      values.emplace_back(
          std::int64_t{static_cast<std::int16_t>(GetBigEndian<std::uint16_t>(bytes))});
    } else if (type == kBool) {
      values.emplace_back(std::int64_t{bytes[0] != std::byte{0} ? 1 : 0});
    } else if (type == kText || type == kVarchar || type == kName) {
      values.emplace_back(ToText(bytes));
    } else if (type == kBytea) {
      values.emplace_back(Bytes(bytes.begin(), bytes.end()));
    } else {
      return Error{Code::kInternal, "database: column of type " + std::to_string(type) +
                                        " in an answer; CAST it to BIGINT or TEXT"};
    }
  }
  return values;
}

Result<std::vector<std::string>> PostgresConnection::TakeNotifications() {
  if (libpq_.PQconsumeInput(connection_) == 0) {
    return Lost(OneLine(libpq_.PQerrorMessage(connection_)));
  }
  std::vector<std::string> payloads;
  while (PGnotify* const notify = libpq_.PQnotifies(connection_)) {
    payloads.emplace_back(notify->extra);
    libpq_.PQfreemem(notify);
  }
  return payloads;
}

int PostgresConnection::socket() const { return libpq_.PQsocket(connection_); }

}  // namespace ringfence::store
