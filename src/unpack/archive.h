#pragma once

// The one door to libarchive. What it reads is a stranger's: only tar, and only gzip and zstd
// around a layer; the caller counts and bounds what comes out.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

struct archive;

namespace ringfence::image {

enum class EntryKind { kFile, kFolder, kLink, kHardLink, kDevice, kPipe, kSocket, kOther };

struct ArchiveEntry {
  std::string path;
  EntryKind kind = EntryKind::kOther;
  unsigned mode = 0;        // with set-user-id and the like
  std::uint64_t bytes = 0;  // holes counted
  std::string target;       // of a link of either kind
};

// The next bytes; empty at the end. Good until the next call.
using Pull = std::function<Result<ByteView>()>;

// One thread.
class ArchiveReader {
 public:
  // A tar, not compressed.
  static Result<std::unique_ptr<ArchiveReader>> OpenTar(Pull pull);
  // The same from a file, which it can skip in. The descriptor must outlive this.
  static Result<std::unique_ptr<ArchiveReader>> OpenTarFile(int fd);
  // A stream that is gzip, zstd or as it is: one entry whose data are the plain bytes; no entry
  // when there are none.
  static Result<std::unique_ptr<ArchiveReader>> OpenPacked(Pull pull);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  Result<std::optional<ArchiveEntry>> Next();           // nullopt: no more
  Result<std::size_t> Read(std::span<std::byte> into);  // of the entry; 0: all read

 private:
  explicit ArchiveReader(Pull pull);
  Error Failure(const std::string& what);
  static std::ptrdiff_t OnRead(archive* from, void* self, const void** buffer);

  archive* archive_;
  Pull pull_;
  std::optional<Error> pull_error_;
};

}  // namespace ringfence::image
