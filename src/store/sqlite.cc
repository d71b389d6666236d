#include <sqlite3.h>

#include <mutex>
#include <unordered_map>

#include "base/check.h"
#include "os/failpoint.h"
#include "os/file.h"
#include "store/database.h"
#include "store/migrations.h"
#include "store/work.h"

namespace ringfence::store {
namespace {

constexpr int kBusyTimeoutMs = 5000;

Error SqliteError(sqlite3* db, int rc, std::string_view what) {
  Code code = Code::kInternal;
  switch (rc & 0xff) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
      code = Code::kUnavailable;
      break;
    case SQLITE_CONSTRAINT:
      code = Code::kConflict;
      break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      code = Code::kCorrupt;
      break;
    default:
      break;
  }
  return Error{code, "database: " + std::string(what) + ": " +
                         (db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(rc))};
}

class SqliteConnection final : public WorkConnection {
 public:
  static Result<std::unique_ptr<SqliteConnection>> Open(const std::string& path, bool writer) {
    sqlite3* db = nullptr;
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (writer ? SQLITE_OPEN_CREATE : 0);
    const int rc = sqlite3_open_v2(path.c_str(), &db, flags, nullptr);
    std::unique_ptr<SqliteConnection> connection(new SqliteConnection(db));
    if (rc != SQLITE_OK) {
      return SqliteError(db, rc, "open " + path);
    }
    (void)sqlite3_extended_result_codes(db, 1);
    (void)sqlite3_busy_timeout(db, kBusyTimeoutMs);
    RINGFENCE_TRY(connection->Execute("PRAGMA journal_mode = WAL", {}));
    RINGFENCE_TRY(connection->Execute("PRAGMA synchronous = FULL", {}));
    RINGFENCE_TRY(connection->Execute("PRAGMA foreign_keys = ON", {}));
    RINGFENCE_TRY(connection->Execute("PRAGMA trusted_schema = OFF", {}));
    if (writer) {
      // A checkpoint of the WAL holds a commit up; with 1000 pages, the default, that is one commit
      // in fifty under load.
      RINGFENCE_TRY(connection->Execute("PRAGMA wal_autocheckpoint = 4000", {}));
    } else {
      RINGFENCE_TRY(connection->Execute("PRAGMA query_only = ON", {}));
      // Of each reader; the kernel keeps what they have in common.
      RINGFENCE_TRY(connection->Execute("PRAGMA cache_size = -512", {}));
    }
    return connection;
  }

  ~SqliteConnection() override {
    for (const auto& [sql, prepared] : statements_) {
      (void)sqlite3_finalize(prepared.statement);
    }
    (void)sqlite3_close(db_);
  }
  bool InTransaction() const { return sqlite3_get_autocommit(db_) == 0; }
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  Result<std::vector<Row>> Execute(std::string_view sql,
                                   const std::vector<Value>& values) override {
    RINGFENCE_ASSIGN(const Prepared* const prepared, Prepare(sql));
    sqlite3_stmt* const statement = prepared->statement;
    RINGFENCE_TRY(Bind(*prepared, values));
    std::vector<Row> rows;
    int rc = SQLITE_OK;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
      rows.push_back(ReadRow(statement));
    }
    Status status;
    if (rc != SQLITE_DONE) {
      status = SqliteError(db_, rc, "run");
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    if (!status.has_value()) {
      return status.error();
    }
    return rows;
  }

 private:
  explicit SqliteConnection(sqlite3* db) : db_(db) {}

  struct Prepared {
    sqlite3_stmt* statement = nullptr;
    std::vector<int> places;  // of $1, $2, ...
  };

  Result<const Prepared*> Prepare(std::string_view sql) {
    const auto found = statements_.find(sql);
    if (found != statements_.end()) {
      return &found->second;
    }
    Prepared prepared;
    const int rc = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &prepared.statement, nullptr);
    if (rc != SQLITE_OK) {
      return SqliteError(db_, rc, "prepare");
    }
    const int count = sqlite3_bind_parameter_count(prepared.statement);
    for (int i = 1; i <= count; ++i) {
      const std::string name = "$" + std::to_string(i);
      prepared.places.push_back(sqlite3_bind_parameter_index(prepared.statement, name.c_str()));
    }
    // Our own constant texts only: bounded by the source.
    return &statements_.emplace(sql, std::move(prepared)).first->second;
  }

  Status Bind(const Prepared& prepared, const std::vector<Value>& values) {
    sqlite3_stmt* const statement = prepared.statement;
    for (std::size_t i = 0; i < values.size(); ++i) {
      RINGFENCE_CHECK(i < prepared.places.size() && prepared.places[i] != 0);
      const int at = prepared.places[i];
      int rc = SQLITE_OK;
      if (const auto* number = std::get_if<std::int64_t>(&values[i])) {
        rc = sqlite3_bind_int64(statement, at, *number);
      } else if (const auto* text = std::get_if<std::string>(&values[i])) {
        rc = sqlite3_bind_text64(statement, at, text->data(), text->size(), SQLITE_TRANSIENT,
                                 SQLITE_UTF8);
      } else if (const auto* blob = std::get_if<Bytes>(&values[i])) {
        rc = blob->empty()
                 ? sqlite3_bind_zeroblob(statement, at, 0)
                 : sqlite3_bind_blob64(statement, at, blob->data(), blob->size(), SQLITE_TRANSIENT);
      } else {
        rc = sqlite3_bind_null(statement, at);
      }
      if (rc != SQLITE_OK) {
        return SqliteError(db_, rc, "bind");
      }
    }
    return {};
  }

