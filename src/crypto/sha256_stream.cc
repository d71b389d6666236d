#include "crypto/sha256_stream.h"

#include "base/check.h"
#include "crypto/openssl.h"

namespace ringfence::crypto {

struct Sha256Stream::Context {
  std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX_free>> raw{EVP_MD_CTX_new()};
  void Begin() const { RINGFENCE_CHECK(EVP_DigestInit_ex(raw.get(), EVP_sha256(), nullptr) == 1); }
};

Sha256Stream::Sha256Stream() : context_(std::make_unique<Context>()) { context_->Begin(); }
Sha256Stream::Sha256Stream(Sha256Stream&&) noexcept = default;
Sha256Stream& Sha256Stream::operator=(Sha256Stream&&) noexcept = default;
Sha256Stream::~Sha256Stream() = default;

void Sha256Stream::Add(ByteView bytes) {
  RINGFENCE_CHECK(EVP_DigestUpdate(context_->raw.get(), bytes.data(), bytes.size()) == 1);
}

Digest Sha256Stream::Finish() {
  Digest digest{};
  RINGFENCE_CHECK(EVP_DigestFinal_ex(context_->raw.get(),
                                     reinterpret_cast<unsigned char*>(digest.data()),
                                     nullptr) == 1);
  context_->Begin();
  return digest;
}

}  // namespace ringfence::crypto
