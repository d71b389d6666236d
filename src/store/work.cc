#include "store/work.h"

#include <algorithm>

namespace ringfence::store {
namespace {

// Writes that share one commit at most; bounds how long the first of them waits for the last.
constexpr std::size_t kWritesPerCommitMax = 256;
// Writers that may wait at once; beyond it a write is refused rather than queued without end.
constexpr std::size_t kWritersWaitingMax = 4096;
// How long a write may wait for its turn.
constexpr std::chrono::seconds kTurnMax{30};

}  // namespace

Status WorkConnection::Do(const Work& work) {
  failed_.reset();
  const Status status = work(*this);
  return status.has_value() && failed_.has_value() ? Status(*failed_) : status;
}

Result<std::vector<Row>> WorkConnection::Run(std::string_view sql,
                                             const std::vector<Value>& values) {
  if (failed_.has_value()) {
    return *failed_;
  }
  auto rows = Execute(sql, values);
  if (!rows.has_value()) {
    failed_ = rows.error();
  }
  return rows;
}

CommitQueue::CommitQueue(Commit commit) : commit_(std::move(commit)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { Loop(stop); });
}

Status CommitQueue::Write(const Work& work) {
  Job job;
  job.work = &work;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kWritersWaitingMax) {
      return Error{Code::kExhausted, "too many writes are waiting for the disk",
                   "try again in a moment"};
    }
    waiting_.push_back(&job);
    if (waiting_.size() == 1) {
      wake_.notify_all();
    }
  }
  const auto is_done = [&] { return job.done; };
  {
    std::unique_lock lock(job.mutex);
    if (job.ended.wait_for(lock, kTurnMax, is_done)) {
      return job.status;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    const auto place = std::find(waiting_.begin(), waiting_.end(), &job);
    if (place != waiting_.end()) {
      waiting_.erase(place);
      return Error{Code::kUnavailable, "the database is too slow: the write never had its turn",
                   "try again in a moment"};
    }
  }
  std::unique_lock lock(job.mutex);
  job.ended.wait(lock, is_done);  // it is being committed: only that knows its end
  return job.status;
}

void CommitQueue::FailAll(const std::vector<Job*>& batch, const Error& error) {
  for (Job* job : batch) {
    if (job->status.has_value() || batch.size() > 1) {
      job->status = error;
    }
  }
}

void CommitQueue::Loop(const std::stop_token& stop) {
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
    commit_(batch);
    for (Job* job : batch) {
      const std::lock_guard lock(job->mutex);  // held to the end: then the job is gone
      job->done = true;
      job->ended.notify_one();
    }
  }
}

}  // namespace ringfence::store
