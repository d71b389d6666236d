#include <condition_variable>
#include <mutex>
#include <thread>

#include "crypto/random.h"
#include "os/log.h"
#include "store/migrations.h"
#include "store/postgres_channel.h"
#include "store/postgres_connection.h"
#include "store/work.h"

namespace ringfence::store {
namespace {

// After a connection could not be made, others fail at once for so long, rather than queue up to
// wait for the same thing.
constexpr Milliseconds kConnectPause{200};
// How long the outcome of a commit is asked for, when its answer was lost.
constexpr std::chrono::seconds kOutcomeMax{10};
constexpr Milliseconds kOutcomeRetry{100};
constexpr Milliseconds kMigrationMax = std::chrono::minutes(10);

// One writer at a time, whichever server it is in: whoever holds this until the end of its
// transaction. The number is "ringfenc" in ASCII, and never changes.
constexpr std::string_view kTakeTurn = "SELECT pg_advisory_xact_lock(8244241983257013859);";

// The newest batch of each writer, written with it: so that a writer that lost the answer to its
// COMMIT can ask. (A transaction's number would not do: after a crash it can be another's.)
constexpr std::string_view kMakeBatches =
    "CREATE TABLE IF NOT EXISTS write_batches"
    " (writer TEXT PRIMARY KEY, batch BIGINT NOT NULL, at TIMESTAMPTZ NOT NULL)";
constexpr std::string_view kForgetBatches =
    "DELETE FROM write_batches WHERE at < now() - interval '1 day'";

using Reader = std::unique_ptr<PostgresConnection>;

// Makes connections; remembers for a moment that it could not. What its errors say goes to whoever
// uses the API, so where the database is and why it is away is for the log only. Any thread.
class Connector {
 public:
  explicit Connector(PostgresOptions options) : options_(std::move(options)) {}

  Result<std::unique_ptr<PostgresConnection>> Connect() {
    {
      const std::lock_guard lock(mutex_);
      if (failed_.has_value() && std::chrono::steady_clock::now() < again_) {
        return *failed_;
      }
    }
    auto connection = PostgresConnection::Open(options_);
    const std::lock_guard lock(mutex_);
    if (connection.has_value()) {
      if (failed_.has_value()) {
        os::Log(os::Level::kInfo, "database_back");
      }
      failed_.reset();
      return connection;
    }
    if (!failed_.has_value()) {
      os::Log(os::Level::kError, "database_down", {{"why", connection.error().message}});
    }
    failed_ = Error{connection.error().code, "the database cannot be reached",
                    "try again in a moment; the server's log says why"};
    again_ = std::chrono::steady_clock::now() + kConnectPause;
    return *failed_;
  }
  const PostgresOptions& options() const { return options_; }

 private:
  const PostgresOptions options_;
  std::mutex mutex_;
  std::optional<Error> failed_;
  std::chrono::steady_clock::time_point again_;
};

// Commits batches; the commit queue's thread alone.
class Writer {
 public:
  Writer(Connector& connector, std::string self) : connector_(connector), self_(std::move(self)) {}

  void CommitTogether(CommitQueue::Batch& batch) {
    Status whole = Begin();
    if (whole.has_value()) {
      whole = RunAll(batch);
    }
    if (whole.has_value()) {
      whole = Commit();
    } else if (connection_ != nullptr && !connection_->lost()) {
      (void)connection_->Script("ROLLBACK");
    }
    if (connection_ != nullptr && connection_->lost()) {
      connection_.reset();
    }
    if (!whole.has_value()) {
      batch.Fail(whole.error());
    }
  }

 private:
  Status Begin() {
    static const std::string kBegin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;" +
                                      std::string(kTakeTurn) +
                                      "SELECT version, least FROM schema_version; SAVEPOINT one";
    for (;;) {
      const bool kept = connection_ != nullptr;
      if (!kept) {
        RINGFENCE_ASSIGN(connection_, connector_.Connect());
      }
      const auto began = connection_->Script(kBegin);
      if (began.has_value()) {
        return CheckSchema(began->rows.back());
      }
      const bool waited = !connection_->lost() && began.error().code == Code::kUnavailable;
      if (!kept || waited) {
        return began.error();
      }
      // It broke while nobody looked, or leads to a database that takes no writes any more (a
      // failover). Nothing has happened yet: try once on a new one.
      connection_.reset();
    }
  }

