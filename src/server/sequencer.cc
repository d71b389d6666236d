#include "server/sequencer.h"

#include <algorithm>

#include "audit/note.h"
#include "os/failpoint.h"
#include "os/file.h"
#include "os/log.h"
#include "store/records.h"

namespace ringfence::server {
namespace {

constexpr std::int64_t kEntriesPerAppendMax = 4096;
// Entries that come within this time share a checkpoint. A checkpoint costs several syncs of the
// disk that commits wait for too, so it is no shorter than it need be.
constexpr std::chrono::milliseconds kGather{100};
constexpr std::chrono::milliseconds kRetry{1000};
// Servers on one database: how often each looks by itself, and how often the one whose turn it is
// says that it lives.
constexpr std::chrono::milliseconds kLookEvery{250};
constexpr std::chrono::milliseconds kBeatEvery{1000};

Error Disagrees(std::uint64_t logged, std::int64_t recorded) {
  return {Code::kCorrupt,
          "the audit log has " + std::to_string(logged) +
              " entries that the database does not agree with (it has " + std::to_string(recorded) +
              ")",
          "one of them was restored from a backup or tampered with: compare with a witnessed "
          "checkpoint (ringfence audit verify --checkpoint) before going on"};
}

// The last entry of the log must be the database's entry of that number.
Status CheckAgainstDatabase(store::Database& database, const std::string& folder,
                            const audit::TreeHead& head) {
  return database.Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const std::int64_t size, store::AuditSize(db));
    if (static_cast<std::uint64_t>(size) < head.size) {
      return Disagrees(head.size, size);
    }
    if (head.size == 0) {
      return {};
    }
    store::AuditFilter last;
    last.from = static_cast<std::int64_t>(head.size) - 1;
    last.limit = 1;
    RINGFENCE_ASSIGN(const auto rows, store::ListAudit(db, last));
    RINGFENCE_ASSIGN(const Bytes logged, audit::ReadEntry(folder, head.size - 1, head.size));
    return rows.size() == 1 && rows[0].entry == logged ? Status()
                                                       : Status(Disagrees(head.size, size));
  });
}

}  // namespace

Result<std::unique_ptr<Sequencer>> Sequencer::Start(store::Database& database, Options options,
                                                    const crypto::SigningKey& key,
                                                    std::function<void()> on_checkpoint) {
  RINGFENCE_ASSIGN(auto sequencer,
                   Open(database, std::move(options), key, std::move(on_checkpoint)));
  RINGFENCE_TRY(sequencer->Step());
  Sequencer* const raw = sequencer.get();
  raw->thread_ = std::jthread([raw](const std::stop_token& stop) { raw->Loop(stop); });
  return sequencer;
}

Result<std::unique_ptr<Sequencer>> Sequencer::Open(store::Database& database, Options options,
                                                   const crypto::SigningKey& key,
                                                   std::function<void()> on_checkpoint) {
  RINGFENCE_TRY(os::MakeDirs(options.folder));
  std::unique_ptr<Sequencer> sequencer(
      new Sequencer(database, std::move(options), key, std::move(on_checkpoint)));
  RINGFENCE_TRY(sequencer->OpenLog());
  return sequencer;
}

Sequencer::Sequencer(store::Database& database, Options options, const crypto::SigningKey& key,
                     std::function<void()> on_checkpoint)
    : database_(database),
      options_(std::move(options)),
      key_(key),
      on_checkpoint_(std::move(on_checkpoint)) {}

// A writer whose append failed knows no longer what is on the disk; a fresh one looks.
Status Sequencer::OpenLog() {
  RINGFENCE_ASSIGN(auto log, audit::LogWriter::Open(options_.folder, options_.origin, key_));
  RINGFENCE_TRY(CheckAgainstDatabase(database_, options_.folder, log->head()));
  const std::lock_guard lock(mutex_);
  log_ = std::move(log);
  return {};
}

Sequencer::~Sequencer() { Stop(); }

void Sequencer::Stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
}

void Sequencer::Wake() {
  {
    const std::lock_guard lock(mutex_);
    pending_ = true;
  }
  wake_.notify_all();
}

