#include "backup/restore.h"

#include "audit/entry.h"
#include "audit/log.h"
#include "audit/note_text.h"
#include "audit/verify_note.h"
#include "base/encoding.h"
#include "crypto/aes_gcm.h"
#include "crypto/random.h"
#include "os/commit.h"
#include "os/file.h"
#include "os/staged_file.h"
#include "policy/policy.h"
#include "store/log_records.h"
#include "store/records.h"
#include "store/tables.h"

namespace ringfence::backup {
namespace {

constexpr std::size_t kEntriesPerAppend = 4096;
constexpr std::size_t kAppendBytesMax = std::size_t{16} << 20U;
constexpr int kDepthMax = 32;
constexpr std::string_view kStagedPrefix = ".restoring-";

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Writes files, records and log below the staged folder.
class Restorer final : public Visitor {
 public:
  Restorer(store::Connection& db, std::string staged) : db_(db), staged_(std::move(staged)) {}

  Status Begin(const About& about) override {
    about_ = about;
    RINGFENCE_ASSIGN(note_, audit::verify::ReadNote(about.checkpoint));
    return {};
  }

  Status File(std::string_view part, const FileHead& head) override {
    const bool secret = part == kKeysPart;
    const std::string path = staged_ + (secret ? "/server/keys/" : "/policy/") + head.path;
    RINGFENCE_TRY(os::MakeDirs(ParentOf(path), secret ? 0700 : 0755));
    RINGFENCE_ASSIGN(file_, os::OpenForWrite(path, secret ? 0600 : 0644));
    return {};
  }

  Status Piece(ByteView bytes) override { return os::WriteAll(file_.get(), bytes); }

  Status Row(const store::TableSpec& table, const std::vector<std::string_view>& columns,
             const store::Row& row) override {
    return store::InsertRow(db_, table, columns, row);
  }

  Status Entry(std::uint64_t index, ByteView entry) override {
    RINGFENCE_ASSIGN(const audit::Entry parsed, audit::Entry::Parse(entry));
    Bytes bytes(entry.begin(), entry.end());
    RINGFENCE_TRY(store::AppendAudit(db_, parsed.action, parsed.lease, bytes));
    if (index >= note_.size) {
      return {};  // acknowledged, not proven: the server makes it part of the log
    }
    waiting_bytes_ += bytes.size();
    waiting_.push_back(std::move(bytes));
    return waiting_.size() >= kEntriesPerAppend || waiting_bytes_ >= kAppendBytesMax ? AppendToLog()
                                                                                     : Status();
  }

  // The log as it was signed: its tiles again, its checkpoint with the cosignatures.
  Status FinishLog() {
    file_.Reset();
    RINGFENCE_TRY(AppendToLog());
    if (log_->head().size != note_.size || log_->head().root != note_.root) {
      return Error{Code::kCorrupt, "the rebuilt log is not the one that the checkpoint signs"};
    }
    RINGFENCE_ASSIGN(const audit::NoteParts parts, audit::SplitNote(about_.checkpoint));
    for (const audit::NoteSignature& signature : parts.signatures) {
      if (signature.name != about_.origin) {
        RINGFENCE_TRY(log_->AddCosignature(signature.line));
      }
    }
    const std::string note = log_->checkpoint();
    log_.reset();
    return store::RestoreLogHead(db_, {static_cast<std::int64_t>(note_.size), note});
  }

 private:
  Status AppendToLog() {
    if (log_ == nullptr) {
      RINGFENCE_ASSIGN(auto key, ReadLogKey(staged_ + "/server/keys/log.key"));
      key_.emplace(std::move(key));
      RINGFENCE_TRY(os::MakeDirs(staged_ + "/server/log"));
      RINGFENCE_ASSIGN(log_, audit::LogWriter::Open(staged_ + "/server/log", about_.origin, *key_));
    }
    RINGFENCE_TRY(log_->Append(waiting_));
    waiting_.clear();
    waiting_bytes_ = 0;
    return {};
  }

