#include "backup/walk.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/encoding.h"
#include "crypto/aes_gcm.h"
#include "store/migrations.h"

namespace ringfence::backup {
namespace {

constexpr std::uint64_t kProgressEvery = std::uint64_t{4} << 20U;

Error Bad(std::string what) {
  return Error{Code::kCorrupt, "the backup is not one that Ringfence writes: " + std::move(what),
               "use another copy of it; nothing of this one was used"};
}

class Walker {
 public:
  Walker(SealedReader& reader, Visitor& visitor, const Progress& progress)
      : reader_(reader), visitor_(visitor), progress_(progress) {}
  ~Walker() { crypto::Wipe(body_); }
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  Result<Manifest> Run() {
    RINGFENCE_TRY(Next());
    RINGFENCE_TRY(TakeAbout());
    for (;;) {
      RINGFENCE_TRY(Next());
      if (kind_ == Kind::kManifest) {
        return TakeManifest();
      }
      if (kind_ == Kind::kPart) {
        RINGFENCE_TRY(TakePart());
        continue;
      }
      if (!meter_.has_value()) {
        return Bad("a record before the first part");
      }
      meter_->Add(head_, body_);
      RINGFENCE_TRY(TakeRecord());
    }
  }

 private:
  Status Next() {
    RINGFENCE_TRY(reader_.Read(head_));
    kind_ = static_cast<Kind>(std::to_integer<std::uint8_t>(head_[0]));
    const auto bytes = GetBigEndian<std::uint32_t>(ByteView(head_).subspan(1));
    if (bytes > kRecordBytesMax) {
      return Bad("a record of " + std::to_string(bytes) + " bytes");
    }
    crypto::Wipe(body_);
    body_.resize(bytes);
    RINGFENCE_TRY(reader_.Read(body_));
    if (progress_ != nullptr && reader_.offset() - told_ >= kProgressEvery) {
      told_ = reader_.offset();
      progress_(told_, reader_.file_bytes());
    }
    return {};
  }

  Result<Json> BodyJson() const {
    const auto json = ParseJson(AsText(body_), kRecordBytesMax);
    return json.has_value() ? json : Result<Json>(Bad("JSON that is none"));
  }

  Status TakeAbout() {
    if (kind_ != Kind::kAbout) {
      return Bad("it does not begin with what it is");
    }
    RINGFENCE_ASSIGN(const Json json, BodyJson());
    RINGFENCE_ASSIGN(about_, AboutFromJson(json));
    about_text_ = ToText(body_);
    if (about_.schema > store::NewestSchema()) {
      return Error{Code::kFailedPrecondition,
                   "the backup has schema " + std::to_string(about_.schema) + " (Ringfence " +
                       about_.version + "), this version knows up to " +
                       std::to_string(store::NewestSchema()),
                   "restore it with the version that made it, or a later one"};
    }
    return visitor_.Begin(about_);
  }

  Status TakePart() {
    EndPart();
    if (parts_.size() == std::size(kParts) || AsText(body_) != kParts[parts_.size()]) {
      return Bad("its parts are not in their order");
    }
    meter_.emplace(ToText(body_));
    part_ = kParts[parts_.size()];
    in_file_ = false;
    table_ = nullptr;
    return {};
  }

  void EndPart() {
    if (meter_.has_value()) {
      parts_.push_back(meter_->Finish());
      meter_.reset();
    }
  }

  Status TakeRecord() {
    const bool files = part_ == kKeysPart || part_ == kPolicyPart;
    if (kind_ == Kind::kFile && files) {
      RINGFENCE_ASSIGN(const Json json, BodyJson());
      RINGFENCE_ASSIGN(const FileHead head, FileHeadFromJson(json));
      in_file_ = true;
      return visitor_.File(part_, head);
    }
    if (kind_ == Kind::kPiece && files && in_file_ && !body_.empty() &&
        body_.size() <= kFilePieceBytes) {
      return visitor_.Piece(body_);
    }
    if (kind_ == Kind::kTable && part_ == kRecordsPart) {
      return TakeTable();
    }
    if (kind_ == Kind::kRow && part_ == kRecordsPart && table_ != nullptr) {
      RINGFENCE_ASSIGN(const store::Row row, DecodeRow(body_, columns_.size()));
      return visitor_.Row(*table_, columns_, row);
    }
    if (kind_ == Kind::kEntry && part_ == kEntriesPart) {
      return visitor_.Entry(entries_++, body_);
    }
    return Bad("a record of another kind in its part \"" + std::string(part_) + "\"");
  }

  // Columns are names of the schema, never text of the file: they become part of statements.
  Status TakeTable() {
    RINGFENCE_ASSIGN(const Json json, BodyJson());
    RINGFENCE_ASSIGN(const TableHead head, TableHeadFromJson(json));
    const store::TableSpec* const table = store::FindTable(head.table);
    const bool copied = table != nullptr && (table->copies == store::Copies::kRows ||
                                             table->copies == store::Copies::kOutput);
    if (!copied) {
      return Bad("a table that the schema does not have");
    }
    columns_.clear();
    for (const std::string& name : head.columns) {
      const auto found = std::find(table->columns.begin(), table->columns.end(), name);
      if (found == table->columns.end() ||
          std::find(columns_.begin(), columns_.end(), name) != columns_.end()) {
        return Bad("a column that the schema does not have");
      }
      columns_.push_back(*found);
    }
    table_ = table;
    return {};
  }

  Result<Manifest> TakeManifest() {
    EndPart();
    RINGFENCE_ASSIGN(const Json json, BodyJson());
    RINGFENCE_ASSIGN(Manifest manifest, ManifestFromJson(json));
    if (!reader_.at_end()) {
      return Bad("something follows its manifest");
    }
    if (CanonicalJson(AboutToJson(manifest.about)) != about_text_) {
      return Bad("its manifest is of another backup");
    }
    if (parts_.size() != std::size(kParts) || manifest.parts != parts_) {
      return Bad("its parts are not what its manifest says");
    }
    if (manifest.entries != entries_) {
      return Bad("its entries are not as many as its manifest says");
    }
    return manifest;
  }

  SealedReader& reader_;
  Visitor& visitor_;
  const Progress& progress_;
  std::uint64_t told_ = 0;
  std::array<std::byte, 5> head_{};
  Kind kind_{};
  Bytes body_;
  About about_;
  std::string about_text_;
  std::string_view part_;
  std::optional<PartMeter> meter_;
  std::vector<PartFacts> parts_;
  bool in_file_ = false;
  const store::TableSpec* table_ = nullptr;
  std::vector<std::string_view> columns_;
  std::uint64_t entries_ = 0;
};

}  // namespace

PartMeter::PartMeter(std::string name) { facts_.name = std::move(name); }

void PartMeter::Add(ByteView head, ByteView body) {
  ++facts_.records;
  facts_.bytes += head.size() + body.size();
  hash_.Add(head);
  hash_.Add(body);
}

PartFacts PartMeter::Finish() {
  facts_.sha256 = Hex(hash_.Finish());
  return facts_;
}

std::array<std::byte, 5> RecordHead(Kind kind, std::size_t bytes) {
  std::array<std::byte, 5> head{static_cast<std::byte>(kind)};
  const auto length = PutBigEndian(static_cast<std::uint32_t>(bytes));
  std::copy(length.begin(), length.end(), head.begin() + 1);
  return head;
}

Result<Manifest> Walk(SealedReader& reader, Visitor& visitor, const Progress& progress) {
  reader.Rewind();
  return Walker(reader, visitor, progress).Run();
}

}  // namespace ringfence::backup
