#include "crypto/scrypt.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "base/check.h"
#include "crypto/openssl.h"

namespace ringfence::crypto {
namespace {

using Kdf = std::unique_ptr<EVP_KDF, Freer<EVP_KDF_free>>;
using KdfContext = std::unique_ptr<EVP_KDF_CTX, Freer<EVP_KDF_CTX_free>>;

// The library's parameters are not const, though it only reads them.
void* Reading(ByteView bytes) { return const_cast<std::byte*>(bytes.data()); }

bool Sensible(const ScryptCost& cost) {
  return cost.log_n >= 1 && cost.log_n <= 24 && cost.r >= 1 && cost.r <= 64 && cost.p >= 1 &&
         cost.p <= 64 && cost.log_n < 16 * cost.r &&
         (std::uint64_t{128} << cost.log_n) * cost.r <= kScryptMemoryMax;
}

}  // namespace

Result<SecretBytes> Scrypt(const SecretBytes& passphrase, ByteView salt, const ScryptCost& cost,
                           std::size_t bytes) {
  if (!Sensible(cost)) {
    return Error{Code::kInvalidArgument, "a cost of scrypt that is out of range"};
  }
  const Kdf kdf(EVP_KDF_fetch(nullptr, "SCRYPT", nullptr));
  const KdfContext context(EVP_KDF_CTX_new(kdf.get()));
  if (context == nullptr) {
    return LibraryError("scrypt");
  }
  std::uint64_t n = std::uint64_t{1} << cost.log_n;
  std::uint32_t r = cost.r;
  std::uint32_t p = cost.p;
  std::uint64_t memory = 2 * kScryptMemoryMax;  // the limit that counts is above
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PASSWORD, Reading(passphrase.Reveal()),
                                        passphrase.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, Reading(salt), salt.size()),
      OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &n),
      OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_R, &r),
      OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_P, &p),
      OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_MAXMEM, &memory),
      OSSL_PARAM_construct_end()};
  Bytes key(bytes);
  if (EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(key.data()), key.size(),
                     parameters) != 1) {
    return LibraryError("scrypt");
  }
  return SecretBytes(std::move(key));
}

}  // namespace ringfence::crypto
