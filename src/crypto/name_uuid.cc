#include "crypto/name_uuid.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>

#include "base/check.h"

namespace ringfence::crypto {

Uuid NameUuid(const Uuid& name_space, std::string_view name) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  std::array<unsigned char, 20> digest{};
  RINGFENCE_CHECK(context != nullptr &&
                  EVP_DigestInit_ex(context.get(), EVP_sha1(), nullptr) == 1 &&
                  EVP_DigestUpdate(context.get(), name_space.data(), name_space.size()) == 1 &&
                  EVP_DigestUpdate(context.get(), name.data(), name.size()) == 1 &&
                  EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1);
  Uuid uuid{};
  std::copy_n(digest.begin(), uuid.size(), uuid.begin());
  uuid[6] = static_cast<unsigned char>((uuid[6] & 0x0fU) | 0x50U);
  uuid[8] = static_cast<unsigned char>((uuid[8] & 0x3fU) | 0x80U);
  return uuid;
}

std::string FormatUuid(const Uuid& uuid) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    out += i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
    out += kHex[uuid[i] >> 4U];
    out += kHex[uuid[i] & 0x0fU];
  }
  return out;
}

}  // namespace ringfence::crypto
