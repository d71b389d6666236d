#include "jailer/mig_book.h"

#include "base/json.h"
#include "crypto/dsse.h"
#include "gpu/limits.h"
#include "gpu/mig_live.h"
#include "isolate/names.h"
#include "os/file.h"

namespace ringfence::jailer {
namespace {

constexpr std::size_t kBookBytesMax = 64 * 1024 * 1024;
constexpr std::size_t kTouchedMax = 64;
constexpr std::int64_t kSerialMax = std::int64_t{1} << 53U;

JsonObject DeedToJson(const MigDeed& deed) {
  JsonArray touched;
  for (const std::string& uuid : deed.touched) {
    touched.emplace_back(uuid);
  }
  return JsonObject{{"gpu", deed.gpu},       {"serial", deed.serial},
                    {"target", deed.target}, {"before", deed.before},
                    {"report", deed.report}, {"touched", std::move(touched)}};
}

Result<MigDeed> DeedFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "mig"));
  MigDeed deed;
  RINGFENCE_ASSIGN(deed.gpu, reader.String("gpu", isolate::kNameBytesMax));
  RINGFENCE_ASSIGN(deed.serial, reader.Int("serial", 1, kSerialMax));
  RINGFENCE_ASSIGN(deed.target, reader.String("target", gpu::kMigLayoutBytesMax));
  RINGFENCE_ASSIGN(deed.before, reader.String("before", gpu::kMigLayoutBytesMax));
  RINGFENCE_ASSIGN(deed.report, reader.String("report", crypto::kEnvelopeBytesMax));
  RINGFENCE_ASSIGN(deed.touched, reader.Strings("touched", kTouchedMax, isolate::kNameBytesMax));
  RINGFENCE_TRY(reader.Finish());
  return deed;
}

}  // namespace

Result<MigBook> MigBook::Open(const std::string& folder) {
  MigBook book(folder + "/mig.json");
  if (!os::Exists(book.path_)) {
    return book;
  }
  const auto load = [&]() -> Status {
    RINGFENCE_ASSIGN(const std::string text, os::ReadText(book.path_, kBookBytesMax));
    RINGFENCE_ASSIGN(const Json json, ParseJson(text, kBookBytesMax));
    RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "mig"));
    RINGFENCE_TRY(reader.Int("v", 1, 1));
    RINGFENCE_ASSIGN(const auto deeds, reader.Array("deeds", 4096));
    RINGFENCE_TRY(reader.Finish());
    for (const Json* one : deeds) {
      RINGFENCE_ASSIGN(MigDeed deed, DeedFromJson(*one));
      const std::string gpu = deed.gpu;
      book.deeds_[gpu] = std::move(deed);
    }
    return {};
  };
  if (const Status loaded = load(); !loaded.has_value()) {
    return Error{Code::kCorrupt, book.path_ + ": " + loaded.error().message,
                 "without it this node cannot tell which orders for MIG were carried out: stop it, "
                 "move its state away and join it anew (docs/operations/backup.md)"};
  }
  return book;
}

const MigDeed* MigBook::Find(const std::string& gpu) const {
  const auto found = deeds_.find(gpu);
  return found == deeds_.end() ? nullptr : &found->second;
}

Status MigBook::Put(const MigDeed& deed) {
  const auto before = deeds_;
  deeds_[deed.gpu] = deed;
  const Status saved = Save();
  if (!saved.has_value()) {
    deeds_ = before;
  }
  return saved;
}

Status MigBook::Save() const {
  JsonArray deeds;
  for (const auto& [gpu, deed] : deeds_) {
    deeds.push_back(DeedToJson(deed));
  }
  const std::string text = CanonicalJson(JsonObject{{"v", 1}, {"deeds", std::move(deeds)}});
  return os::WriteFileDurable(path_, AsBytes(text), 0600);
}

}  // namespace ringfence::jailer
