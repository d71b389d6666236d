#include "crypto/random.h"

#include <openssl/rand.h>

#include "base/check.h"
#include "base/encoding.h"

namespace ringfence::crypto {

Bytes RandomBytes(std::size_t count) {
  Bytes bytes(count);
  RINGFENCE_CHECK(
      RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1);
  return bytes;
}

SecretBytes RandomSecret(std::size_t count) { return SecretBytes(RandomBytes(count)); }

std::string RandomId(std::string_view prefix) {
  return std::string(prefix) + "-" + Base32(RandomBytes(8)).substr(0, 12);
}

}  // namespace ringfence::crypto
