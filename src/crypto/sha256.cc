#include "crypto/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <memory>

#include "base/check.h"

namespace ringfence::crypto {
namespace {
unsigned char* Raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* Raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

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

Digest HmacSha256(ByteView key, ByteView message) {
  Digest digest{};
  RINGFENCE_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), Raw(message.data()),
                       message.size(), Raw(digest.data()), nullptr) != nullptr);
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