  store::Connection& db_;
  const std::string staged_;
  About about_;
  audit::verify::Note note_;
  os::UniqueFd file_;
  std::optional<crypto::SigningKey> key_;
  std::unique_ptr<audit::LogWriter> log_;  // after the key, which it uses
  std::vector<Bytes> waiting_;
  std::size_t waiting_bytes_ = 0;
};

Status RefuseFilled(store::Connection& db) {
  for (const store::TableSpec& table : store::AllTables()) {
    if (table.copies == store::Copies::kNothing) {
      continue;
    }
    RINGFENCE_ASSIGN(const bool empty, store::IsEmpty(db, table));
    if (!empty) {
      return Error{Code::kConflict, "the database is not empty: it has " + std::string(table.name),
                   "a backup is restored into an empty database only"};
    }
  }
  return {};
}

Status GiveTo(const std::string& path, const os::Account& owner, int depth) {
  RINGFENCE_TRY(os::ChangeOwner(path, owner.uid, owner.gid));
  if (depth >= kDepthMax || !os::IsDirectory(path)) {
    return {};
  }
  RINGFENCE_ASSIGN(const auto names, os::ListDir(path));
  for (const std::string& name : names) {
    RINGFENCE_TRY(GiveTo(path + "/" + name, owner, depth + 1));
  }
  return {};
}

Status GiveAndSync(const RestoreOptions& options, const std::string& staged) {
  if (options.owner.has_value()) {
    RINGFENCE_TRY(GiveTo(staged + "/server", *options.owner, 0));
  }
  return os::SyncFileSystem(staged);
}

// The server's folder last: without it there is no server's state.
constexpr std::string_view kFolders[] = {"/policy", "/server"};

// The first `count` of them, where nothing was before.
void TakeBack(const RestoreOptions& options, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    (void)os::RemoveTree(options.state_folder + std::string(kFolders[i]));
  }
}

Status MoveInPlace(const RestoreOptions& options, const std::string& staged) {
  for (std::size_t i = 0; i < std::size(kFolders); ++i) {
    const std::string folder(kFolders[i]);
    if (const Status named = os::Rename(staged + folder, options.state_folder + folder);
        !named.has_value()) {
      TakeBack(options, i);
      return named;
    }
  }
  const Status durable = os::SyncDir(options.state_folder);
  if (!durable.has_value()) {
    TakeBack(options, std::size(kFolders));
  }
  return durable;
}

// Files and records. A database that lies apart takes its records last of all, when every file is
// in place: what fails before leaves it empty.
Result<Restored> Fill(SealedReader& reader, const RestoreOptions& options,
                      const std::string& staged) {
  const std::string server = staged + "/server";
  for (const char* folder : {"", "/server"}) {
    RINGFENCE_TRY(os::MakeDirs(staged + folder, 0700));
  }
  RINGFENCE_ASSIGN(auto database, options.open_database(server));
  Restored restored;
  bool moved = false;
  const Status written = database->Write([&](store::Connection& db) -> Status {
    RINGFENCE_TRY(RefuseFilled(db));
    for (const char* made : {"/server/log", "/server/keys", "/policy"}) {
      RINGFENCE_TRY(os::RemoveTree(staged + made));  // of an attempt whose connection was lost
    }
    RINGFENCE_TRY(os::MakeDirs(staged + "/policy", 0755));
    Restorer restorer(db, staged);
    RINGFENCE_ASSIGN(restored.manifest, Walk(reader, restorer, options.progress));
    RINGFENCE_TRY(restorer.FinishLog());
    const auto policy = policy::Policy::Load(staged + "/policy");
    RINGFENCE_ASSIGN(
        restored.distrusted,
        Distrust(db, {restored.manifest, options.now, options.keep_tokens,
                      options.rollback_accepted, policy.has_value() ? (*policy)->digest() : ""}));
    if (options.database_apart) {
      RINGFENCE_TRY(GiveAndSync(options, staged));
      RINGFENCE_TRY(MoveInPlace(options, staged));
      moved = true;
    }
    return {};
  });
  database.reset();
  if (options.database_apart) {
    // Of a commit whose end is not known the files must stay: the database may have it.
    if (!written.has_value() && moved && !store::IsOutcomeUnknown(written.error())) {
      TakeBack(options, std::size(kFolders));
    }
    RINGFENCE_TRY(written);
    return restored;
  }
  RINGFENCE_TRY(written);
  RINGFENCE_TRY(GiveAndSync(options, staged));
  RINGFENCE_TRY(MoveInPlace(options, staged));
  return restored;
}

// What a restore that was killed left behind holds keys in clear.
Status RemoveLeftovers(const std::string& state_folder) {
  RINGFENCE_ASSIGN(const auto names, os::ListDir(state_folder));
  for (const std::string& name : names) {
    if (name.starts_with(kStagedPrefix)) {
      RINGFENCE_TRY(os::RemoveTree(state_folder + "/" + name));
    }
  }
  return {};
}

}  // namespace

Status CheckEmpty(const std::string& state_folder) {
  for (const char* name : {"/server", "/policy"}) {
    const std::string folder = state_folder + name;
    if (!os::Exists(folder)) {
      continue;
    }
    RINGFENCE_ASSIGN(const auto names, os::ListDir(folder));
    if (!names.empty()) {
      return Error{Code::kConflict, folder + " is not empty: it has " + names.front(),
                   "a backup is restored only where no server's state is: stop the server and "
                   "move the old state away (keep it: it is evidence), or name another folder with "
                   "--state"};
    }
  }
  return {};
}

Result<Restored> Restore(SealedReader& reader, const RestoreOptions& options) {
  RINGFENCE_TRY(CheckEmpty(options.state_folder));
  const bool made = !os::Exists(options.state_folder);
  RINGFENCE_TRY(os::MakeDirs(options.state_folder, 0755));
  RINGFENCE_TRY(RemoveLeftovers(options.state_folder));
  // Inside, so that it is on the same file system, whatever is mounted there.
  const std::string staged = options.state_folder + "/." + crypto::RandomId("restoring");
  auto restored = Fill(reader, options, staged);
  (void)os::RemoveTree(staged);
  if (!restored.has_value() && made && !os::Exists(options.state_folder + "/server")) {
    (void)os::RemoveTree(options.state_folder);
  }
  return restored;
}

}  // namespace ringfence::backup
