#pragma once

// Signed statements in the DSSE envelope (Dead Simple Signing Envelope, v1): lease grants and
// scrub receipts. The type is signed with the payload, so one can never pass for the other.

#include <string>
#include <string_view>

#include "base/result.h"
#include "crypto/ed25519.h"

namespace ringfence::crypto {

inline constexpr std::size_t kEnvelopeBytesMax = 256 * 1024;

// {"payload":base64,"payloadType":type,"signatures":[{"keyid":id,"sig":base64}]}
std::string SignEnvelope(const SigningKey& key, std::string_view type, std::string_view payload);

// The payload, if `envelope` is of this type and one of its signatures is by `key`; otherwise
// kPermissionDenied. Nothing of the payload is looked at before the signature has been verified.
Result<std::string> OpenEnvelope(const PublicKey& key, std::string_view type,
                                 std::string_view envelope);

}  // namespace ringfence::crypto
