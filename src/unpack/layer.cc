#include "unpack/layer.h"

#include <algorithm>
#include <set>

#include "base/encoding.h"
#include "crypto/sha256_stream.h"
#include "os/file.h"

namespace ringfence::image {
namespace {

constexpr std::size_t kChunkBytes = 256 * 1024;
constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";
constexpr unsigned kSetBits = 06000;

std::string DigestText(crypto::Sha256Stream& stream) { return "sha256:" + Hex(stream.Finish()); }

Error Refuse(const std::string& path, std::string why, std::string fix,
             Code code = Code::kInvalidArgument) {
  return Error{code, "entry \"" + path.substr(0, 300) + "\" " + std::move(why), std::move(fix)};
}

// The bytes of a layer as stored, counted and hashed on their way.
class StoredStream {
 public:
  StoredStream(const Pull& pull, const std::string& digest) : pull_(pull), digest_(digest) {}
  Result<ByteView> Next() {
    RINGFENCE_ASSIGN(const ByteView bytes, pull_());
    bytes_ += bytes.size();
    hash_.Add(bytes);
    return bytes;
  }
  // The rest, and what it all was.
  Status Finish() {
    for (;;) {
      RINGFENCE_ASSIGN(const ByteView bytes, Next());
      if (bytes.empty()) {
        break;
      }
    }
    const std::string found = DigestText(hash_);
    if (!digest_.empty() && found != digest_) {
      return Error{Code::kCorrupt, "a layer is " + found + ", and the manifest says " + digest_,
                   "the image is damaged or was changed: fetch it again from where it is trusted"};
    }
    return {};
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  const Pull& pull_;
  const std::string& digest_;
  crypto::Sha256Stream hash_;
  std::uint64_t bytes_ = 0;
};

// The same uncompressed, bounded.
class PlainStream {
 public:
  PlainStream(StoredStream& stored, const Limits& limits) : stored_(stored), limits_(limits) {}
  Status Open() {
    RINGFENCE_ASSIGN(reader_, ArchiveReader::OpenPacked([this] { return stored_.Next(); }));
    RINGFENCE_ASSIGN(const auto entry, reader_->Next());
    ended_ = !entry.has_value();
    return {};
  }
  Result<ByteView> Next() {
    if (ended_) {
      return ByteView();
    }
    RINGFENCE_ASSIGN(const std::size_t got, reader_->Read(chunk_));
    ended_ = got == 0;
    bytes_ += got;
    const std::uint64_t most =
        std::min(limits_.layer_stream_bytes_max,
                 limits_.ratio_free_bytes + stored_.bytes() * limits_.ratio_max);
    if (bytes_ > most) {
      return Error{Code::kExhausted,
                   "a layer of " + std::to_string(stored_.bytes()) +
                       " bytes so far grows to more than " + std::to_string(most),
                   "an image that unpacks to " + std::to_string(limits_.ratio_max) +
                       " times its size is taken for an attack; build it without files of nothing "
                       "but zeros"};
    }
    hash_.Add(ByteView(chunk_).first(got));
    return ByteView(chunk_).first(got);
  }
  Status Finish(const std::string& diff_id) {
    for (;;) {
      RINGFENCE_ASSIGN(const ByteView bytes, Next());
      if (bytes.empty()) {
        break;
      }
    }
    const std::string found = DigestText(hash_);
    if (found != diff_id) {
      return Error{Code::kCorrupt,
                   "a layer is " + found + " uncompressed, and the configuration says " + diff_id,
                   "the image is damaged or was changed: fetch it again from where it is trusted"};
    }
    return {};
  }

 private:
  StoredStream& stored_;
  const Limits& limits_;
  std::unique_ptr<ArchiveReader> reader_;
  Bytes chunk_ = Bytes(kChunkBytes);
  crypto::Sha256Stream hash_;
  std::uint64_t bytes_ = 0;
  bool ended_ = false;
};

// "./usr/bin/" -> "usr/bin"; "." and "./" -> "".
std::string PlainPath(std::string_view path) {
  while (path.starts_with("./")) {
    path.remove_prefix(2);
  }
  while (path.size() > 1 && path.ends_with('/')) {
    path.remove_suffix(1);
  }
  return path == "." || path == "./" ? std::string() : std::string(path);
}

class Layer {
 public:
  Layer(ArchiveReader& reader, const Limits& limits, os::Tree& tree, Unpacked& sum)
      : reader_(reader), limits_(limits), tree_(tree), sum_(sum) {}

  Status Run() {
    for (;;) {
      RINGFENCE_ASSIGN(const auto entry, reader_.Next());
      if (!entry.has_value()) {
        return {};
      }
      if (++sum_.entries > limits_.entries_max) {
        return Refuse(entry->path,
                      "is one more than the " + std::to_string(limits_.entries_max) +
                          " that an image may have",
                      "build it with fewer files, or put them in a dataset", Code::kExhausted);
      }
      RINGFENCE_TRY(Take(*entry));
    }
  }

 private:
  Status Take(const ArchiveEntry& entry) {
    const std::string path = PlainPath(entry.path);
    if (path.empty()) {
      return {};  // the root itself
    }
    if (const Status fine = os::CheckTreePath(path, {}); !fine.has_value()) {
      return Error{Code::kInvalidArgument, "entry " + fine.error().message,
                   "no honest tool writes such a name: do not trust this image"};
    }
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    if (name == kOpaque) {
      return Named(path, tree_.Clear(folder, written_));
    }
    if (name.starts_with(kWhiteout)) {
      const std::string hidden = name.substr(kWhiteout.size());
      return Named(path, tree_.Remove(folder.empty() ? hidden : folder + "/" + hidden, written_));
    }
    if ((entry.mode & kSetBits) != 0 && entry.kind == EntryKind::kFile) {
      ++sum_.privileged_bits;
    }
    RINGFENCE_TRY(Put(entry, path));
    written_.insert(path);
    return {};
  }

