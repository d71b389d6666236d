#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "store/postgres_library.h"
#include "store/postgres_options.h"
#include "store/work.h"

namespace ringfence::store {

// How long the database lets a transaction of ours hold others up while it hears nothing from us: a
// server that is stopped or cut off in the middle of a write loses it then.
inline constexpr Milliseconds kIdleInTransactionMax{5000};
// Longer than that, so that whoever waits behind such a one gets its turn.
inline constexpr Milliseconds kLockWaitMax{10000};
inline constexpr Milliseconds kStatementMax{12000};

// One connection; one thread at a time. No call waits longer than its time limit.
class PostgresConnection final : public WorkConnection {
 public:
  // kUnavailable when nobody answers; kFailedPrecondition when the database would lose what it has
  // acknowledged (fsync or full_page_writes is off), or is not one that we can work with.
  static Result<std::unique_ptr<PostgresConnection>> Open(const PostgresOptions& options);
  ~PostgresConnection() override;
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  Result<std::vector<Row>> Execute(std::string_view sql, const std::vector<Value>& values) override;

  struct Answers {
    std::vector<Row> rows;  // of all statements; every value is text
    std::string last_tag;   // what the last one did: "COMMIT"
  };
  // Statements of ours without parameters, in one round trip; ends at the first that fails.
  Result<Answers> Script(const std::string& sql);

  // After an error: nothing more can be done with this connection.
  bool lost() const { return lost_; }
  // For each call from now on.
  void SetTimeLimit(Milliseconds limit) { limit_ = limit; }

  // What arrived since the last time on channels that are listened to: the payloads.
  Result<std::vector<std::string>> TakeNotifications();
  int socket() const;

 private:
  struct ResultFree {
    const Libpq* libpq;
    void operator()(PGresult* result) const { libpq->PQclear(result); }
  };
  using ResultPtr = std::unique_ptr<PGresult, ResultFree>;
  using Deadline = std::chrono::steady_clock::time_point;

  PostgresConnection(const Libpq& libpq, PGconn* connection)
      : libpq_(libpq), connection_(connection) {}
  Status Connect(const std::string& shown);
  Status SetUp(const std::string& shown);
  Result<std::string> Prepare(std::string_view sql, const std::vector<Value>& values);
  // The results of what was sent, or the first error among them.
  Result<std::vector<ResultPtr>> Collect(int sent);
  Result<ResultPtr> Next(Deadline deadline);
  Result<bool> Wait(bool read, bool write, Deadline deadline);  // false: the time is up
  Error Lost(std::string_view what);
  Error ErrorOf(const PGresult* result);
  Result<Row> ReadRow(const PGresult* result, int row) const;

  const Libpq& libpq_;
  PGconn* const connection_;
  Milliseconds limit_ = kStatementMax + Milliseconds(3000);  // the database should be first
  bool lost_ = false;
  std::unordered_map<std::string, std::string> prepared_;  // by text and parameter types: its name
};

}  // namespace ringfence::store
