#include "crypto/ed25519.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/encoding.h"
#include "crypto/random.h"
#include "crypto/sha256.h"

namespace ringfence::crypto {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

const unsigned char* Raw(ByteView bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

Key PrivateKey(ByteView seed) {
  Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, Raw(seed), seed.size()),
          &EVP_PKEY_free);
  RINGFENCE_CHECK(key != nullptr);
  return key;
}

}  // namespace

Result<PublicKey> PublicKey::FromRaw(ByteView raw) {
  if (raw.size() != 32) {
    return Error{Code::kInvalidArgument, "an Ed25519 public key has 32 bytes"};
  }
  PublicKey key;
  std::copy(raw.begin(), raw.end(), key.raw_.begin());
  return key;
}

std::string PublicKey::Id() const { return Hex(Sha256(raw_)).substr(0, 16); }

bool PublicKey::Verify(ByteView message, ByteView signature) const {
  if (signature.size() != sizeof(Signature)) {
    return false;
  }
  const Key key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Raw(raw_), raw_.size()),
                &EVP_PKEY_free);
  const Context context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  return key != nullptr && context != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), Raw(signature), signature.size(), Raw(message),
                          message.size()) == 1;
}

SigningKey SigningKey::Generate() {
  auto key = FromSeed(RandomSecret(32));
  RINGFENCE_CHECK(key.has_value());
  return std::move(key).value();
}

Result<SigningKey> SigningKey::FromSeed(SecretBytes seed) {
  if (seed.size() != 32) {
    return Error{Code::kInvalidArgument, "an Ed25519 seed has 32 bytes"};
  }
  const Key key = PrivateKey(seed.Reveal());
  std::array<std::byte, 32> raw{};
  std::size_t size = raw.size();
  RINGFENCE_CHECK(EVP_PKEY_get_raw_public_key(
                      key.get(), reinterpret_cast<unsigned char*>(raw.data()), &size) == 1);
  RINGFENCE_ASSIGN(const PublicKey public_key, PublicKey::FromRaw(raw));
  return SigningKey(std::move(seed), public_key);
}

Signature SigningKey::Sign(ByteView message) const {
  const Key key = PrivateKey(seed_.Reveal());
  const Context context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  Signature signature{};
  std::size_t size = signature.size();
  RINGFENCE_CHECK(context != nullptr &&
                  EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
                  EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()),
                                 &size, Raw(message), message.size()) == 1 &&
                  size == signature.size());
  return signature;
}

}  // namespace ringfence::crypto
