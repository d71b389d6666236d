#include "image/store.h"

#include <algorithm>

#include "base/encoding.h"
#include "crypto/random.h"
#include "crypto/sha256.h"
#include "image/reference.h"
#include "os/file.h"
#include "os/shared_lock.h"
#include "os/staged_file.h"

namespace ringfence::image {
namespace {

constexpr std::size_t kFactsBytesMax = std::size_t{1} << 20U;
constexpr std::size_t kShortestDigits = 12;
constexpr std::int64_t kFormat = 1;

JsonArray ToArray(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

Result<StoredImage> FactsFromJson(const Json& json, const std::string& document) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "image"));
  RINGFENCE_TRY(reader.Int("v", kFormat, kFormat));
  StoredImage image;
  RINGFENCE_ASSIGN(const Json* const report, reader.Any("report"));
  Json whole = *report;
  if (whole.is_object()) {
    whole.get_object()["document"] = Base64(AsBytes(document));
  }
  RINGFENCE_ASSIGN(image.report, ReportFromJson(whole));
  image.report.document.clear();
  RINGFENCE_ASSIGN(image.names, reader.Strings("names", 2 * kNamesMax, kReferenceBytesMax));
  RINGFENCE_ASSIGN(image.source, reader.String("source", kTextBytesMax));
  RINGFENCE_ASSIGN(image.verifier, reader.String("verifier", 80));
  RINGFENCE_ASSIGN(const std::string imported, reader.String("imported", 40));
  RINGFENCE_ASSIGN(image.imported, ParseTime(imported));
  RINGFENCE_TRY(reader.Finish());
  return image;
}

Json FactsToJson(const StoredImage& image) {
  Json report = ReportToJson(image.report);
  report.get_object().erase("document");
  return JsonObject{{"v", kFormat},
                    {"report", std::move(report)},
                    {"names", ToArray(image.names)},
                    {"source", image.source},
                    {"verifier", image.verifier},
                    {"imported", FormatTime(image.imported)}};
}

Error NoImage(const std::string& what) {
  return Error{Code::kNotFound, "image " + what.substr(0, 200) + " is not on this node",
               "on the node, as root: `ringfence image import REF`; `ringfence image list` shows "
               "what is there",
               "image"};
}

}  // namespace

Json StoredImageToJson(const StoredImage& image) {
  Json json = ReportToJson(image.report);
  JsonObject& object = json.get_object();
  object.erase("document");
  object["names"] = ToArray(image.names);
  object["source"] = image.source;
  object["verifier"] = image.verifier;
  object["imported"] = FormatTime(image.imported);
  return json;
}

std::string Store::FolderOf(const std::string& digest) const {
  return folder_ + "/sha256-" + digest.substr(7);
}

Result<StoredImage> Store::Find(const std::string& digest) const {
  if (!IsDigest(digest)) {
    return Error{Code::kInvalidArgument, "\"" + digest.substr(0, 100) + "\" is no image's digest"};
  }
  const std::string folder = FolderOf(digest);
  const auto text = os::ReadText(folder + "/image.json", kFactsBytesMax);
  if (!text.has_value()) {
    return text.error().code == Code::kNotFound ? NoImage(digest) : text.error();
  }
  const auto read = [&]() -> Result<StoredImage> {
    RINGFENCE_ASSIGN(const std::string document, os::ReadText(folder + "/document", kJsonBytesMax));
    RINGFENCE_ASSIGN(const Json json, ParseJson(*text, kFactsBytesMax));
    RINGFENCE_ASSIGN(StoredImage image, FactsFromJson(json, document));
    if (image.report.digest != digest) {
      return Error{Code::kCorrupt, "it says that it is " + image.report.digest};
    }
    image.folder = folder;
    return image;
  };
  auto image = read();
  if (!image.has_value()) {
    return Error{Code::kCorrupt, "the stored image " + digest + ": " + image.error().message,
                 "remove it with `ringfence image remove " + digest + "` and import it again"};
  }
  return image;
}

std::vector<std::string> Store::Digests() const {
  std::vector<std::string> digests;
  const auto names = os::ListDir(folder_);
  for (const std::string& name : names.has_value() ? *names : std::vector<std::string>()) {
    if (name.starts_with("sha256-") && IsDigest("sha256:" + name.substr(7))) {
      digests.push_back("sha256:" + name.substr(7));
    }
  }
  return digests;
}

Result<std::vector<StoredImage>> Store::List() const {
  std::vector<StoredImage> images;
  for (const std::string& digest : Digests()) {
    RINGFENCE_ASSIGN(StoredImage image, Find(digest));
    images.push_back(std::move(image));
  }
  return images;
}

Result<StoredImage> Store::FindByText(const std::string& text) const {
  if (IsDigest(text)) {
    return Find(text);
  }
  RINGFENCE_ASSIGN(const auto images, List());
  std::vector<const StoredImage*> fit;
  const std::string digits = text.starts_with("sha256:") ? text.substr(7) : text;
  for (const StoredImage& image : images) {
    const bool named = std::find(image.names.begin(), image.names.end(), text) != image.names.end();
    if (named ||
        (digits.size() >= kShortestDigits && image.report.digest.substr(7).starts_with(digits))) {
      fit.push_back(&image);
    }
  }
  if (fit.size() != 1) {
    return fit.empty() ? NoImage(text)
                       : Error{Code::kInvalidArgument, "several images begin with " + text,
                               "write more of the digest"};
  }
  return *fit[0];
}

