#include "crypto/ed25519_pem.h"

#include <openssl/pem.h>

#include <algorithm>

#include "base/check.h"
#include "base/encoding.h"
#include "crypto/openssl.h"

namespace ringfence::crypto {
namespace {

// RFC 8410: what comes before the 32 bytes of the key.
constexpr std::string_view kPublicPrefix("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);

Error NotEd25519(std::string_view what) {
  return {Code::kInvalidArgument, "not an Ed25519 " + std::string(what) + " in PEM",
          "`openssl genpkey -algorithm ed25519 -out key.pem` makes one"};
}

}  // namespace

Result<SigningKey> ReadSigningKeyPem(std::string_view pem) {
  RINGFENCE_ASSIGN(const Bio bio, PemReader(pem));
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  std::array<std::byte, 32> raw{};
  std::size_t size = raw.size();
  if (key == nullptr || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519 ||
      EVP_PKEY_get_raw_private_key(key.get(), reinterpret_cast<unsigned char*>(raw.data()),
                                   &size) != 1 ||
      size != raw.size()) {
    (void)LibraryError("PEM");
    return NotEd25519("private key");
  }
  SecretBytes seed{ByteView(raw)};
  OPENSSL_cleanse(raw.data(), raw.size());
  return SigningKey::FromSeed(std::move(seed));
}

std::string PublicKeyPem(const PublicKey& key) {
  std::string der(kPublicPrefix);
  der += AsText(key.raw());
  return "-----BEGIN PUBLIC KEY-----\n" + Base64(AsBytes(der)) + "\n-----END PUBLIC KEY-----\n";
}

Result<PublicKey> ReadPublicKeyPem(std::string_view pem) {
  RINGFENCE_ASSIGN(const Bio bio, PemReader(pem));
  const Key key(PEM_read_bio_PUBKEY(bio.get(), nullptr, NoPassphrase, nullptr));
  std::array<std::byte, 32> raw{};
  std::size_t size = raw.size();
  if (key == nullptr || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519 ||
      EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(raw.data()), &size) !=
          1 ||
      size != raw.size()) {
    (void)LibraryError("PEM");
    return NotEd25519("public key");
  }
  return PublicKey::FromRaw(raw);
}

}  // namespace ringfence::crypto
