#include "isolate/image_import.h"

#include <algorithm>

#include "base/code.h"
#include "base/encoding.h"
#include "crypto/sha256_stream.h"
#include "isolate/image_worker.h"
#include "os/bounded_run.h"
#include "os/file.h"
#include "os/file_owner.h"
#include "os/identity.h"
#include "os/memory_file.h"
#include "os/privileges.h"
#include "os/staged_file.h"

namespace ringfence::isolate {
namespace {

constexpr const char* kPodman = "/usr/bin/podman";
constexpr std::size_t kBlobsMax = 512;
constexpr std::size_t kWordsShownMax = 600;
constexpr auto kPodmanMax = std::chrono::minutes(15);
constexpr unsigned kOthersMayWrite = 022;

// What an image lies in, opened; nothing of it is read here.
struct OpenSource {
  std::vector<std::pair<std::string, os::UniqueFd>> files;
  os::UniqueFd tar;
};

Error NoSource(const std::string& place, const Error& error) {
  Error told = Prefix("image " + place, error);
  told.hint =
      "name an OCI layout folder (with index.json and blobs/), or a tar of one or of "
      "`docker save`";
  told.field = "image";
  return told;
}

bool IsHex(const std::string& name) { return image::IsDigest("sha256:" + name); }

Result<OpenSource> OpenLayout(const std::string& folder) {
  OpenSource opened;
  const auto add = [&](const std::string& name) -> Status {
    auto file = os::OpenRegular(folder + "/" + name);
    if (!file.has_value()) {
      return NoSource(folder, file.error());
    }
    opened.files.emplace_back(name, std::move(file->fd));
    return {};
  };
  RINGFENCE_TRY(add("index.json"));
  const auto names = os::ListDir(folder + "/blobs/sha256");
  if (!names.has_value()) {
    return NoSource(folder, names.error());
  }
  for (const std::string& name : *names) {
    if (!IsHex(name)) {
      continue;
    }
    if (opened.files.size() > kBlobsMax) {
      return Error{Code::kExhausted,
                   "image " + folder + " has more than " + std::to_string(kBlobsMax) + " blobs",
                   "copy the one image out of it: `skopeo copy oci:DIR:TAG oci:NEW`", "image"};
    }
    RINGFENCE_TRY(add("blobs/sha256/" + name));
  }
  return opened;
}

// podman knows its own storage; we only get a tar from it.
Status SaveFromStorage(const std::string& reference, const std::string& to) {
  if (!os::Exists(kPodman)) {
    return Error{Code::kFailedPrecondition,
                 "containers-storage needs podman, and " + std::string(kPodman) + " is not there",
                 "install podman, or save the image elsewhere and import the tar", "image"};
  }
  os::SpawnOptions spawn;
  spawn.path = kPodman;
  spawn.arguments = {"podman",   "save", "--quiet", "--format", "oci-archive",
                     "--output", to,     "--",      reference};
  const auto home = os::Environment("HOME");
  spawn.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home.value_or("/root")};
  if (const auto runtime = os::Environment("XDG_RUNTIME_DIR")) {
    spawn.environment.push_back("XDG_RUNTIME_DIR=" + *runtime);
  }
  os::BoundedRun bounds;
  bounds.time_max = kPodmanMax;
  const auto done = os::RunBounded(spawn, bounds);
  if (!done.has_value()) {
    return Prefix("podman save", done.error());
  }
  if (done->ended.signalled || done->ended.code != 0) {
    return Error{Code::kNotFound,
                 "podman save " + reference + ": " + done->text.substr(0, kWordsShownMax),
                 "`podman images` (as the same user) shows what is there", "image"};
  }
  return {};
}

Result<OpenSource> OpenSourceAt(const image::SourceReference& source, const std::string& scratch) {
  if (source.kind == image::SourceKind::kLayout) {
    return OpenLayout(source.place);
  }
  std::string path = source.place;
  if (source.kind == image::SourceKind::kContainersStorage) {
    path = scratch + "/archive.tar";
    RINGFENCE_TRY(SaveFromStorage(source.place, path));
  } else {
    auto real = os::AbsolutePath(path);
    if (!real.has_value()) {
      return NoSource(path, real.error());
    }
    path = *real;
  }
  auto file = os::OpenRegular(path);
  if (!file.has_value()) {
    return NoSource(path, file.error());
  }
  OpenSource opened;
  opened.tar = std::move(file->fd);
  return opened;
}

// {"error":{"code","message","hint"}}, or nothing that could be trusted.
Error WorkerError(const std::string& text) {
  Error error{Code::kUnavailable, "the worker failed and gave no reason"};
  const auto json = ParseJson(text, image::kReportBytesMax);
  const JsonObject* const whole = json.has_value() ? json->if_object() : nullptr;
  const Json* const inner = whole == nullptr ? nullptr : whole->if_contains("error");
  auto reader = inner == nullptr ? Result<JsonReader>(error) : JsonReader::Open(*inner);
  if (!reader.has_value()) {
    return error;
  }
  const auto code = reader->String("code", 64);
  const auto message = reader->String("message", 4096);
  const auto hint = reader->StringOr("hint", "", 4096);
  if (code.has_value() && message.has_value() && hint.has_value()) {
    error.code = CodeFromLabel(*code);
    error.message = *message;
    error.hint = *hint;
  }
  error.field = "image";
  return error;
}

Result<std::string> RunWorker(const ImagePlace& place, ImageTask task, const OpenSource& opened) {
  for (const auto& [name, fd] : opened.files) {
    task.files.emplace_back(name, fd.get());
  }
  task.tar = opened.tar.get();
  RINGFENCE_ASSIGN(os::SpawnOptions spawn, ImageWorkerProcess(place.worker, task));
  os::BoundedRun bounds;
  bounds.bytes_max = image::kReportBytesMax;
  bounds.time_max = place.worker_max;
  bounds.with_errors = false;
  auto done = os::RunBounded(std::move(spawn), bounds);
  if (!done.has_value()) {
    return Prefix("the image worker", done.error());
  }
  if (done->ended.signalled) {
    return Error{Code::kUnavailable,
                 "the image worker was ended by signal " + std::to_string(done->ended.code)};
  }
  if (done->ended.code != 0) {
    return WorkerError(done->text);
  }
  return std::move(done->text);
}

}  // namespace

