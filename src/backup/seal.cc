#include "backup/seal.h"

#include <algorithm>

#include "crypto/random.h"
#include "crypto/sha256.h"
#include "os/file.h"
#include "os/staged_file.h"

namespace ringfence::backup {
namespace {

constexpr std::string_view kMagic = "ringfence-backup";
constexpr std::size_t kSaltBytes = 32;
constexpr std::size_t kMacBytes = sizeof(Digest);
constexpr std::size_t kFactsBytes = kHeaderBytes - kMacBytes;  // what the MAC covers

struct FileKeys {
  SecretBytes header;
  SecretBytes chunks;
};

SecretBytes Derive(const SecretBytes& secret, std::string_view purpose, ByteView facts) {
  Bytes info = ToBytes(purpose);
  Append(info, facts);
  return SecretBytes(ByteView(crypto::HkdfSha256(secret.Reveal(), info)));
}

// Both keys depend on every byte of the header's facts.
Result<FileKeys> KeysFor(const SecretBytes& passphrase, ByteView facts,
                         const crypto::ScryptCost& cost) {
  RINGFENCE_ASSIGN(const SecretBytes secret,
                   crypto::Scrypt(passphrase, facts.last(kSaltBytes), cost, 32));
  return FileKeys{Derive(secret, "ringfence backup header v1\n", facts),
                  Derive(secret, "ringfence backup chunks v1\n", facts)};
}

crypto::GcmNonce NonceOf(std::uint64_t chunk, bool last) {
  crypto::GcmNonce nonce{};
  const auto number = PutBigEndian(chunk);
  std::copy(number.begin(), number.end(), nonce.begin() + 3);
  nonce.back() = std::byte{last ? std::uint8_t{1} : std::uint8_t{0}};
  return nonce;
}

Error Damaged(std::string what) {
  return Error{Code::kCorrupt, "the backup is damaged: " + std::move(what),
               "use another copy of it; nothing of this one was used"};
}

}  // namespace

Result<SealedWriter> SealedWriter::Create(int fd, const SecretBytes& passphrase,
                                          const crypto::ScryptCost& cost) {
  Bytes header = ToBytes(kMagic);
  Append(header, PutBigEndian(kSealVersion));
  for (const unsigned number : {cost.log_n, cost.r, cost.p}) {
    header.push_back(static_cast<std::byte>(number));
  }
  Append(header, crypto::RandomBytes(kSaltBytes));
  RINGFENCE_ASSIGN(const FileKeys keys, KeysFor(passphrase, header, cost));
  RINGFENCE_ASSIGN(crypto::Aes256Gcm cipher, crypto::Aes256Gcm::Create(keys.chunks));
  const Digest mac = crypto::HmacSha256(keys.header.Reveal(), header);
  Append(header, mac);
  RINGFENCE_TRY(os::WriteAll(fd, header));
  return SealedWriter(fd, std::move(cipher));
}

Status SealedWriter::Write(ByteView bytes) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    // A full chunk waits for the next byte, as only then it is known not to be the last.
    if (filled_ == kChunkBytes) {
      RINGFENCE_TRY(Flush(false));
    }
    const std::size_t count = std::min(bytes.size(), kChunkBytes - filled_);
    std::copy_n(bytes.begin(), count, plain_.all().begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ += count;
    bytes = bytes.subspan(count);
  }
  return {};
}

Status SealedWriter::Finish() { return Flush(true); }

Status SealedWriter::Flush(bool last) {
  Bytes sealed(filled_ + crypto::kGcmTagBytes);
  cipher_.Seal(NonceOf(chunk_++, last), {}, plain_.first(filled_), sealed);
  filled_ = 0;
  return os::WriteAll(fd_, sealed);
}