  // Another server may have migrated the database since we opened it.
  static Status CheckSchema(const Row& row) {
    const std::int64_t least =
        std::atoll(TextAt(row, 1).c_str());  // NOLINT(cert-err34-c): a BIGINT
    if (least > NewestSchema()) {
      return TooOld(std::atoll(TextAt(row, 0).c_str()), least);  // NOLINT(cert-err34-c)
    }
    return {};
  }

  // Each job in a savepoint of its own, so that one that fails leaves the others alone.
  Status RunAll(CommitQueue::Batch& batch) {
    std::string next;  // the first one came with BEGIN
    bool last_failed = false;
    while (CommitQueue::Job* const job = batch.Next()) {
      if (!next.empty()) {
        RINGFENCE_TRY(connection_->Script(next));
      }
      job->status = connection_->Do(*job->work);
      if (connection_->lost()) {
        return Error{Code::kUnavailable, "the database went away; nothing was written",
                     "try again in a moment"};
      }
      last_failed = !job->status.has_value();
      next = last_failed ? "ROLLBACK TO one; RELEASE one; SAVEPOINT one"
                         : "RELEASE one; SAVEPOINT one";
    }
    if (last_failed) {
      RINGFENCE_TRY(connection_->Script("ROLLBACK TO one"));
    }
    return {};
  }

  Status Commit() {
    const std::string number = std::to_string(++batch_);
    const auto committed = connection_->Script(
        "INSERT INTO write_batches (writer, batch, at) VALUES ('" + self_ + "', " + number +
        ", now()) ON CONFLICT (writer) DO UPDATE SET batch = " + number + ", at = now(); COMMIT");
    if (committed.has_value() && committed->last_tag == "COMMIT") {
      return {};
    }
    if (committed.has_value()) {
      return Error{Code::kInternal, "database: COMMIT ended as " + committed->last_tag};
    }
    if (!connection_->lost()) {
      (void)connection_->Script("ROLLBACK");
      return committed.error();
    }
    connection_.reset();
    return Outcome(number);
  }

  // The answer to COMMIT was lost. Whoever has the turn knows that the transaction has ended, one
  // way or the other, and sees which.
  Status Outcome(const std::string& number) {
    const std::string ask = "BEGIN;" + std::string(kTakeTurn) +
                            "SELECT count(*) FROM write_batches WHERE writer = '" + self_ +
                            "' AND batch = " + number + "; ROLLBACK";
    const auto until = std::chrono::steady_clock::now() + kOutcomeMax;
    while (std::chrono::steady_clock::now() < until) {
      auto connection = connector_.Connect();
      if (connection.has_value()) {
        (*connection)
            ->SetTimeLimit(
                std::chrono::ceil<Milliseconds>(until - std::chrono::steady_clock::now()));
        const auto answer = (*connection)->Script(ask);
        if (answer.has_value()) {
          const bool there = TextAt(answer->rows.back(), 0) == "1";
          os::Log(os::Level::kWarning, "database_commit_answer_lost",
                  {{"outcome", there ? "committed" : "not committed"}});
          return there ? Status()
                       : Status(Error{Code::kUnavailable,
                                      "the database went away; nothing was written",
                                      "try again in a moment"});
        }
      }
      std::this_thread::sleep_for(kOutcomeRetry);
    }
    os::Log(os::Level::kError, "database_commit_answer_lost", {{"outcome", "unknown"}});
    return OutcomeUnknown();
  }

  Connector& connector_;
  const std::string self_;
  std::unique_ptr<PostgresConnection> connection_;
  std::int64_t batch_ = 0;
};

// A few connections, taken in turns. Any thread.
class Readers {
 public:
  explicit Readers(Connector& connector) : connector_(connector) {}

  Status Read(const Work& work) {
    RINGFENCE_TRY(places_.Take());
    Reader reader;
    const Status status = ReadWith(reader, work);
    if (reader != nullptr && !reader->lost()) {
      const std::lock_guard lock(mutex_);
      kept_.push_back(std::move(reader));
    }
    places_.Give();
    return status;
  }

 private:
  Status ReadWith(Reader& reader, const Work& work) {
    RINGFENCE_TRY(Begin(reader));
    const Status status = reader->Do(work);
    if (const auto ended = reader->Script("ROLLBACK"); !ended.has_value()) {
      reader.reset();  // what was read is good; the connection is not
    }
    return status;
  }

