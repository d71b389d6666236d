#include "backup/create.h"

#include <algorithm>
#include <optional>

#include "audit/note.h"
#include "audit/verify_note.h"
#include "base/encoding.h"
#include "crypto/aes_gcm.h"
#include "crypto/random.h"
#include "os/commit.h"
#include "os/file.h"
#include "os/file_kind.h"
#include "os/file_owner.h"
#include "os/staged_file.h"
#include "store/log_records.h"
#include "store/migrations.h"
#include "store/records.h"
#include "store/tables.h"

namespace ringfence::backup {
namespace {

constexpr int kDepthMax = 8;
constexpr std::size_t kFilesMax = 1'000'000;
constexpr std::uint64_t kProgressEvery = 65536;

// The part's records on their way into the file.
class RecordWriter {
 public:
  explicit RecordWriter(SealedWriter& out) : out_(out) {}

  Status Put(Kind kind, ByteView body) {
    const auto head = RecordHead(kind, body.size());
    if (body.size() > kRecordBytesMax) {
      return Error{Code::kExhausted, "a record of " + std::to_string(body.size()) +
                                         " bytes is over the limit of a backup"};
    }
    if (meter_.has_value() && kind != Kind::kPart) {
      meter_->Add(head, body);
    }
    RINGFENCE_TRY(out_.Write(head));
    return out_.Write(body);
  }
  Status Put(Kind kind, const Json& json) { return Put(kind, AsBytes(CanonicalJson(json))); }

  Status BeginPart(std::string_view name) {
    EndPart();
    RINGFENCE_TRY(Put(Kind::kPart, AsBytes(name)));
    meter_.emplace(std::string(name));
    return {};
  }
  std::vector<PartFacts> Finish() {
    EndPart();
    return parts_;
  }

 private:
  void EndPart() {
    if (meter_.has_value()) {
      parts_.push_back(meter_->Finish());
      meter_.reset();
    }
  }

  SealedWriter& out_;
  std::optional<PartMeter> meter_;
  std::vector<PartFacts> parts_;
};

// As much of the file as is there now: one that grows goes on growing.
Status PutFile(RecordWriter& out, const std::string& path, const FileHead& head) {
  RINGFENCE_ASSIGN(const os::RegularFile file, os::OpenRegular(path));
  RINGFENCE_TRY(out.Put(Kind::kFile, FileHeadToJson(head)));
  WipedBuffer piece(kFilePieceBytes);
  for (std::uint64_t left = file.bytes; left > 0;) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left, kFilePieceBytes));
    RINGFENCE_ASSIGN(const std::size_t got, os::ReadSome(file.fd.get(), piece.all().first(wanted)));
    if (got == 0) {
      break;
    }
    RINGFENCE_TRY(out.Put(Kind::kPiece, piece.first(got)));
    left -= got;
  }
  return {};
}

// All plain files below `root`; nothing hidden, and no way out by a link.
class FolderWriter {
 public:
  FolderWriter(RecordWriter& out, std::string root, std::function<bool(const std::string&)> wanted)
      : out_(out), root_(std::move(root)), wanted_(std::move(wanted)) {}

  Status Put(const std::string& below, int depth) {
    if (depth > kDepthMax) {
      return Error{Code::kExhausted, root_ + ": folders are nested too deep"};
    }
    RINGFENCE_ASSIGN(const auto names, os::ListDir(root_ + "/" + below));
    for (const std::string& name : names) {
      const std::string path = below + name;
      if (name.starts_with('.') || !wanted_(path)) {
        continue;
      }
      RINGFENCE_TRY(PutOne(path, depth));
    }
    return {};
  }

