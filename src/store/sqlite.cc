#include <sqlite3.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/check.h"
#include "store/database.h"
#include "store/migrations.h"

namespace ringfence::store {
namespace {

// Writes that share one commit at most; bounds how long the first of them waits for the last.
constexpr std::size_t kWritesPerCommitMax = 256;
// Writers that may wait at once; beyond it a write is refused rather than queued without end.
constexpr std::size_t kWritersWaitingMax = 4096;
constexpr std::size_t kReadersKept = 16;
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

class SqliteConnection final : public Connection {
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
    RINGFENCE_TRY(connection->Run("PRAGMA journal_mode = WAL", {}));
    RINGFENCE_TRY(connection->Run("PRAGMA synchronous = FULL", {}));
    RINGFENCE_TRY(connection->Run("PRAGMA foreign_keys = ON", {}));
    RINGFENCE_TRY(connection->Run("PRAGMA trusted_schema = OFF", {}));
    if (!writer) {
      RINGFENCE_TRY(connection->Run("PRAGMA query_only = ON", {}));
    }
    return connection;
  }

  ~SqliteConnection() override {
    for (const auto& [sql, statement] : statements_) {
      (void)sqlite3_finalize(statement);
    }
    (void)sqlite3_close(db_);
  }
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  Result<std::vector<Row>> Run(std::string_view sql, const std::vector<Value>& values) override {
    RINGFENCE_ASSIGN(sqlite3_stmt* const statement, Prepare(sql));
    RINGFENCE_TRY(Bind(statement, values));
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

  Result<sqlite3_stmt*> Prepare(std::string_view sql) {
    const auto found = statements_.find(std::string(sql));
    if (found != statements_.end()) {
      return found->second;
    }
    sqlite3_stmt* statement = nullptr;
    const int rc = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (rc != SQLITE_OK) {
      return SqliteError(db_, rc, "prepare");
    }
    statements_.emplace(sql, statement);  // our own constant texts only: bounded by the source
    return statement;
  }

  Status Bind(sqlite3_stmt* statement, const std::vector<Value>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int at = sqlite3_bind_parameter_index(statement, ("$" + std::to_string(i + 1)).c_str());
      RINGFENCE_CHECK(at != 0);
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
  std::unordered_map<std::string, sqlite3_stmt*> statements_;
};

class SqliteDatabase final : public Database {
 public:
  SqliteDatabase(std::string path, std::unique_ptr<SqliteConnection> writer)
      : path_(std::move(path)), writer_(std::move(writer)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { WriteLoop(stop); });
  }

  ~SqliteDatabase() override = default;  // the thread stops and is waited for
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  Status Write(const std::function<Status(Connection&)>& work) override {
    Job job{&work, {}, false};
    std::unique_lock lock(mutex_);
    if (waiting_.size() >= kWritersWaitingMax) {
      return Error{Code::kExhausted, "too many writes are waiting for the disk",
                   "try again in a moment"};
    }
    waiting_.push_back(&job);
    wake_.notify_all();
    done_.wait(lock, [&] { return job.done; });
    return job.status;
  }

  Status Read(const std::function<Status(Connection&)>& work) override {
    RINGFENCE_ASSIGN(std::unique_ptr<SqliteConnection> reader, TakeReader());
    RINGFENCE_TRY(reader->Run("BEGIN", {}));
    Status status = work(*reader);
    const auto ended = reader->Run("COMMIT", {});
    if (!ended.has_value()) {
      return status.has_value() ? Status(ended.error()) : status;  // the reader is not kept
    }
    const std::lock_guard lock(readers_mutex_);
    if (readers_.size() < kReadersKept) {
      readers_.push_back(std::move(reader));
    }
    return status;
  }

  // There is no other server on a file of ours.
  void Announce(const std::string& /*topic*/) override {}
  void Listen(std::function<void(const std::string&)> /*listener*/) override {}

 private:
  struct Job {
    const std::function<Status(Connection&)>* work;
    Status status;
    bool done;
  };

  Result<std::unique_ptr<SqliteConnection>> TakeReader() {
    {
      const std::lock_guard lock(readers_mutex_);
      if (!readers_.empty()) {
        auto reader = std::move(readers_.back());
        readers_.pop_back();
        return reader;
      }
    }
    return SqliteConnection::Open(path_, false);
  }

  void WriteLoop(const std::stop_token& stop) {
    for (;;) {
      std::vector<Job*> batch;
      {
        std::unique_lock lock(mutex_);
        (void)wake_.wait(lock, stop, [&] { return !waiting_.empty(); });
        if (waiting_.empty()) {
          return;
        }
        while (!waiting_.empty() && batch.size() < kWritesPerCommitMax) {
          batch.push_back(waiting_.front());
          waiting_.pop_front();
        }
      }
      CommitTogether(batch);
      {
        const std::lock_guard lock(mutex_);
        for (Job* job : batch) {
          job->done = true;
        }
      }
      done_.notify_all();
    }
  }

  // Each job in a savepoint of its own, so that one that fails leaves the others alone; then one
  // commit. If that fails, all of them failed.
  void CommitTogether(const std::vector<Job*>& batch) {
    Status whole = Do("BEGIN IMMEDIATE");
    for (std::size_t i = 0; i < batch.size() && whole.has_value(); ++i) {
      whole = Do("SAVEPOINT one");
      if (!whole.has_value()) {
        break;
      }
      batch[i]->status = (*batch[i]->work)(*writer_);
      if (!batch[i]->status.has_value()) {
        whole = Do("ROLLBACK TO one");
      }
      if (whole.has_value()) {
        whole = Do("RELEASE one");
      }
    }
    if (whole.has_value()) {
      whole = Do("COMMIT");
    }
    if (!whole.has_value()) {
      (void)writer_->Run("ROLLBACK", {});  // fails when SQLite has already rolled back
      for (Job* job : batch) {
        if (job->status.has_value()) {
          job->status = whole.error();
        }
      }
    }
  }

  Status Do(std::string_view sql) {
    const auto result = writer_->Run(sql, {});
    return result.has_value() ? Status() : Status(result.error());
  }

  const std::string path_;
  const std::unique_ptr<SqliteConnection> writer_;  // the write thread's alone
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable_any done_;
  std::deque<Job*> waiting_;
  std::mutex readers_mutex_;
  std::vector<std::unique_ptr<SqliteConnection>> readers_;
  std::jthread thread_;  // last: stops before what it uses goes
};

}  // namespace

std::int64_t IntAt(const Row& row, std::size_t column) {
  RINGFENCE_CHECK(column < row.size() && std::holds_alternative<std::int64_t>(row[column]));
  return std::get<std::int64_t>(row[column]);
}

const std::string& TextAt(const Row& row, std::size_t column) {
  RINGFENCE_CHECK(column < row.size() && std::holds_alternative<std::string>(row[column]));
  return std::get<std::string>(row[column]);
}

const Bytes& BlobAt(const Row& row, std::size_t column) {
  RINGFENCE_CHECK(column < row.size() && std::holds_alternative<Bytes>(row[column]));
  return std::get<Bytes>(row[column]);
}

Result<std::unique_ptr<Database>> OpenSqlite(const std::string& path) {
  RINGFENCE_ASSIGN(auto writer, SqliteConnection::Open(path, true));
  RINGFENCE_TRY(writer->Run("BEGIN IMMEDIATE", {}));
  if (const Status migrated = Migrate(*writer); !migrated.has_value()) {
    (void)writer->Run("ROLLBACK", {});
    return migrated.error();
  }
  RINGFENCE_TRY(writer->Run("COMMIT", {}));
  return std::unique_ptr<Database>(std::make_unique<SqliteDatabase>(path, std::move(writer)));
}

}  // namespace ringfence::store
