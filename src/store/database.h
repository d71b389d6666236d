#pragma once

// Records in an SQL database: a file of SQLite's, for one server, or PostgreSQL, for several. Both
// keep the same promises, speak the same SQL (parameters as $1, $2, ...; what it computes CAST to
// BIGINT or TEXT; text compared by its bytes) and run the same migrations.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace ringfence::store {

using Value = std::variant<std::monostate, std::int64_t, std::string, Bytes>;
using Row = std::vector<Value>;

// What a read or a write works with, only inside its callback and on its thread.
class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  // Runs one statement. kUnavailable for a full disk, an I/O error or a database that is away,
  // kConflict for a broken constraint, kInternal for anything that is a defect of ours. The first
  // error ends the work: every later statement fails with it, and nothing is written.
  virtual Result<std::vector<Row>> Run(std::string_view sql, const std::vector<Value>& values) = 0;
};

// Typed access to a column; the wrong type is a defect of ours.
std::int64_t IntAt(const Row& row, std::size_t column);
const std::string& TextAt(const Row& row, std::size_t column);
const Bytes& BlobAt(const Row& row, std::size_t column);

// Any thread.
class Database {
 public:
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  virtual ~Database() = default;

  // Runs `work` in a transaction of its own: all of it happens, durably, or none. One writes at a
  // time, in all servers on this database together, so what `work` has read holds until it is
  // committed. Returns OK only once it would survive a power cut; on an error nothing of it is
  // visible to anybody, now or later. There is one exception: a database that goes away just while
  // it commits and stays away leaves nobody to ask. That is kUnavailable too, and
  // IsOutcomeUnknown says so: it happened or it did not, and a repetition must be such that it does
  // not matter (an idempotency key).
  // Writes of several threads share one commit (and so one disk sync), but never see half of each
  // other. `work` runs on another thread; it may run while the caller waits, and never after.
  virtual Status Write(const std::function<Status(Connection&)>& work) = 0;

  // A consistent view of what is committed.
  virtual Status Read(const std::function<Status(Connection&)>& work) = 0;

  // Several servers may work on one database. Announce tells the others, after a Write, that what
  // goes by this name has changed; Listen hears what the others announce, on a thread of the
  // database's, and "" when announcements may have been missed (the line was down). It is a wake-up
  // and not a record: a lost one costs time, never truth. Listen({}) ends it: the listener is not
  // called again once that has returned.
  virtual void Announce(const std::string& topic) = 0;
  virtual void Listen(std::function<void(const std::string& topic)> listener) = 0;
};

bool IsOutcomeUnknown(const Error& error);
Error OutcomeUnknown();

// Opens a PostgreSQL database by its URL (postgresql://..., postgres://...) or a file of SQLite's,
// which is made if it is not there, and brings it to the newest schema. kFailedPrecondition when a
// newer version has changed it so that this one cannot work with it, or when it would not keep
// what it has acknowledged.
Result<std::unique_ptr<Database>> Open(const std::string& where);
bool IsPostgresUrl(std::string_view where);
Result<std::unique_ptr<Database>> OpenSqlite(const std::string& path);
Result<std::unique_ptr<Database>> OpenPostgres(const std::string& url);

}  // namespace ringfence::store
