#include "unpack/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>

#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "base/encoding.h"

namespace ringfence::image {
namespace {

constexpr std::size_t kBlockBytes = 256 * 1024;

// Names in pax headers are UTF-8, which libarchive gives out in the thread's locale.
void UseUtf8() {
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (utf8 != nullptr) {
    (void)uselocale(utf8);
  }
}

EntryKind KindOf(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) {
    return EntryKind::kHardLink;
  }
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return EntryKind::kFile;
    case AE_IFDIR:
      return EntryKind::kFolder;
    case AE_IFLNK:
      return EntryKind::kLink;
    case AE_IFCHR:
    case AE_IFBLK:
      return EntryKind::kDevice;
    case AE_IFIFO:
      return EntryKind::kPipe;
    case AE_IFSOCK:
      return EntryKind::kSocket;
    default:
      return EntryKind::kOther;
  }
}

// For an error: what is no text is shown as question marks.
std::string Shown(std::string_view name) {
  std::string text(name.substr(0, 300));
  if (!IsUtf8(text)) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) > 0x7e; }, '?');
  }
  return "entry \"" + text + "\"";
}

std::string TextOf(const char* text) { return text == nullptr ? std::string() : text; }

}  // namespace

ArchiveReader::ArchiveReader(Pull pull) : archive_(archive_read_new()), pull_(std::move(pull)) {
  RINGFENCE_CHECK(archive_ != nullptr);
  UseUtf8();
}

ArchiveReader::~ArchiveReader() { (void)archive_read_free(archive_); }

Error ArchiveReader::Failure(const std::string& what) {
  if (pull_error_.has_value()) {
    return *pull_error_;
  }
  std::string why = TextOf(archive_error_string(archive_));
  if (!IsUtf8(why)) {
    why.clear();
  }
  return Error{Code::kInvalidArgument, what + ": " + (why.empty() ? "it is damaged" : why),
               "build or save the image again: it is cut short, damaged or no tar"};
}

std::ptrdiff_t ArchiveReader::OnRead(archive* from, void* self, const void** buffer) {
  auto* const reader = static_cast<ArchiveReader*>(self);
  auto bytes = reader->pull_();
  if (!bytes.has_value()) {
    reader->pull_error_ = bytes.error();
    archive_set_error(from, -1, "the source failed");
    return -1;
  }
  *buffer = bytes->data();
  return static_cast<std::ptrdiff_t>(bytes->size());
}

Result<std::unique_ptr<ArchiveReader>> ArchiveReader::OpenTar(Pull pull) {
  std::unique_ptr<ArchiveReader> reader(new ArchiveReader(std::move(pull)));
  archive* const from = reader->archive_;
  if (archive_read_support_format_tar(from) != ARCHIVE_OK ||
      archive_read_support_format_empty(from) != ARCHIVE_OK ||
      archive_read_open(from, reader.get(), nullptr, &OnRead, nullptr) != ARCHIVE_OK) {
    return reader->Failure("open tar");
  }
  return reader;
}

Result<std::unique_ptr<ArchiveReader>> ArchiveReader::OpenTarFile(int fd) {
  std::unique_ptr<ArchiveReader> reader(new ArchiveReader({}));
  archive* const from = reader->archive_;
  if (archive_read_support_format_tar(from) != ARCHIVE_OK ||
      archive_read_open_fd(from, fd, kBlockBytes) != ARCHIVE_OK) {
    return reader->Failure("open tar");
  }
  return reader;
}

Result<std::unique_ptr<ArchiveReader>> ArchiveReader::OpenPacked(Pull pull) {
  std::unique_ptr<ArchiveReader> reader(new ArchiveReader(std::move(pull)));
  archive* const from = reader->archive_;
  if (archive_read_support_filter_gzip(from) != ARCHIVE_OK ||
      archive_read_support_filter_zstd(from) != ARCHIVE_OK ||
      archive_read_support_format_raw(from) != ARCHIVE_OK ||
      archive_read_support_format_empty(from) != ARCHIVE_OK ||
      archive_read_open(from, reader.get(), nullptr, &OnRead, nullptr) != ARCHIVE_OK) {
    return reader->Failure("open layer");
  }
  return reader;
}

Result<std::optional<ArchiveEntry>> ArchiveReader::Next() {
  archive_entry* raw = nullptr;
  const int got = archive_read_next_header(archive_, &raw);
  if (got == ARCHIVE_EOF) {
    return std::optional<ArchiveEntry>();
  }
  // A warning is a name or an attribute that could not be understood: nothing to guess about.
  if (got != ARCHIVE_OK || raw == nullptr) {
    const std::string name = raw == nullptr ? "" : TextOf(archive_entry_pathname(raw));
    return Failure(name.empty() ? "read the next entry" : Shown(name));
  }
  ArchiveEntry entry;
  const char* const path = archive_entry_pathname(raw);
  if (path == nullptr) {
    return Error{Code::kInvalidArgument, "an entry's name is not UTF-8",
                 "rename it and build the image again"};
  }
  entry.path = path;
  entry.kind = KindOf(raw);
  entry.mode = static_cast<unsigned>(archive_entry_perm(raw)) & 07777U;
  const std::int64_t bytes = archive_entry_size(raw);
  if (bytes < 0) {
    return Error{Code::kInvalidArgument, Shown(entry.path) + " has a size below zero",
                 "build the image again with a tool that writes proper tar files"};
  }
  entry.bytes = static_cast<std::uint64_t>(bytes);
  entry.target = TextOf(entry.kind == EntryKind::kHardLink ? archive_entry_hardlink(raw)
                                                           : archive_entry_symlink(raw));
  if (!IsUtf8(entry.path) || !IsUtf8(entry.target)) {
    return Error{Code::kInvalidArgument, Shown(entry.path) + " or where it leads is not UTF-8",
                 "rename it and build the image again"};
  }
  return std::optional<ArchiveEntry>(std::move(entry));
}

Result<std::size_t> ArchiveReader::Read(std::span<std::byte> into) {
  const la_ssize_t got = archive_read_data(archive_, into.data(), into.size());
  if (got < 0) {
    return Failure("read");
  }
  return static_cast<std::size_t>(got);
}

}  // namespace ringfence::image
