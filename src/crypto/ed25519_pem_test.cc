// Goal: keys of OpenSSL's command line are read, and others refused. Method: a key that it made.

#include "crypto/ed25519_pem.h"

#include <gtest/gtest.h>

#include "base/encoding.h"

namespace ringfence::crypto {
namespace {

constexpr std::string_view kPrivate =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIPlSWe+6GOk78G82tbfNtcxIAyprHK6/y+clE0006pf9\n"
    "-----END PRIVATE KEY-----\n";
constexpr std::string_view kPublic =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAci7t+zfgw5hhWH0Hj7CskN6OYNf2/XRwE8RkOkmQrUg=\n"
    "-----END PUBLIC KEY-----\n";
constexpr std::string_view kOtherKind =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n"
    "6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n"
    "-----END PUBLIC KEY-----\n";

TEST(Ed25519PemTest, ReadsWhatOpensslWrites) {
  const auto key = ReadSigningKeyPem(kPrivate);
  ASSERT_TRUE(key.has_value()) << key.error().message;
  EXPECT_EQ(PublicKeyPem(key->public_key()), kPublic);
  const auto read = ReadPublicKeyPem(kPublic);
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(*read == key->public_key());
}

TEST(Ed25519PemTest, RefusesOthers) {
  EXPECT_FALSE(ReadSigningKeyPem(kPublic).has_value());
  EXPECT_FALSE(ReadSigningKeyPem("").has_value());
  EXPECT_FALSE(ReadPublicKeyPem(kPrivate).has_value());
  EXPECT_FALSE(ReadPublicKeyPem(kOtherKind).has_value());
}

}  // namespace
}  // namespace ringfence::crypto
