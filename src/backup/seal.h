#pragma once

// The outer shape of a backup file: a passphrase, scrypt, and numbered chunks of AES-256-GCM.
// Bytes: docs/formats/backup.md. A file that was changed anywhere, cut short, lengthened or put
// together from two is refused before anything of the wrong part is used.

#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/secret.h"
#include "crypto/aes_gcm.h"
#include "crypto/scrypt.h"
#include "os/unique_fd.h"

namespace ringfence::backup {

inline constexpr std::size_t kChunkBytes = 64 * 1024;
inline constexpr std::size_t kSealedChunkBytes = kChunkBytes + crypto::kGcmTagBytes;
inline constexpr std::size_t kHeaderBytes = 16 + 2 + 3 + 32 + 32;
inline constexpr std::uint16_t kSealVersion = 1;

// Bytes that are wiped when they go: keys pass through them.
class WipedBuffer {
 public:
  explicit WipedBuffer(std::size_t bytes) : bytes_(bytes) {}
  ~WipedBuffer() { crypto::Wipe(bytes_); }
  WipedBuffer(WipedBuffer&&) = default;
  WipedBuffer& operator=(WipedBuffer&&) = delete;
  WipedBuffer(const WipedBuffer&) = delete;
  WipedBuffer& operator=(const WipedBuffer&) = delete;
  std::span<std::byte> all() { return bytes_; }
  ByteView first(std::size_t count) const { return ByteView(bytes_).first(count); }

 private:
  Bytes bytes_;
};

// One thread.
class SealedWriter {
 public:
  // Writes the header to `fd`, which must outlive it and be at its beginning.
  static Result<SealedWriter> Create(int fd, const SecretBytes& passphrase,
                                     const crypto::ScryptCost& cost = {});
  Status Write(ByteView bytes);
  // The last chunk, marked as such. Nothing is durable: that is the caller's.
  Status Finish();
  std::uint64_t bytes() const { return bytes_; }  // of what was sealed

 private:
  SealedWriter(int fd, crypto::Aes256Gcm cipher)
      : fd_(fd), cipher_(std::move(cipher)), plain_(kChunkBytes) {}
  Status Flush(bool last);

  int fd_;
  crypto::Aes256Gcm cipher_;
  WipedBuffer plain_;
  std::size_t filled_ = 0;
  std::uint64_t chunk_ = 0;
  std::uint64_t bytes_ = 0;
};

// One thread.
class SealedReader {
 public:
  // kCorrupt when it is no backup, is damaged, or the passphrase is another one;
  // kFailedPrecondition when a later version wrote it.
  static Result<SealedReader> Open(const std::string& path, const SecretBytes& passphrase);

  // Exactly `into.size()` bytes. kCorrupt with the chunk's number when it does not open, or when
  // the file ends before.
  Status Read(std::span<std::byte> into);
  bool at_end() const { return next_ == file_bytes_ && used_ == filled_; }
  void Rewind();                                  // to the first byte
  std::uint64_t offset() const { return next_; }  // in the file, of what was opened so far
  std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  SealedReader(os::UniqueFd fd, std::uint64_t file_bytes, crypto::Aes256Gcm cipher)
      : fd_(std::move(fd)),
        file_bytes_(file_bytes),
        cipher_(std::move(cipher)),
        plain_(kChunkBytes) {}
  Status NextChunk();
  Error WhyNot(ByteView sealed, bool last);

  os::UniqueFd fd_;
  std::uint64_t file_bytes_;
  crypto::Aes256Gcm cipher_;
  WipedBuffer plain_;
  std::size_t filled_ = 0;
  std::size_t used_ = 0;
  std::uint64_t next_ = kHeaderBytes;
  std::uint64_t chunk_ = 0;
};

}  // namespace ringfence::backup