 private:
  Status PutOne(const std::string& path, int depth) {
    std::string real = root_ + "/" + path;
    auto kind = os::KindOf(real);
    if (kind.has_value() && *kind == os::FileKind::kLink) {
      const auto target = os::AbsolutePath(real);
      if (!target.has_value() || !target->starts_with(root_ + "/")) {
        return {};  // leads nowhere or out: what needs it refuses it anyway
      }
      real = *target;
      kind = os::KindOf(real);
      if (kind.has_value() && *kind == os::FileKind::kFolder) {
        return {};
      }
    }
    if (!kind.has_value()) {
      return kind.error().code == Code::kNotFound ? Status() : Status(kind.error());
    }
    if (*kind == os::FileKind::kFolder) {
      return Put(path + "/", depth + 1);
    }
    if (*kind != os::FileKind::kFile) {
      return {};
    }
    if (!IsPlainPath(path) || ++files_ > kFilesMax) {
      return Error{Code::kInvalidArgument,
                   root_ + "/" + path + ": a name that a backup cannot hold, or too many files"};
    }
    RINGFENCE_ASSIGN(const os::FileOwner owner, os::OwnerOf(real));
    return PutFile(out_, real, {path, owner.mode & 0644U});
  }

  RecordWriter& out_;
  const std::string root_;
  const std::function<bool(const std::string&)> wanted_;
  std::size_t files_ = 0;
};

Status PutFolder(RecordWriter& out, std::string_view part, const std::string& folder,
                 const std::function<bool(const std::string&)>& wanted) {
  RINGFENCE_TRY(out.BeginPart(part));
  const auto root = os::AbsolutePath(folder);
  if (!root.has_value()) {
    // Several servers on one database share a policy that is among the records.
    return part == kPolicyPart && root.error().code == Code::kNotFound ? Status()
                                                                       : Status(root.error());
  }
  return FolderWriter(out, *root, wanted).Put("", 0);
}

Status PutRecords(RecordWriter& out, store::Connection& db, bool with_output) {
  RINGFENCE_TRY(out.BeginPart(kRecordsPart));
  for (const store::TableSpec& table : store::AllTables()) {
    if (table.copies != store::Copies::kRows &&
        !(table.copies == store::Copies::kOutput && with_output)) {
      continue;
    }
    RINGFENCE_TRY(out.Put(
        Kind::kTable,
        TableHeadToJson({std::string(table.name), {table.columns.begin(), table.columns.end()}})));
    RINGFENCE_TRY(store::ForEachRow(
        db, table, [&](const store::Row& row) { return out.Put(Kind::kRow, EncodeRow(row)); }));
  }
  return {};
}

Result<std::uint64_t> PutEntries(RecordWriter& out, store::Connection& db,
                                 const Progress& progress) {
  RINGFENCE_TRY(out.BeginPart(kEntriesPart));
  RINGFENCE_ASSIGN(const std::int64_t total, store::AuditSize(db));
  const store::TableSpec& table = *store::FindTable("audit");
  std::uint64_t next = 0;
  RINGFENCE_TRY(store::ForEachRow(db, table, [&](const store::Row& row) -> Status {
    if (static_cast<std::uint64_t>(store::IntAt(row, 0)) != next) {
      return Error{Code::kCorrupt,
                   "audit entry " + std::to_string(next) + " is missing from the database",
                   "find out who removed it: `ringfence audit verify`"};
    }
    if (++next % kProgressEvery == 0 && progress != nullptr) {
      progress(next, static_cast<std::uint64_t>(total));
    }
    return out.Put(Kind::kEntry, store::BlobAt(row, 3));
  }));
  return next;
}

Result<About> MakeAbout(store::Connection& db, const CreateOptions& options) {
  About about;
  about.version = RINGFENCE_VERSION;
  about.schema = store::NewestSchema();
  about.created = options.now;
  about.has_output = options.with_output;
  RINGFENCE_ASSIGN(const store::LogHead head, store::GetLogHead(db));
  if (head.note.empty()) {
    return Error{Code::kFailedPrecondition, "the server has published no checkpoint yet",
                 "start it once, and try again"};
  }
  about.checkpoint = head.note;
  RINGFENCE_ASSIGN(const auto cosignatures, store::CosignaturesOf(db, head.size));
  for (const std::string& line : cosignatures) {
    about.checkpoint += line;
  }
  RINGFENCE_ASSIGN(const audit::verify::Note note, audit::verify::ReadNote(about.checkpoint));
  about.origin = note.origin;
  RINGFENCE_ASSIGN(const crypto::SigningKey key,
                   ReadLogKey(options.server_folder + "/keys/log.key"));
  about.vkey = audit::VerifierKey(note.origin, 1, key.public_key());
  return about;
}

