#pragma once

#include <initializer_list>
#include <string>

#include "base/bytes.h"

namespace ringfence::crypto {

// SHA-256 of the parts, one after another. Aborts if the library itself fails.
Digest Sha256(std::initializer_list<ByteView> parts);
Digest Sha256(ByteView bytes);

Digest HmacSha256(ByteView key, ByteView message);

// RFC 5869 with SHA-256 and an empty salt; the first 32 bytes.
Digest HkdfSha256(ByteView secret, ByteView info);

}  // namespace ringfence::crypto
