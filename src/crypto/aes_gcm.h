#pragma once

// AES-256-GCM (NIST SP 800-38D) with 96-bit nonces and 128-bit tags.

#include <array>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "base/secret.h"

namespace ringfence::crypto {

inline constexpr std::size_t kGcmTagBytes = 16;
using GcmNonce = std::array<std::byte, 12>;

// One thread. A nonce must never seal twice under one key: whoever chooses them counts.
class Aes256Gcm {
 public:
  static Result<Aes256Gcm> Create(const SecretBytes& key);  // 32 bytes
  Aes256Gcm(Aes256Gcm&&) noexcept;
  Aes256Gcm& operator=(Aes256Gcm&&) noexcept;
  ~Aes256Gcm();

  // `sealed` must be kGcmTagBytes longer than `plain`; the tag comes last.
  void Seal(const GcmNonce& nonce, ByteView associated, ByteView plain,
            std::span<std::byte> sealed) const;
  // `plain` must be kGcmTagBytes shorter than `sealed`. kCorrupt when the tag does not fit; then
  // `plain` holds zeros.
  Status Open(const GcmNonce& nonce, ByteView associated, ByteView sealed,
              std::span<std::byte> plain) const;

 private:
  struct Contexts;
  explicit Aes256Gcm(std::unique_ptr<Contexts> contexts);
  std::unique_ptr<Contexts> contexts_;
};

// Overwrites in a way that no compiler leaves out.
void Wipe(std::span<std::byte> bytes);

}  // namespace ringfence::crypto
