#pragma once

// scrypt (RFC 7914): a key from a passphrase, at a cost in time and memory that each guess pays.

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "base/secret.h"

namespace ringfence::crypto {

struct ScryptCost {
  unsigned log_n = 17;  // N = 2^log_n; memory is 128 * N * r bytes
  unsigned r = 8;
  unsigned p = 1;
};
inline constexpr std::uint64_t kScryptMemoryMax = std::uint64_t{1} << 30U;

// `bytes` of key. kInvalidArgument for a cost that makes no sense or needs more than
// kScryptMemoryMax.
Result<SecretBytes> Scrypt(const SecretBytes& passphrase, ByteView salt, const ScryptCost& cost,
                           std::size_t bytes);

}  // namespace ringfence::crypto
