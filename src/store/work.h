#pragma once

// What both databases share: how a job runs on a connection, and how jobs share a commit.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "store/database.h"

namespace ringfence::store {

using Work = std::function<Status(Connection&)>;

// A connection on which work ends with the first statement that fails: the ones after it fail with
// the same error, and so does the work, whatever it makes of it. (PostgreSQL is like that; SQLite
// would go on, and code that goes on must not pass the tests on one of them only.)
class WorkConnection : public Connection {
 public:
  Status Do(const Work& work);
  Result<std::vector<Row>> Run(std::string_view sql, const std::vector<Value>& values) final;

 protected:
  virtual Result<std::vector<Row>> Execute(std::string_view sql,
                                           const std::vector<Value>& values) = 0;

 private:
  std::optional<Error> failed_;
};

// Writes wait here, and a thread of the queue's commits them together. Any thread.
class CommitQueue {
 public:
  // Each waits on its own: a whole batch that wakes on one lock would stand in line for it.
  struct Job {
    const Work* work = nullptr;
    Status status;
    std::mutex mutex;  // guards `done`
    std::condition_variable ended;
    bool done = false;
  };
  // Runs every job of `batch` and says in its status what became of it.
  using Commit = std::function<void(const std::vector<Job*>& batch)>;

  explicit CommitQueue(Commit commit);
  CommitQueue(const CommitQueue&) = delete;
  CommitQueue& operator=(const CommitQueue&) = delete;
  ~CommitQueue() = default;  // the thread stops and is waited for

  Status Write(const Work& work);

  // The batch failed as a whole. Jobs that failed by themselves may have done so over what a
  // neighbour had written, which is gone now: they can only be told to try again.
  static void FailAll(const std::vector<Job*>& batch, const Error& error);

 private:
  void Loop(const std::stop_token& stop);

  const Commit commit_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<Job*> waiting_;
  std::jthread thread_;  // last: stops before what it uses goes
};

}  // namespace ringfence::store