Result<Sequencer::View> Sequencer::Look() const {
  const auto have = static_cast<std::int64_t>(log_->head().size);
  View view;
  RINGFENCE_TRY(database_.Read([&](store::Connection& db) -> Status {
    view = {};
    RINGFENCE_ASSIGN(view.turn, store::GetLogTurn(db));
    RINGFENCE_ASSIGN(view.head, store::GetLogHead(db));
    RINGFENCE_ASSIGN(view.size, store::AuditSize(db));
    RINGFENCE_ASSIGN(view.cosignatures, store::CosignaturesOf(db, view.head.size));
    if (view.size < have || view.size < view.head.size) {
      return Disagrees(static_cast<std::uint64_t>(std::max(have, view.head.size)), view.size);
    }
    store::AuditFilter next;
    next.from = have;
    next.limit = kEntriesPerAppendMax;
    RINGFENCE_ASSIGN(auto rows, store::ListAudit(db, next));
    for (store::AuditRow& row : rows) {
      const std::int64_t due = have + static_cast<std::int64_t>(view.entries.size());
      if (row.seq != due) {
        return Error{Code::kCorrupt,
                     "audit entry " + std::to_string(due) + " is missing from the database"};
      }
      view.entries.push_back(std::move(row.entry));
    }
    return {};
  }));
  return view;
}

// Learns whose turn it is, and takes it when its holder has been still for too long.
Status Sequencer::SeeTurn(const store::LogTurn& seen) {
  const auto now = std::chrono::steady_clock::now();
  if (turn_.has_value() && (seen.holder != turn_->holder || seen.epoch != turn_->epoch)) {
    os::Log(os::Level::kWarning, "audit_turn_lost", {{"to", seen.holder}});
    turn_.reset();
  }
  Status status;
  if (!turn_.has_value()) {
    if (watched_ != seen) {
      watched_ = seen;
      watched_since_ = now;
    }
    if (!options_.shared || seen.holder.empty() ||
        now - watched_since_ >= options_.turn_lost_after) {
      std::optional<store::LogTurn> taken;
      status = database_.Write([&](store::Connection& db) -> Status {
        RINGFENCE_ASSIGN(taken, store::TakeLogTurn(db, seen, options_.name));
        return {};
      });
      if (status.has_value()) {
        turn_ = std::move(taken);
        kept_ = now;
        os::Log(os::Level::kInfo, "audit_turn_taken", {{"from", seen.holder}});
      }
    }
  }
  if (!status.has_value() && status.error().code == Code::kConflict) {
    turn_.reset();  // somebody was faster: that is how it should be
    status = {};
  }
  const std::lock_guard lock(mutex_);
  leads_ = turn_.has_value();
  return status;
}

Status Sequencer::Append(const std::vector<Bytes>& entries) {
  RINGFENCE_FAILPOINT("sequencer.append");
  const std::lock_guard lock(mutex_);
  const auto appended = log_->Append(entries);
  if (!appended.has_value()) {
    log_.reset();
    return appended.error();
  }
  RINGFENCE_FAILPOINT("sequencer.appended");
  return {};
}

// The local log's head is what the database has.
void Sequencer::Publish(const std::string& note) {
  {
    const std::lock_guard lock(mutex_);
    if (published_.note == note) {
      return;
    }
    published_ = {log_->head(), note};
    cosignatures_.clear();
    progress_.clear();
  }
  RINGFENCE_FAILPOINT("sequencer.published");
  on_checkpoint_();
}

// The log here is behind what was published: it follows, up to exactly that, and must come to the
// same checkpoint, bit by bit.
Result<bool> Sequencer::CatchUp(View& view) {
  const auto missing =
      static_cast<std::size_t>(view.head.size - static_cast<std::int64_t>(log_->head().size));
  if (view.entries.size() > missing) {
    view.entries.resize(missing);
  }
  if (!view.entries.empty()) {
    RINGFENCE_TRY(Append(view.entries));
  }
  if (static_cast<std::int64_t>(log_->head().size) < view.head.size) {
    const std::lock_guard lock(mutex_);
    progress_ = "this server is still building its copy: " + std::to_string(log_->head().size) +
                " of " + std::to_string(view.head.size) + " entries";
    return true;
  }
  if (log_->checkpoint() != view.head.note) {
    return Error{Code::kCorrupt,
                 "the audit records do not lead to the checkpoint that was published at " +
                     std::to_string(view.head.size),
                 "the database was changed or restored: compare with a witnessed checkpoint "
                 "(ringfence audit verify --checkpoint) before going on"};
  }
  Publish(view.head.note);
  return static_cast<std::int64_t>(view.head.size) < view.size;
}

