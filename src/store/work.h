#pragma once

// What both databases share: how a job runs on a connection, and how jobs share a commit.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "os/gate.h"
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

// How many read at once; the others wait here for a place, a bounded number for a bounded time. Any
// thread.
class ReadPlaces {
 public:
  Status Take();
  void Give();  // once for each Take() that was OK

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable free_;
  std::size_t taken_ = 0;
  std::size_t waiting_ = 0;
};

// Writes wait here, and a thread of the queue's commits them together. Any thread.
class CommitQueue {
 public:
  struct Job {
    const Work* work = nullptr;
    Status status;
  };

  // Writes that share one commit. It is open while it runs: writes that come meanwhile join it.
  class Batch {
   public:
    // For the queue's thread: the next one to run; null, and closed to others, when it is time to
    // commit.
    Job* Next();
    // The batch failed as a whole, run or not. Jobs that failed by themselves may have done so over
    // what a neighbour had written, which is gone now: they can only be told to try again.
    void Fail(const Error& error);

   private:
    friend CommitQueue;
    explicit Batch(CommitQueue& queue) : queue_(queue) {}
    void Close();

    CommitQueue& queue_;
    std::vector<Job*> jobs_;
    std::size_t run_ = 0;  // jobs that Next() has given out
    bool closed_ = false;
    std::chrono::steady_clock::time_point closes_;
    os::Gate done_;
  };
  // Runs every job of the batch and says in its status what became of it.
  using Commit = std::function<void(Batch& batch)>;

  explicit CommitQueue(Commit commit);
  CommitQueue(const CommitQueue&) = delete;
  CommitQueue& operator=(const CommitQueue&) = delete;
  ~CommitQueue() = default;  // the thread stops and is waited for

  Status Write(const Work& work);

 private:
  std::shared_ptr<Batch> Join(Job& job);  // null when too many wait
  bool Leave(Batch& batch, Job& job);     // false when it has been run
  void Loop(const std::stop_token& stop);

  const Commit commit_;
  std::mutex mutex_;  // guards what follows, and what its batches hold
  std::condition_variable_any wake_;
  std::deque<std::shared_ptr<Batch>> waiting_;  // the first may be running
  std::size_t wanted_ = 1;                      // writers that shared the last commit
  std::jthread thread_;                         // last: stops before what it uses goes
};

}  // namespace ringfence::store