Result<SealedReader> SealedReader::Open(const std::string& path, const SecretBytes& passphrase) {
  RINGFENCE_ASSIGN(os::RegularFile file, os::OpenRegular(path));
  RINGFENCE_ASSIGN(const Bytes header, os::ReadAt(file.fd.get(), 0, kHeaderBytes));
  const ByteView view(header);
  if (header.size() < kMagic.size() || AsText(view.first(kMagic.size())) != kMagic) {
    return Error{Code::kCorrupt, path + " is not a Ringfence backup",
                 "`ringfence backup create FILE` makes one"};
  }
  if (header.size() < kHeaderBytes) {
    return Damaged("it ends within its header");
  }
  const auto version = GetBigEndian<std::uint16_t>(view.subspan(kMagic.size()));
  if (version != kSealVersion) {
    return Error{Code::kFailedPrecondition,
                 path + " has format " + std::to_string(version) + ", this version reads " +
                     std::to_string(kSealVersion),
                 "if it is not damaged, a later Ringfence wrote it: use that one"};
  }
  const auto number = [&](std::size_t at) { return std::to_integer<unsigned>(view[at]); };
  const crypto::ScryptCost cost{number(kMagic.size() + 2), number(kMagic.size() + 3),
                                number(kMagic.size() + 4)};
  const auto keys = KeysFor(passphrase, view.first(kFactsBytes), cost);
  if (!keys.has_value()) {
    return keys.error().code == Code::kInvalidArgument
               ? Damaged("its header asks for " + keys.error().message)
               : keys.error();
  }
  const Digest mac = crypto::HmacSha256(keys->header.Reveal(), view.first(kFactsBytes));
  if (!SecretBytes(ByteView(mac)).Equals(view.subspan(kFactsBytes))) {
    return Error{Code::kCorrupt, "wrong passphrase, or the backup's header is damaged",
                 "try the passphrase that was in use when it was made; or another copy of it"};
  }
  RINGFENCE_ASSIGN(crypto::Aes256Gcm cipher, crypto::Aes256Gcm::Create(keys->chunks));
  if (file.bytes < kHeaderBytes + crypto::kGcmTagBytes) {
    return Damaged("it is cut short after its header");
  }
  return SealedReader(std::move(file.fd), file.bytes, std::move(cipher));
}

Status SealedReader::Read(std::span<std::byte> into) {
  while (!into.empty()) {
    if (used_ == filled_) {
      RINGFENCE_TRY(NextChunk());
    }
    const std::size_t count = std::min(into.size(), filled_ - used_);
    const ByteView from = plain_.first(filled_).subspan(used_, count);
    std::copy(from.begin(), from.end(), into.begin());
    used_ += count;
    into = into.subspan(count);
  }
  return {};
}

Status SealedReader::NextChunk() {
  if (next_ == file_bytes_) {
    return Damaged("it ends in the middle of a record");
  }
  const std::uint64_t left = file_bytes_ - next_;
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left, kSealedChunkBytes));
  const bool last = size == left;
  RINGFENCE_ASSIGN(const Bytes sealed, os::ReadAt(fd_.get(), next_, size));
  if (sealed.size() != size) {
    return Damaged("it became shorter while it was read");
  }
  if (size < crypto::kGcmTagBytes) {
    return WhyNot(sealed, last);
  }
  filled_ = size - crypto::kGcmTagBytes;
  used_ = 0;
  const Status opened =
      cipher_.Open(NonceOf(chunk_, last), {}, sealed, plain_.all().first(filled_));
  if (!opened.has_value()) {
    return WhyNot(sealed, last);
  }
  if (filled_ == 0 && chunk_ > 0) {
    return Damaged("its last chunk is empty");  // the writer never writes that
  }
  ++chunk_;
  next_ += size;
  return {};
}

// A chunk that opens under the other mark tells what happened to the file.
Error SealedReader::WhyNot(ByteView sealed, bool last) {
  filled_ = used_ = 0;
  const std::string where =
      "chunk " + std::to_string(chunk_) + ", at byte " + std::to_string(next_);
  if (sealed.size() >= crypto::kGcmTagBytes) {
    WipedBuffer plain(sealed.size() - crypto::kGcmTagBytes);
    if (cipher_.Open(NonceOf(chunk_, !last), {}, sealed, plain.all()).has_value()) {
      return Damaged(last ? "it is cut short after " + where
                          : "something was added after its end (" + where + ")");
    }
  }
  return Damaged((last ? "cut short, or changed, in " : "changed in ") + where);
}

void SealedReader::Rewind() {
  filled_ = used_ = 0;
  next_ = kHeaderBytes;
  chunk_ = 0;
}

}  // namespace ringfence::backup