// Our turn, and the log here has all that was published.
Result<bool> Sequencer::Lead(View& view) {
  if (!view.entries.empty()) {
    RINGFENCE_TRY(Append(view.entries));
  }
  const store::LogHead head{static_cast<std::int64_t>(log_->head().size), log_->checkpoint()};
  const auto now = std::chrono::steady_clock::now();
  const bool is_news = head.note != view.head.note;
  if (is_news || (options_.shared && now - kept_ >= kBeatEvery)) {
    const Status said = database_.Write([&](store::Connection& db) {
      return is_news ? store::PublishLogHead(db, *turn_, head) : store::KeepLogTurn(db, *turn_);
    });
    if (!said.has_value()) {
      // A turn that was taken from us is no trouble: what we appended is what the next one will.
      return said.error().code == Code::kConflict ? Result<bool>(true) : said.error();
    }
    kept_ = now;
  }
  Publish(head.note);
  return head.size < view.size;
}

// Cosignatures that came in through other servers.
void Sequencer::TakeCosignatures(const std::vector<std::string>& lines) {
  const std::lock_guard lock(mutex_);
  for (const std::string& line : lines) {
    if (std::find(cosignatures_.begin(), cosignatures_.end(), line) == cosignatures_.end() &&
        log_->AddCosignature(line).has_value()) {
      cosignatures_.push_back(line);
    }
  }
}

Result<bool> Sequencer::Step() {
  if (log_ == nullptr) {  // only this thread changes it
    RINGFENCE_TRY(OpenLog());
  }
  RINGFENCE_ASSIGN(View view, Look());
  RINGFENCE_TRY(SeeTurn(view.turn));
  const auto have = static_cast<std::int64_t>(log_->head().size);
  if (have <= view.head.size && published().note != view.head.note) {
    return CatchUp(view);
  }
  if (have == view.head.size) {
    TakeCosignatures(view.cosignatures);
  }
  if (!turn_.has_value()) {
    return false;  // nothing is published that we do not have
  }
  return Lead(view);
}

void Sequencer::GiveBack() {
  if (turn_.has_value() && options_.shared) {
    (void)database_.Write(
        [&](store::Connection& db) { return store::GiveBackLogTurn(db, *turn_); });
  }
}

void Sequencer::Loop(const std::stop_token& stop) {
  // After a stop is asked for, what was acknowledged is still made part of the log.
  for (bool more = true; more || !stop.stop_requested();) {
    if (!more) {
      std::unique_lock lock(mutex_);
      if (options_.shared) {
        (void)wake_.wait_for(lock, stop, kLookEvery, [&] { return pending_; });
      } else {
        (void)wake_.wait(lock, stop, [&] { return pending_; });
      }
      pending_ = false;
    }
    if (!stop.stop_requested()) {
      std::this_thread::sleep_for(kGather);
    }
    const auto stepped = Step();
    more = stepped.has_value() && *stepped;
    bool changed = false;
    {
      const std::lock_guard lock(mutex_);
      const std::string problem = stepped.has_value() ? "" : stepped.error().message;
      changed = problem != problem_;
      problem_ = problem;
      pending_ = pending_ || !stepped.has_value();
    }
    if (!stepped.has_value()) {
      if (changed) {
        os::Log(os::Level::kError, "audit_log_stuck", {{"why", stepped.error().message}});
      }
      if (!stop.stop_requested()) {
        std::this_thread::sleep_for(kRetry);
      }
    }
  }
  GiveBack();
}

audit::TreeHead Sequencer::head() const {
  const std::lock_guard lock(mutex_);
  return published_.head;
}

std::string Sequencer::checkpoint() const {
  const std::lock_guard lock(mutex_);
  std::string note = published_.note;
  for (const std::string& line : cosignatures_) {
    note += line;
  }
  return note;
}

Sequencer::Published Sequencer::published() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

Status Sequencer::AddCosignature(const audit::TreeHead& head, const std::string& witness,
                                 const std::string& line) {
  const auto size = static_cast<std::int64_t>(head.size);
  RINGFENCE_TRY(database_.Write(
      [&](store::Connection& db) { return store::PutCosignature(db, witness, size, line); }));
  const std::lock_guard lock(mutex_);
  if (log_ == nullptr || log_->head() != head) {
    return {};  // of a checkpoint that others have followed meanwhile; it counts all the same
  }
  RINGFENCE_TRY(log_->AddCosignature(line));
  if (std::find(cosignatures_.begin(), cosignatures_.end(), line) == cosignatures_.end()) {
    cosignatures_.push_back(line);
  }
  return {};
}

bool Sequencer::leads() const {
  const std::lock_guard lock(mutex_);
  return leads_;
}

std::string Sequencer::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_.empty() ? progress_ : problem_;
}

}  // namespace ringfence::server
