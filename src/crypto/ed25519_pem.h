#pragma once

// Ed25519 keys as `openssl genpkey` and `openssl pkey -pubout` write them.

#include <string>
#include <string_view>

#include "base/result.h"
#include "crypto/ed25519.h"

namespace ringfence::crypto {

// PKCS#8 in PEM, without a passphrase. kInvalidArgument for a key of another kind.
Result<SigningKey> ReadSigningKeyPem(std::string_view pem);
// SubjectPublicKeyInfo in PEM.
std::string PublicKeyPem(const PublicKey& key);
Result<PublicKey> ReadPublicKeyPem(std::string_view pem);

}  // namespace ringfence::crypto
