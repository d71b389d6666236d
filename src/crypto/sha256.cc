#include "crypto/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <array>
#include <memory>

#include "base/check.h"

namespace ringfence::crypto {
namespace {
unsigned char* Raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

// One context a thread: making one costs more than hashing a tree node with it.
EVP_MD_CTX* ThreadContext() {
  thread_local const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(
      EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  RINGFENCE_CHECK(context != nullptr);
  return context.get();
}

const EVP_MD* Sha256Method() {
  static const EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  RINGFENCE_CHECK(method != nullptr);
  return method;
}
}  // namespace

Digest Sha256(std::initializer_list<ByteView> parts) {
  Digest digest{};
  EVP_MD_CTX* const context = ThreadContext();
  bool ok = EVP_DigestInit_ex2(context, Sha256Method(), nullptr) == 1;
  for (const ByteView part : parts) {
    ok = ok && EVP_DigestUpdate(context, part.data(), part.size()) == 1;
  }
  ok = ok && EVP_DigestFinal_ex(context, Raw(digest.data()), nullptr) == 1;
  RINGFENCE_CHECK(ok);
  return digest;
}

Digest Sha256(ByteView bytes) { return Sha256({bytes}); }

// RFC 2104 over OpenSSL's SHA-256. OpenSSL's own HMAC looks its parts up by name for each call,
// which takes longer than the hashing of a short message.
Digest HmacSha256(ByteView key, ByteView message) {
  constexpr std::size_t kBlock = 64;
  const Digest hashed = key.size() > kBlock ? Sha256(key) : Digest{};
  const ByteView used = key.size() > kBlock ? ByteView(hashed) : key;
  std::array<std::byte, kBlock> inner;
  std::array<std::byte, kBlock> outer;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::byte byte = i < used.size() ? used[i] : std::byte{0};
    inner[i] = byte ^ std::byte{0x36};
    outer[i] = byte ^ std::byte{0x5c};
  }
  const Digest digest = Sha256({outer, Sha256({inner, message})});
  OPENSSL_cleanse(inner.data(), inner.size());
  OPENSSL_cleanse(outer.data(), outer.size());
  return digest;
}

Digest HkdfSha256(ByteView secret, ByteView info) {
  const Digest no_salt{};
  const Digest key = HmacSha256(no_salt, secret);
  Bytes block(info.begin(), info.end());
  block.push_back(std::byte{1});
  return HmacSha256(key, block);
}

}  // namespace ringfence::crypto
