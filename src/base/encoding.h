#pragma once

// Text forms of bytes. Decoders are strict: what an encoder never writes is refused.

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace ringfence {

std::string Hex(ByteView bytes);  // lower case
Result<Bytes> FromHex(std::string_view text);

std::string Base64(ByteView bytes);  // RFC 4648 section 4, padded
Result<Bytes> FromBase64(std::string_view text);

std::string Base64Url(ByteView bytes);  // section 5, no padding
Result<Bytes> FromBase64Url(std::string_view text);

// Crockford's alphabet in lower case: no i, l, o, u, so that ids survive being read aloud.
std::string Base32(ByteView bytes);

bool IsUtf8(std::string_view text);

}  // namespace ringfence