  Status Begin(Reader& reader) {
    for (;;) {
      reader = TakeKept();
      const bool kept = reader != nullptr;
      if (!kept) {
        RINGFENCE_ASSIGN(reader, connector_.Connect());
      }
      const auto began = reader->Script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      if (began.has_value()) {
        return {};
      }
      if (!kept || !reader->lost()) {
        return began.error();
      }
    }
  }

  Reader TakeKept() {
    const std::lock_guard lock(mutex_);
    if (kept_.empty()) {
      return nullptr;
    }
    Reader reader = std::move(kept_.back());
    kept_.pop_back();
    return reader;
  }

  Connector& connector_;
  ReadPlaces places_;
  std::mutex mutex_;
  std::vector<Reader> kept_;
};

class PostgresDatabase final : public Database {
 public:
  PostgresDatabase(const PostgresOptions& options, const std::string& self)
      : self_(self),
        connector_(options),
        readers_(connector_),
        writer_(connector_, self),
        queue_([this](CommitQueue::Batch& batch) { writer_.CommitTogether(batch); }) {}

  Status Write(const Work& work) override { return queue_.Write(work); }
  Status Read(const Work& work) override { return readers_.Read(work); }

  void Announce(const std::string& topic) override {
    std::shared_ptr<PostgresChannel> channel;
    {
      const std::lock_guard lock(channel_mutex_);
      channel = channel_;
    }
    if (channel != nullptr) {
      channel->Announce(topic);
    }
  }

  void Listen(std::function<void(const std::string& topic)> listener) override {
    if (listener == nullptr) {
      ReplaceChannel(nullptr);
      return;
    }
    auto started = PostgresChannel::Start(connector_.options(), self_, std::move(listener));
    if (started.has_value()) {
      ReplaceChannel(std::move(started).value());
    } else {
      os::Log(os::Level::kError, "database_announcements_off", {{"why", started.error().message}});
    }
  }

 private:
  // Waits for the thread of the one before.
  void ReplaceChannel(std::shared_ptr<PostgresChannel> channel) {
    {
      const std::lock_guard lock(channel_mutex_);
      channel_.swap(channel);
    }
  }

  const std::string self_;
  Connector connector_;
  Readers readers_;
  Writer writer_;
  std::mutex channel_mutex_;
  std::shared_ptr<PostgresChannel> channel_;
  CommitQueue queue_;  // last: stops before what it uses goes
};

// Under the turn to write, so that of several servers that start at once one does it.
Status MigratePostgres(PostgresConnection& connection) {
  connection.SetTimeLimit(kMigrationMax);
  RINGFENCE_TRY(connection.Script(
      "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = 0;"
      " SET LOCAL lock_timeout = " +
      std::to_string(kMigrationMax.count()) + ";" + std::string(kTakeTurn)));
  RINGFENCE_TRY(connection.Do([](Connection& db) -> Status {
    RINGFENCE_TRY(Migrate(db, Dialect::kPostgres));
    RINGFENCE_TRY(db.Run(kMakeBatches, {}));
    RINGFENCE_TRY(db.Run(kForgetBatches, {}));
    return {};
  }));
  RINGFENCE_TRY(connection.Script("COMMIT"));
  return {};
}

}  // namespace

Result<std::unique_ptr<Database>> OpenPostgres(const std::string& url) {
  RINGFENCE_ASSIGN(const PostgresOptions options, ParsePostgresUrl(url));
  RINGFENCE_ASSIGN(const auto connection, PostgresConnection::Open(options));
  RINGFENCE_TRY(MigratePostgres(*connection));
  return std::unique_ptr<Database>(
      std::make_unique<PostgresDatabase>(options, crypto::RandomId("w")));
}

Result<int> SchemaAtPostgres(const std::string& url) {
  RINGFENCE_ASSIGN(const PostgresOptions options, ParsePostgresUrl(url));
  RINGFENCE_ASSIGN(const auto connection, PostgresConnection::Open(options));
  int schema = 0;
  RINGFENCE_TRY(connection->Do([&](Connection& db) -> Status {
    RINGFENCE_ASSIGN(const auto table,
                     db.Run("SELECT CAST(COUNT(*) AS BIGINT) FROM pg_tables WHERE tablename = "
                            "'schema_version' AND schemaname = current_schema()",
                            {}));
    if (IntAt(table[0], 0) == 0) {
      return Error{Code::kNotFound, "the database has no schema yet"};
    }
    RINGFENCE_ASSIGN(schema, SchemaSeen(db));
    return {};
  }));
  return schema;
}

}  // namespace ringfence::store
