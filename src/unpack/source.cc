#include "unpack/source.h"

#include <vector>

#include "image/limits.h"
#include "os/file.h"
#include "os/rewind.h"

namespace ringfence::image {
namespace {

constexpr std::size_t kChunkBytes = 256 * 1024;
constexpr int kLinksMax = 4;

Error NotThere(const std::string& name) {
  return Error{Code::kNotFound, "the image has no " + name.substr(0, 200),
               "save it again, whole: `podman save --format oci-archive`, `docker save` or "
               "`skopeo copy`"};
}

class FilesSource final : public Source {
 public:
  explicit FilesSource(std::map<std::string, int> files) : files_(std::move(files)) {}

  Result<Stream> Open(const std::string& name) override {
    const auto found = files_.find(name);
    if (found == files_.end()) {
      return NotThere(name);
    }
    struct State {
      Bytes chunk = Bytes(kChunkBytes);
      std::uint64_t offset = 0;
    };
    auto state = std::make_shared<State>();
    const int fd = found->second;
    return Stream{state, [state = state.get(), fd]() -> Result<ByteView> {
                    RINGFENCE_ASSIGN(state->chunk, os::ReadAt(fd, state->offset, kChunkBytes));
                    state->offset += state->chunk.size();
                    return ByteView(state->chunk);
                  }};
  }

 private:
  std::map<std::string, int> files_;
};

std::string Plain(std::string_view path) {
  while (path.starts_with("./")) {
    path.remove_prefix(2);
  }
  return std::string(path);
}

// "a/layer.tar" with target "../b/layer.tar": "b/layer.tar".
std::string Resolve(const std::string& link, const std::string& target) {
  const std::size_t slash = link.rfind('/');
  std::string folder = slash == std::string::npos ? "" : link.substr(0, slash);
  std::string_view rest = target;
  while (rest.starts_with("../") && !folder.empty()) {
    rest.remove_prefix(3);
    const std::size_t above = folder.rfind('/');
    folder = above == std::string::npos ? "" : folder.substr(0, above);
  }
  return folder.empty() ? std::string(rest) : folder + "/" + std::string(rest);
}

class TarSource final : public Source {
 public:
  explicit TarSource(int fd) : fd_(fd) {}

  // What lies where, once: a tar has no index.
  Status List() {
    RINGFENCE_TRY(os::Rewind(fd_));
    RINGFENCE_ASSIGN(const auto reader, ArchiveReader::OpenTarFile(fd_));
    for (std::size_t count = 0;; ++count) {
      RINGFENCE_ASSIGN(const auto entry, reader->Next());
      if (!entry.has_value()) {
        return {};
      }
      if (count >= kArchiveEntriesMax) {
        return Error{Code::kExhausted,
                     "the archive has more than " + std::to_string(kArchiveEntriesMax) +
                         " entries around its layers",
                     "save one image at a time"};
      }
      if (entry->kind == EntryKind::kFile) {
        names_[Plain(entry->path)] = "";
      } else if (entry->kind == EntryKind::kLink || entry->kind == EntryKind::kHardLink) {
        const std::string path = Plain(entry->path);
        names_[path] =
            entry->kind == EntryKind::kLink ? Resolve(path, entry->target) : Plain(entry->target);
      }
    }
  }

  Result<Stream> Open(const std::string& wanted) override {
    std::string name = wanted;
    for (int links = 0;; ++links) {
      const auto found = names_.find(name);
      if (found == names_.end() || links > kLinksMax) {
        return NotThere(wanted);
      }
      if (found->second.empty()) {
        break;
      }
      name = found->second;
    }
    RINGFENCE_TRY(os::Rewind(fd_));
    struct State {
      std::unique_ptr<ArchiveReader> reader;
      Bytes chunk = Bytes(kChunkBytes);
    };
    auto state = std::make_shared<State>();
    RINGFENCE_ASSIGN(state->reader, ArchiveReader::OpenTarFile(fd_));
    for (;;) {
      RINGFENCE_ASSIGN(const auto entry, state->reader->Next());
      if (!entry.has_value()) {
        return NotThere(wanted);
      }
      if (entry->kind == EntryKind::kFile && Plain(entry->path) == name) {
        break;
      }
    }
    return Stream{state, [state = state.get()]() -> Result<ByteView> {
                    RINGFENCE_ASSIGN(const std::size_t got, state->reader->Read(state->chunk));
                    return ByteView(state->chunk).first(got);
                  }};
  }

 private:
  int fd_;
  std::map<std::string, std::string> names_;  // of a link: where it leads; else empty
};

}  // namespace

Result<std::string> Source::Read(const std::string& name, std::size_t bytes_max) {
  RINGFENCE_ASSIGN(const Stream stream, Open(name));
  std::string text;
  for (;;) {
    RINGFENCE_ASSIGN(const ByteView bytes, stream.pull());
    if (bytes.empty()) {
      return text;
    }
    if (text.size() + bytes.size() > bytes_max) {
      return Error{Code::kExhausted,
                   name.substr(0, 200) + " is longer than " + std::to_string(bytes_max) + " bytes",
                   "no manifest or configuration is that long: save the image again"};
    }
    text += AsText(bytes);
  }
}

std::unique_ptr<Source> SourceOfFiles(std::map<std::string, int> files) {
  return std::make_unique<FilesSource>(std::move(files));
}

Result<std::unique_ptr<Source>> SourceOfTar(int fd) {
  auto source = std::make_unique<TarSource>(fd);
  const Status listed = source->List();
  if (!listed.has_value()) {
    Error error = Prefix("the archive", listed.error());
    error.hint =
        "a tar that is not compressed is needed (gunzip it first), as `docker save` and "
        "`podman save` write it";
    return error;
  }
  return std::unique_ptr<Source>(std::move(source));
}

}  // namespace ringfence::image