Result<os::UniqueFd> Store::Hold(const std::string& digest) const {
  auto lock = os::LockShared(FolderOf(digest) + "/lock");
  if (!lock.has_value() && lock.error().code == Code::kConflict) {
    return Error{Code::kConflict, "image " + digest + " is being removed"};
  }
  return lock;
}

Result<os::UniqueFd> Store::Lock() const {
  RINGFENCE_TRY(os::MakeDirs(folder_, 0700));
  RINGFENCE_TRY(os::ChangeMode(folder_, 0700));
  auto lock = os::LockFile(folder_ + "/lock");
  if (!lock.has_value() && lock.error().code == Code::kConflict) {
    return Error{Code::kConflict, "another import or removal of images is under way here",
                 "try again when it has finished"};
  }
  return lock;
}

Result<std::unique_ptr<Store::Import>> Store::Begin(unsigned owner) {
  RINGFENCE_ASSIGN(os::UniqueFd lock, Lock());
  RINGFENCE_ASSIGN(const auto names, os::ListDir(folder_));
  std::size_t images = 0;
  for (const std::string& name : names) {
    if (name.starts_with(".new-") || name.starts_with(".old-")) {
      RINGFENCE_TRY(os::RemoveTree(folder_ + "/" + name));
    }
    images += name.starts_with("sha256-") ? 1 : 0;
  }
  if (images >= kImagesMax) {
    return Error{Code::kExhausted,
                 "this node has " + std::to_string(images) + " images, and keeps no more",
                 "remove one: `ringfence image list`, `ringfence image remove`"};
  }
  const std::string folder = folder_ + "/.new-" + crypto::RandomId("import");
  std::unique_ptr<Import> import(new Import(*this, folder, std::move(lock)));
  RINGFENCE_TRY(os::MakeDirs(import->tree(), 0700));
  RINGFENCE_TRY(os::ChangeOwner(import->tree(), owner, owner));
  RINGFENCE_TRY(os::ChangeMode(import->tree(), 0755));
  return import;
}

Store::Import::~Import() { (void)os::RemoveTree(folder_); }  // if it is still there

Status Store::Write(const StoredImage& image) const {
  const std::string text = CanonicalJson(FactsToJson(image));
  return os::WriteFileDurable(image.folder + "/image.json", AsBytes(text), 0600);
}

Result<StoredImage> Store::Import::Keep(const Report& report, StoredImage facts) {
  facts.report = report;
  facts.report.document.clear();
  std::vector<std::string> names = report.names;
  names.insert(names.end(), facts.names.begin(), facts.names.end());
  RINGFENCE_ASSIGN(const auto others, store_.List());
  for (StoredImage other : others) {
    if (other.report.digest == report.digest) {
      names.insert(names.end(), other.names.begin(), other.names.end());
      continue;
    }
    const std::size_t gone = std::erase_if(other.names, [&](const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    });
    if (gone > 0) {
      RINGFENCE_TRY(store_.Write(other));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() > 2 * kNamesMax) {
    return Error{Code::kExhausted,
                 "the image has more names than " + std::to_string(2 * kNamesMax)};
  }
  facts.names = std::move(names);
  const std::string place = store_.FolderOf(report.digest);
  if (os::Exists(place)) {  // the same bytes: only what is said of it is new
    facts.folder = place;
    RINGFENCE_TRY(store_.Write(facts));
    return facts;
  }
  facts.folder = folder_;
  RINGFENCE_TRY(os::WriteFileDurable(folder_ + "/document", AsBytes(report.document), 0600));
  RINGFENCE_TRY(os::WriteFileDurable(folder_ + "/lock", {}, 0600));
  RINGFENCE_TRY(store_.Write(facts));
  RINGFENCE_TRY(os::RenameStaged(folder_, place));
  RINGFENCE_TRY(os::SyncDir(store_.folder_));
  facts.folder = place;
  return facts;
}

Status Store::Remove(const std::string& digest) {
  RINGFENCE_ASSIGN(const os::UniqueFd whole, Lock());
  const std::string place = FolderOf(digest);
  if (!IsDigest(digest) || !os::Exists(place)) {
    return NoImage(digest);
  }
  const auto lock = os::LockFile(place + "/lock");
  if (!lock.has_value()) {
    return lock.error().code == Code::kConflict
               ? Error{Code::kConflict, "image " + digest + " is in use by a box",
                       "end its lease first; `ringfence lease list` shows them"}
               : lock.error();
  }
  const std::string gone = folder_ + "/.old-" + crypto::RandomId("removed");
  RINGFENCE_TRY(os::RenameStaged(place, gone));
  RINGFENCE_TRY(os::SyncDir(folder_));
  return os::RemoveTree(gone);
}

}  // namespace ringfence::image