  // An error about a place in the tree, said of the entry that went there.
  static Status Named(const std::string& path, Status status) {
    if (status.has_value()) {
      return status;
    }
    Error error = status.error();
    const std::string name = "\"" + path.substr(0, 300) + "\"";
    error.message = "entry " + (error.message.starts_with(name) ? "" : name + ": ") + error.message;
    if (error.hint.empty()) {
      error.hint = "build the image again without it";
    }
    return error;
  }

  Status Put(const ArchiveEntry& entry, const std::string& path) {
    switch (entry.kind) {
      case EntryKind::kFolder:
        return Named(path, tree_.MakeFolder(path));
      case EntryKind::kFile:
        return PutFile(entry, path);
      case EntryKind::kLink:
        RINGFENCE_TRY(MakeRoom(path));
        return Named(path, tree_.MakeLink(path, entry.target));
      case EntryKind::kHardLink:
        return PutHardLink(path, PlainPath(entry.target));
      case EntryKind::kDevice:
        return Refuse(path, "is a device node",
                      "build the image without it: a box has a /dev of its own");
      case EntryKind::kPipe:
      case EntryKind::kSocket:
      case EntryKind::kOther:
        break;
    }
    return Refuse(path, "is no file, folder or link", "build the image without it");
  }

  // A folder of a lower layer gives way to what replaces it.
  Status MakeRoom(const std::string& path) {
    RINGFENCE_ASSIGN(const os::TreeKind kind, tree_.KindOf(path));
    return kind == os::TreeKind::kFolder ? Named(path, tree_.Remove(path, {})) : Status();
  }

  Status PutHardLink(const std::string& path, const std::string& target) {
    if (const Status fine = os::CheckTreePath(target, {}); !fine.has_value()) {
      return Refuse(path, "is a hard link to " + fine.error().message,
                    "no honest tool writes such a link: do not trust this image");
    }
    RINGFENCE_TRY(MakeRoom(path));
    const Status made = tree_.MakeHardLink(path, target);
    if (!made.has_value() && made.error().code == Code::kNotFound) {
      return Refuse(path, "is a hard link to \"" + target.substr(0, 300) + "\", which is not there",
                    "build the image again");
    }
    return Named(path, made);
  }

  Status PutFile(const ArchiveEntry& entry, const std::string& path) {
    if (entry.bytes > limits_.bytes_max - sum_.bytes) {
      return Refuse(path,
                    "has " + std::to_string(entry.bytes) + " bytes: with it the image has over " +
                        std::to_string(limits_.bytes_max) + " unpacked, holes counted",
                    "keep data and models out of the image", Code::kExhausted);
    }
    RINGFENCE_TRY(MakeRoom(path));
    auto file = tree_.MakeFile(path, (entry.mode & 0111U) != 0 ? 0555 : 0444);
    if (!file.has_value()) {
      return Named(path, file.error());
    }
    std::uint64_t written = 0;
    for (;;) {
      RINGFENCE_ASSIGN(const std::size_t got, reader_.Read(chunk_));
      if (got == 0) {
        break;
      }
      written += got;
      if (written > entry.bytes) {
        return Refuse(path, "has more bytes than it says", "build the image again");
      }
      RINGFENCE_TRY(Named(path, os::WriteAll(file->get(), ByteView(chunk_).first(got))));
    }
    sum_.bytes += written;
    return {};
  }

  ArchiveReader& reader_;
  const Limits& limits_;
  os::Tree& tree_;
  Unpacked& sum_;
  std::set<std::string> written_;  // by this layer: what a whiteout of it does not mean
  Bytes chunk_ = Bytes(kChunkBytes);
};

}  // namespace

Status UnpackLayer(const Pull& pull, const std::string& digest, const std::string& diff_id,
                   const Limits& limits, os::Tree& tree, Unpacked& sum) {
  StoredStream stored(pull, digest);
  PlainStream plain(stored, limits);
  RINGFENCE_TRY(plain.Open());
  RINGFENCE_ASSIGN(const auto reader, ArchiveReader::OpenTar([&plain] { return plain.Next(); }));
  RINGFENCE_TRY(Layer(*reader, limits, tree, sum).Run());
  RINGFENCE_TRY(plain.Finish(diff_id));
  RINGFENCE_TRY(stored.Finish());
  ++sum.layers;
  return {};
}

Result<std::string> TreeDigest(const os::Tree& tree) {
  crypto::Sha256Stream all;
  Bytes chunk(kChunkBytes);
  RINGFENCE_TRY(tree.Walk([&](const os::TreeEntry& entry, int file) -> Status {
    crypto::Sha256Stream content;
    std::uint64_t bytes = 0;
    while (file >= 0) {
      RINGFENCE_ASSIGN(const std::size_t got, os::ReadSome(file, chunk));
      if (got == 0) {
        break;
      }
      bytes += got;
      content.Add(ByteView(chunk).first(got));
    }
    content.Add(AsBytes(entry.target));
    const auto kind = static_cast<std::uint64_t>(entry.kind);
    for (const std::uint64_t number :
         {kind, std::uint64_t{entry.mode}, bytes, std::uint64_t{entry.path.size()}}) {
      all.Add(PutBigEndian(number));
    }
    all.Add(AsBytes(entry.path));
    all.Add(content.Finish());
    return {};
  }));
  return DigestText(all);
}

}  // namespace ringfence::image
