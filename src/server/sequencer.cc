#include "server/sequencer.h"

#include <algorithm>
#include <chrono>

#include "os/file.h"
#include "os/log.h"
#include "store/records.h"

namespace ringfence::server {
namespace {

constexpr std::int64_t kEntriesPerAppendMax = 4096;
// Entries that come within this time share a checkpoint.
constexpr std::chrono::milliseconds kGather{20};
constexpr std::chrono::milliseconds kRetry{1000};

// The last entry of the log must be the database's entry of that number.
Status CheckAgainstDatabase(store::Database& database, const std::string& folder,
                            const audit::TreeHead& head) {
  return database.Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const std::int64_t size, store::AuditSize(db));
    const Error bad{Code::kCorrupt,
                    "the audit log has " + std::to_string(head.size) +
                        " entries that the database does not agree with (it has " +
                        std::to_string(size) + ")",
                    "one of them was restored from a backup or tampered with: compare with a "
                    "witnessed checkpoint (ringfence audit verify --checkpoint) before going on"};
    if (static_cast<std::uint64_t>(size) < head.size) {
      return bad;
    }
    if (head.size == 0) {
      return {};
    }
    store::AuditFilter last;
    last.from = static_cast<std::int64_t>(head.size) - 1;
    last.limit = 1;
    RINGFENCE_ASSIGN(const auto rows, store::ListAudit(db, last));
    RINGFENCE_ASSIGN(const Bytes logged, audit::ReadEntry(folder, head.size - 1, head.size));
    return rows.size() == 1 && rows[0].entry == logged ? Status() : Status(bad);
  });
}

}  // namespace

Result<std::unique_ptr<Sequencer>> Sequencer::Start(store::Database& database,
                                                    const std::string& folder, std::string origin,
                                                    const crypto::SigningKey& key,
                                                    std::function<void()> on_checkpoint) {
  RINGFENCE_TRY(os::MakeDirs(folder));
  std::unique_ptr<Sequencer> sequencer(
      new Sequencer(database, folder, std::move(origin), key, std::move(on_checkpoint)));
  RINGFENCE_TRY(sequencer->OpenLog());
  Sequencer* const raw = sequencer.get();
  raw->thread_ = std::jthread([raw](const std::stop_token& stop) { raw->Loop(stop); });
  return sequencer;
}

Sequencer::Sequencer(store::Database& database, std::string folder, std::string origin,
                     const crypto::SigningKey& key, std::function<void()> on_checkpoint)
    : database_(database),
      folder_(std::move(folder)),
      origin_(std::move(origin)),
      key_(key),
      on_checkpoint_(std::move(on_checkpoint)) {}

// A writer whose append failed knows no longer what is on the disk; a fresh one looks.
Status Sequencer::OpenLog() {
  RINGFENCE_ASSIGN(auto log, audit::LogWriter::Open(folder_, origin_, key_));
  RINGFENCE_TRY(CheckAgainstDatabase(database_, folder_, log->head()));
  const std::lock_guard lock(mutex_);
  log_ = std::move(log);
  published_ = {log_->head(), log_->checkpoint()};
  cosignatures_.clear();
  return {};
}

Sequencer::~Sequencer() = default;  // the thread stops and is waited for

void Sequencer::Wake() {
  {
    const std::lock_guard lock(mutex_);
    pending_ = true;
  }
  wake_.notify_all();
}

Result<bool> Sequencer::AppendSome() {
  if (log_ == nullptr) {  // only this thread changes it
    RINGFENCE_TRY(OpenLog());
  }
  const std::uint64_t have = head().size;
  std::vector<Bytes> entries;
  RINGFENCE_TRY(database_.Read([&](store::Connection& db) -> Status {
    store::AuditFilter next;
    next.from = static_cast<std::int64_t>(have);
    next.limit = kEntriesPerAppendMax;
    RINGFENCE_ASSIGN(auto rows, store::ListAudit(db, next));
    for (store::AuditRow& row : rows) {
      if (static_cast<std::uint64_t>(row.seq) != have + entries.size()) {
        return Error{Code::kCorrupt, "audit entry " + std::to_string(have + entries.size()) +
                                         " is missing from the database"};
      }
      entries.push_back(std::move(row.entry));
    }
    return {};
  }));
  if (entries.empty()) {
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    const auto appended = log_->Append(entries);
    if (!appended.has_value()) {
      log_.reset();
      return appended.error();
    }
    published_ = {*appended, log_->checkpoint()};
    cosignatures_.clear();
  }
  on_checkpoint_();
  return entries.size() == static_cast<std::size_t>(kEntriesPerAppendMax);
}

void Sequencer::Loop(const std::stop_token& stop) {
  // After a stop is asked for, what was acknowledged is still made part of the log.
  for (bool more = true; more || !stop.stop_requested();) {
    if (!more) {
      std::unique_lock lock(mutex_);
      (void)wake_.wait(lock, stop, [&] { return pending_; });
      pending_ = false;
    }
    if (!stop.stop_requested()) {
      std::this_thread::sleep_for(kGather);
    }
    const auto appended = AppendSome();
    more = appended.has_value() && *appended;
    bool changed = false;
    {
      const std::lock_guard lock(mutex_);
      const std::string problem = appended.has_value() ? "" : appended.error().message;
      changed = problem != problem_;
      problem_ = problem;
      pending_ = pending_ || !appended.has_value();
    }
    if (!appended.has_value()) {
      if (changed) {
        os::Log(os::Level::kError, "audit_log_stuck", {{"why", appended.error().message}});
      }
      if (!stop.stop_requested()) {
        std::this_thread::sleep_for(kRetry);
      }
    }
  }
}

audit::TreeHead Sequencer::head() const {
  const std::lock_guard lock(mutex_);
  return published_.head;
}

std::string Sequencer::checkpoint() const {
  const std::lock_guard lock(mutex_);
  return published_.note + cosignatures_;
}

Sequencer::Published Sequencer::published() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

Status Sequencer::AddCosignature(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (log_ == nullptr) {
    return Error{Code::kUnavailable, "the log is being opened again"};
  }
  RINGFENCE_TRY(log_->AddCosignature(line));
  cosignatures_ += line;
  return {};
}

std::string Sequencer::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

}  // namespace ringfence::server