Result<std::string> ResolveImage(const ImagePlace& place, const image::SourceReference& source) {
  if (source.kind == image::SourceKind::kContainersStorage) {
    return Error{Code::kInvalidArgument,
                 "an image of containers-storage has no digest of its own until it is imported",
                 "on the node: `ringfence image import containers-storage:" + source.place +
                     "`, then run it by its name or digest",
                 "image"};
  }
  RINGFENCE_ASSIGN(const OpenSource opened, OpenSourceAt(source, ""));
  ImageTask task;
  task.work = ImageWork::kResolve;
  task.wanted = {source.tag, source.digest};
  RINGFENCE_ASSIGN(const std::string text, RunWorker(place, std::move(task), opened));
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, image::kReportBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  RINGFENCE_ASSIGN(std::string digest, reader.String("digest", 80));
  if (!image::IsDigest(digest)) {
    return Error{Code::kCorrupt, "the worker printed no digest"};
  }
  return digest;
}

Result<std::string> VerifierDigest(const std::string& program) {
  RINGFENCE_ASSIGN(const os::FileOwner owner, os::OwnerOf(program));
  if ((owner.uid != 0 && owner.uid != os::UserId()) || (owner.mode & kOthersMayWrite) != 0) {
    return Error{Code::kPermissionDenied, program + " could be changed by somebody who is not root",
                 "chown root and chmod go-w it", "node.image_verifier"};
  }
  RINGFENCE_ASSIGN(const os::RegularFile file, os::OpenRegular(program));
  crypto::Sha256Stream hash;
  Bytes chunk(256 * 1024);
  for (;;) {
    RINGFENCE_ASSIGN(const std::size_t got, os::ReadSome(file.fd.get(), chunk));
    if (got == 0) {
      break;
    }
    hash.Add(ByteView(chunk).first(got));
  }
  return "sha256:" + Hex(hash.Finish());
}

Status AskVerifier(const ImagePlace& place, const std::string& digest,
                   const std::string& document) {
  RINGFENCE_ASSIGN(const os::UniqueFd input,
                   os::MakeMemoryFile("ringfence-image", AsBytes(digest + "\n" + document)));
  os::SpawnOptions spawn;
  spawn.path = place.verifier;
  spawn.arguments = {place.verifier, digest};
  spawn.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  spawn.fds = {{input.get(), 0}};
  const unsigned uid = place.worker.uid;
  const bool same = place.worker.walls == WorkerWalls::kSameUser;
  spawn.before_exec = [uid, same] {
    return same ? os::DropAllPrivileges() : os::BecomeUser(uid, uid);
  };
  os::BoundedRun bounds;
  bounds.time_max = place.verifier_max;
  const auto done = os::RunBounded(spawn, bounds);
  const std::string hint =
      "an image is kept only when node.image_verifier exits with 0: sign the "
      "image, or mend the program";
  if (!done.has_value()) {
    return Error{Code::kPermissionDenied,
                 place.verifier + " did not vouch for " + digest + ": " + done.error().message,
                 hint, "image"};
  }
  if (done->ended.signalled || done->ended.code != 0) {
    return Error{Code::kPermissionDenied,
                 place.verifier + " did not vouch for " + digest + ": " +
                     (done->ended.signalled ? "signal " : "exit status ") +
                     std::to_string(done->ended.code) + " " + done->text.substr(0, kWordsShownMax),
                 hint, "image"};
  }
  return {};
}

Result<image::StoredImage> ImportImage(const ImagePlace& place,
                                       const image::SourceReference& source,
                                       const std::vector<std::string>& names, const Clock& clock) {
  for (const std::string& name : names) {
    RINGFENCE_ASSIGN(const image::Reference reference, image::ParseReference(name));
    if (reference.pinned()) {
      return Error{Code::kInvalidArgument, "the name " + name + " holds a digest",
                   "give it a name such as team/train:7", "name"};
    }
  }
  std::string verifier;
  if (!place.verifier.empty()) {
    RINGFENCE_ASSIGN(verifier, VerifierDigest(place.verifier));
  }
  image::Store store(place.store);
  RINGFENCE_ASSIGN(const auto import, store.Begin(place.worker.uid));
  RINGFENCE_ASSIGN(const OpenSource opened, OpenSourceAt(source, import->folder()));
  ImageTask task;
  task.work = ImageWork::kUnpack;
  task.wanted = {source.tag, source.digest};
  task.tree = import->tree();
  RINGFENCE_ASSIGN(const std::string text, RunWorker(place, std::move(task), opened));
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, image::kReportBytesMax));
  RINGFENCE_ASSIGN(const image::Report report, image::ReportFromJson(json));
  if (!place.verifier.empty()) {
    RINGFENCE_TRY(AskVerifier(place, report.digest, report.document));
  }
  if (source.kind == image::SourceKind::kContainersStorage) {
    RINGFENCE_TRY(os::RemoveFile(import->folder() + "/archive.tar"));
  }
  image::StoredImage facts;
  facts.names = names;
  facts.source = source.place.substr(0, 1024);
  facts.verifier = verifier;
  facts.imported = clock.Now();
  return import->Keep(report, std::move(facts));
}

}  // namespace ringfence::isolate