  static Row ReadRow(sqlite3_stmt* statement) {
    Row row;
    const int columns = sqlite3_column_count(statement);
    row.reserve(static_cast<std::size_t>(columns));
    for (int i = 0; i < columns; ++i) {
      const auto bytes = static_cast<std::size_t>(sqlite3_column_bytes(statement, i));
      switch (sqlite3_column_type(statement, i)) {
        case SQLITE_INTEGER:
          row.emplace_back(std::int64_t{sqlite3_column_int64(statement, i)});
          break;
        case SQLITE_TEXT:
          row.emplace_back(
              std::string(reinterpret_cast<const char*>(sqlite3_column_text(statement, i)), bytes));
          break;
        case SQLITE_BLOB: {
          const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement, i));
          row.emplace_back(Bytes(data, data + bytes));
          break;
        }
        default:
          row.emplace_back(std::monostate{});
      }
    }
    return row;
  }

  sqlite3* db_;
  // Found by text without a copy of it.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  std::unordered_map<std::string, Prepared, Hash, std::equal_to<>> statements_;
};

class SqliteDatabase final : public Database {
 public:
  SqliteDatabase(std::string path, std::unique_ptr<SqliteConnection> writer)
      : path_(std::move(path)),
        writer_(std::move(writer)),
        queue_([this](CommitQueue::Batch& batch) { CommitTogether(batch); }) {}

  Status Write(const Work& work) override { return queue_.Write(work); }

  Status Read(const Work& work) override {
    RINGFENCE_TRY(places_.Take());
    std::unique_ptr<SqliteConnection> reader = TakeKept();
    const Status status = ReadWith(reader, work);
    if (reader != nullptr) {
      const std::lock_guard lock(mutex_);
      kept_.push_back(std::move(reader));
    }
    places_.Give();
    return status;
  }

  // There is no other server on a file of ours.
  void Announce(const std::string& /*topic*/) override {}
  void Listen(std::function<void(const std::string&)> /*listener*/) override {}

 private:
  std::unique_ptr<SqliteConnection> TakeKept() {
    const std::lock_guard lock(mutex_);
    if (kept_.empty()) {
      return nullptr;
    }
    auto reader = std::move(kept_.back());
    kept_.pop_back();
    return reader;
  }

  // Leaves no reader behind that is in an unknown state.
  Status ReadWith(std::unique_ptr<SqliteConnection>& reader, const Work& work) const {
    if (reader == nullptr) {
      RINGFENCE_ASSIGN(reader, SqliteConnection::Open(path_, false));
    }
    if (const auto begun = reader->Execute("BEGIN", {}); !begun.has_value()) {
      reader.reset();
      return begun.error();
    }
    const Status status = reader->Do(work);
    if (const auto ended = reader->Execute("COMMIT", {}); !ended.has_value()) {
      reader.reset();
      return status.has_value() ? Status(ended.error()) : status;
    }
    return status;
  }

  // Each job in a savepoint of its own, so that one that fails leaves the others alone; then one
  // commit. If that fails, all of them failed.
  void CommitTogether(CommitQueue::Batch& batch) {
    Status whole = Do("BEGIN IMMEDIATE");
    while (whole.has_value()) {
      CommitQueue::Job* const job = batch.Next();
      if (job == nullptr) {
        break;
      }
      whole = Do("SAVEPOINT one");
      if (!whole.has_value()) {
        break;
      }
      job->status = writer_->Do(*job->work);
      if (!job->status.has_value()) {  // a full disk makes SQLite roll back all of it by itself
        whole = writer_->InTransaction() ? Do("ROLLBACK TO one") : job->status;
      }
      if (whole.has_value()) {
        whole = Do("RELEASE one");
      }
    }
    if (whole.has_value()) {
      RINGFENCE_FAILPOINT("store.commit");
      whole = Do("COMMIT");
      RINGFENCE_FAILPOINT("store.committed");
    }
    if (!whole.has_value()) {
      (void)Do("ROLLBACK");  // fails when SQLite has already rolled back
      batch.Fail(whole.error());
    }
  }

  Status Do(std::string_view sql) {
    const auto result = writer_->Execute(sql, {});
    return result.has_value() ? Status() : Status(result.error());
  }

  const std::string path_;
  const std::unique_ptr<SqliteConnection> writer_;  // the queue's thread's alone
  ReadPlaces places_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<SqliteConnection>> kept_;  // readers not in use
  CommitQueue queue_;                                    // last: stops before what it uses goes
};

}  // namespace

Result<std::unique_ptr<Database>> OpenSqlite(const std::string& path) {
  // Counting each allocation takes a lock, and nobody asks for the sum. Refused the second time.
  (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  RINGFENCE_ASSIGN(auto writer, SqliteConnection::Open(path, true));
  RINGFENCE_TRY(writer->Execute("BEGIN IMMEDIATE", {}));
  const Status migrated = writer->Do([](Connection& db) { return Migrate(db, Dialect::kSqlite); });
  if (!migrated.has_value()) {
    (void)writer->Execute("ROLLBACK", {});
    return migrated.error();
  }
  RINGFENCE_TRY(writer->Execute("COMMIT", {}));
  return std::unique_ptr<Database>(std::make_unique<SqliteDatabase>(path, std::move(writer)));
}

Result<int> SchemaAtSqlite(const std::string& path) {
  if (!os::Exists(path)) {
    return Error{Code::kNotFound, path + " is not there yet"};
  }
  RINGFENCE_ASSIGN(const auto reader, SqliteConnection::Open(path, false));
  int schema = 0;
  RINGFENCE_TRY(reader->Do([&](Connection& db) -> Status {
    RINGFENCE_ASSIGN(schema, SchemaSeen(db));
    return {};
  }));
  return schema;
}

}  // namespace ringfence::store