// All of it is of one moment: one view of the database.
Status WriteRecords(store::Connection& db, const CreateOptions& options, RecordWriter& out,
                    Manifest& manifest) {
  RINGFENCE_ASSIGN(manifest.about, MakeAbout(db, options));
  RINGFENCE_ASSIGN(const audit::verify::Note note,
                   audit::verify::ReadNote(manifest.about.checkpoint));
  manifest.log_size = note.size;
  manifest.log_root = Base64(note.root);
  RINGFENCE_TRY(out.Put(Kind::kAbout, AboutToJson(manifest.about)));
  // The TLS certificate is issued anew at the next start.
  RINGFENCE_TRY(
      PutFolder(out, kKeysPart, options.server_folder + "/keys", [](const std::string& name) {
        return name != "tls.pem" && name != "tls.key.pem" &&
               name.find(".new.") == std::string::npos;
      }));
  RINGFENCE_TRY(
      PutFolder(out, kPolicyPart, options.policy_folder, [](const std::string&) { return true; }));
  RINGFENCE_TRY(PutRecords(out, db, options.with_output));
  RINGFENCE_ASSIGN(manifest.entries, PutEntries(out, db, options.progress));
  return {};
}

Result<Manifest> WriteAll(store::Database& database, const CreateOptions& options,
                          SealedWriter& sealed) {
  RecordWriter out(sealed);
  Manifest manifest;
  bool begun = false;
  RINGFENCE_TRY(database.Read([&](store::Connection& db) -> Status {
    if (std::exchange(begun, true)) {  // what was written cannot be taken back
      return Error{Code::kUnavailable, "the connection to the database was lost", "try again"};
    }
    return WriteRecords(db, options, out, manifest);
  }));
  manifest.parts = out.Finish();
  RINGFENCE_TRY(out.Put(Kind::kManifest, ManifestToJson(manifest)));
  RINGFENCE_TRY(sealed.Finish());
  return manifest;
}

Status ReadBack(const std::string& path, const SecretBytes& passphrase) {
  RINGFENCE_ASSIGN(SealedReader reader, SealedReader::Open(path, passphrase));
  RINGFENCE_ASSIGN(const CheckReport report, Check(reader, {}, nullptr));
  if (!report.ok) {
    return Error{Code::kCorrupt, "what was written does not hold: " + report.problems.front(),
                 "the server's state itself is not sound: `ringfence audit verify`"};
  }
  return {};
}

}  // namespace

Result<Created> Create(store::Database& database, const CreateOptions& options,
                       const SecretBytes& passphrase) {
  if (os::Exists(options.file)) {
    return Error{Code::kConflict, options.file + " exists already",
                 "a backup is never written over: choose another name"};
  }
  const std::string beside = options.file + "." + crypto::RandomId("new");
  const auto write = [&]() -> Result<Created> {
    RINGFENCE_ASSIGN(const os::UniqueFd fd, os::OpenForWrite(beside, 0600));
    RINGFENCE_ASSIGN(SealedWriter sealed, SealedWriter::Create(fd.get(), passphrase, options.cost));
    Created created;
    RINGFENCE_ASSIGN(created.manifest, WriteAll(database, options, sealed));
    RINGFENCE_TRY(os::SyncData(fd.get()));
    RINGFENCE_ASSIGN(created.file_bytes, os::FileBytes(beside));
    if (options.verify) {
      RINGFENCE_TRY(ReadBack(beside, passphrase));
    }
    RINGFENCE_TRY(os::RenameNew(beside, options.file));
    return created;
  };
  auto created = write();
  if (!created.has_value()) {
    (void)os::RemoveFile(beside);
  }
  return created;
}

}  // namespace ringfence::backup
