#include "crypto/aes_gcm.h"

#include <openssl/crypto.h>
#include <openssl/err.h>

#include <climits>

#include "base/check.h"
#include "crypto/openssl.h"

namespace ringfence::crypto {
namespace {

using Context = std::unique_ptr<EVP_CIPHER_CTX, Freer<EVP_CIPHER_CTX_free>>;

unsigned char* Raw(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}
const unsigned char* Raw(ByteView bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
int Length(std::size_t bytes) {
  RINGFENCE_CHECK(bytes <= INT_MAX);
  return static_cast<int>(bytes);
}

}  // namespace

struct Aes256Gcm::Contexts {
  Context seal{EVP_CIPHER_CTX_new()};
  Context open{EVP_CIPHER_CTX_new()};
};

Aes256Gcm::Aes256Gcm(std::unique_ptr<Contexts> contexts) : contexts_(std::move(contexts)) {}
Aes256Gcm::Aes256Gcm(Aes256Gcm&&) noexcept = default;
Aes256Gcm& Aes256Gcm::operator=(Aes256Gcm&&) noexcept = default;
Aes256Gcm::~Aes256Gcm() = default;

Result<Aes256Gcm> Aes256Gcm::Create(const SecretBytes& key) {
  if (key.size() != 32) {
    return Error{Code::kInvalidArgument, "an AES-256 key has 32 bytes"};
  }
  auto contexts = std::make_unique<Contexts>();
  RINGFENCE_CHECK(contexts->seal != nullptr && contexts->open != nullptr);
  if (EVP_EncryptInit_ex(contexts->seal.get(), EVP_aes_256_gcm(), nullptr, Raw(key.Reveal()),
                         nullptr) != 1 ||
      EVP_DecryptInit_ex(contexts->open.get(), EVP_aes_256_gcm(), nullptr, Raw(key.Reveal()),
                         nullptr) != 1) {
    return LibraryError("AES-256-GCM");
  }
  return Aes256Gcm(std::move(contexts));
}

void Aes256Gcm::Seal(const GcmNonce& nonce, ByteView associated, ByteView plain,
                     std::span<std::byte> sealed) const {
  RINGFENCE_CHECK(sealed.size() == plain.size() + kGcmTagBytes);
  EVP_CIPHER_CTX* const context = contexts_->seal.get();
  int length = 0;
  bool ok = EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, Raw(ByteView(nonce))) == 1;
  ok = ok && (associated.empty() || EVP_EncryptUpdate(context, nullptr, &length, Raw(associated),
                                                      Length(associated.size())) == 1);
  ok = ok && (plain.empty() || EVP_EncryptUpdate(context, Raw(sealed), &length, Raw(plain),
                                                 Length(plain.size())) == 1);
  ok = ok && EVP_EncryptFinal_ex(context, Raw(sealed.subspan(plain.size())), &length) == 1;
  ok = ok && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Length(kGcmTagBytes),
                                 Raw(sealed.subspan(plain.size()))) == 1;
  RINGFENCE_CHECK(ok);
}

Status Aes256Gcm::Open(const GcmNonce& nonce, ByteView associated, ByteView sealed,
                       std::span<std::byte> plain) const {
  RINGFENCE_CHECK(sealed.size() == plain.size() + kGcmTagBytes);
  EVP_CIPHER_CTX* const context = contexts_->open.get();
  const ByteView body = sealed.first(plain.size());
  std::array<std::byte, kGcmTagBytes> tag{};  // the library wants it writable
  std::copy(sealed.end() - kGcmTagBytes, sealed.end(), tag.begin());
  int length = 0;
  bool ok = EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, Raw(ByteView(nonce))) == 1;
  ok = ok && (associated.empty() || EVP_DecryptUpdate(context, nullptr, &length, Raw(associated),
                                                      Length(associated.size())) == 1);
  ok = ok && (body.empty() ||
              EVP_DecryptUpdate(context, Raw(plain), &length, Raw(body), Length(body.size())) == 1);
  ok = ok && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Length(kGcmTagBytes),
                                 Raw(std::span<std::byte>(tag))) == 1;
  std::array<std::byte, kGcmTagBytes> rest{};
  ok = ok && EVP_DecryptFinal_ex(context, Raw(std::span<std::byte>(rest)), &length) == 1;
  if (!ok) {
    ERR_clear_error();
    Wipe(plain);
    return Error{Code::kCorrupt, "the bytes are not what was sealed with this key"};
  }
  return {};
}

void Wipe(std::span<std::byte> bytes) { OPENSSL_cleanse(bytes.data(), bytes.size()); }

}  // namespace ringfence::crypto
