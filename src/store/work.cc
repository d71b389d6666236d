#include "store/work.h"

#include <algorithm>

namespace ringfence::store {
namespace {

// Writes that share one commit at most; bounds how long the first of them waits for the last.
constexpr std::size_t kWritesPerCommitMax = 256;
// Commits that may wait at once; beyond it a write is refused rather than queued without end.
constexpr std::size_t kBatchesWaitingMax = 16;
// Writers that shared the last commit are likely to come again at once: the next one waits this
// long for as many of them. A writer that is alone waits for nobody.
constexpr std::chrono::microseconds kGather{200};
// Each reader holds a connection, or two files and a cache.
constexpr std::size_t kReadersMax = 8;
constexpr std::size_t kReadersWaitingMax = 1024;
constexpr std::chrono::seconds kReadTurnMax{5};
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

Status ReadPlaces::Take() {
  std::unique_lock lock(mutex_);
  if (waiting_ >= kReadersWaitingMax) {
    return Error{Code::kExhausted, "too many reads are waiting for the database",
                 "try again in a moment"};
  }
  ++waiting_;
  const bool in_time = free_.wait_for(lock, kReadTurnMax, [&] { return taken_ < kReadersMax; });
  --waiting_;
  if (!in_time) {
    return Error{Code::kUnavailable, "the database is too slow: the read never had its turn",
                 "try again in a moment"};
  }
  ++taken_;
  return {};
}

void ReadPlaces::Give() {
  {
    const std::lock_guard lock(mutex_);
    --taken_;
  }
  free_.notify_one();
}

CommitQueue::CommitQueue(Commit commit) : commit_(std::move(commit)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { Loop(stop); });
}

CommitQueue::Job* CommitQueue::Batch::Next() {
  std::unique_lock lock(queue_.mutex_);
  const auto more = [&] { return run_ < jobs_.size(); };
  if (!more() && jobs_.size() < queue_.wanted_) {
    (void)queue_.wake_.wait_until(lock, closes_, more);
  }
  if (more()) {
    return jobs_[run_++];
  }
  Close();
  return nullptr;
}

// Under the queue's lock.
void CommitQueue::Batch::Close() {
  if (!closed_) {
    closed_ = true;
    queue_.waiting_.pop_front();
    queue_.wanted_ = jobs_.size();
  }
}

void CommitQueue::Batch::Fail(const Error& error) {
  const std::lock_guard lock(queue_.mutex_);
  Close();
  run_ = jobs_.size();
  for (Job* job : jobs_) {
    if (job->status.has_value() || jobs_.size() > 1) {
      job->status = error;
    }
  }
}

std::shared_ptr<CommitQueue::Batch> CommitQueue::Join(Job& job) {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty() || waiting_.back()->jobs_.size() >= kWritesPerCommitMax) {
    if (waiting_.size() >= kBatchesWaitingMax) {
      return nullptr;
    }
    waiting_.push_back(std::shared_ptr<Batch>(new Batch(*this)));
  }
  const auto batch = waiting_.back();
  batch->jobs_.push_back(&job);
  if (batch->run_ + 1 == batch->jobs_.size()) {
    wake_.notify_all();
  }
  return batch;
}

bool CommitQueue::Leave(Batch& batch, Job& job) {
  const std::lock_guard lock(mutex_);
  const auto place = std::find(batch.jobs_.begin(), batch.jobs_.end(), &job);
  if (std::distance(batch.jobs_.begin(), place) < static_cast<std::ptrdiff_t>(batch.run_)) {
    return false;
  }
  batch.jobs_.erase(place);
  return true;
}

Status CommitQueue::Write(const Work& work) {
  Job job;
  job.work = &work;
  const auto batch = Join(job);
  if (batch == nullptr) {
    return Error{Code::kExhausted, "too many writes are waiting for the disk",
                 "try again in a moment"};
  }
  if (!batch->done_.Wait(kTurnMax)) {
    if (Leave(*batch, job)) {
      return Error{Code::kUnavailable, "the database is too slow: the write never had its turn",
                   "try again in a moment"};
    }
    (void)batch->done_.Wait();  // it was run: only its commit knows its end
  }
  return job.status;
}

void CommitQueue::Loop(const std::stop_token& stop) {
  for (;;) {
    std::shared_ptr<Batch> batch;
    {
      std::unique_lock lock(mutex_);
      (void)wake_.wait(lock, stop, [&] { return !waiting_.empty(); });
      if (waiting_.empty()) {
        return;
      }
      batch = waiting_.front();
      batch->closes_ = std::chrono::steady_clock::now() + kGather;
    }
    commit_(*batch);
    batch->done_.Open();
  }
}

}  // namespace ringfence::store
