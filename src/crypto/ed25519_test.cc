// Goal: signatures are RFC 8032's, and nothing but the signed message, the right key and the whole
// signature verifies; an envelope with any bit changed does not open.
// Method: the RFC's vectors; every bit flipped, every cut.

#include "crypto/ed25519.h"

#include <gtest/gtest.h>

#include <set>

#include "base/encoding.h"
#include "base/json.h"
#include "crypto/dsse.h"
#include "crypto/random.h"

namespace ringfence::crypto {
namespace {

struct Vector {
  const char* seed;
  const char* key;
  const char* message;
  const char* signature;
};
// RFC 8032, section 7.1: TEST 1, 2, 3 and SHA(abc).
constexpr Vector kVectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b"
     "4"
     "6bd25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11"
     "d"
     "8c387b2eaeb4302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc"
     "6"
     "594a7c15e9716ed28dc027beceea1ec40a"},
    {"833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
     "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3fee"
     "b"
     "bd454d4423643ce80e2a9ac94fa54ca49f",
     "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e"
     "0"
     "303dca179c138ac17ad9bef1177331a704"},
};

SigningKey KeyOf(const Vector& vector) {
  return SigningKey::FromSeed(SecretBytes(FromHex(vector.seed).value())).value();
}

TEST(Ed25519Test, AgreesWithTheRfc) {
  for (const Vector& vector : kVectors) {
    const SigningKey key = KeyOf(vector);
    const Bytes message = FromHex(vector.message).value();
    EXPECT_EQ(Hex(key.public_key().raw()), vector.key);
    EXPECT_EQ(Hex(key.Sign(message)), vector.signature);
    EXPECT_TRUE(key.public_key().Verify(message, FromHex(vector.signature).value()));
  }
}

TEST(Ed25519Test, AnyChangeFailsToVerify) {
  const SigningKey key = KeyOf(kVectors[2]);
  const Bytes message = FromHex(kVectors[2].message).value();
  const Signature signature = key.Sign(message);
  for (std::size_t i = 0; i < signature.size() * 8; ++i) {
    Signature damaged = signature;
    damaged[i / 8] ^= std::byte{1} << (i % 8);
    EXPECT_FALSE(key.public_key().Verify(message, damaged)) << i;
  }
  for (std::size_t i = 0; i < message.size() * 8; ++i) {
    Bytes damaged = message;
    damaged[i / 8] ^= std::byte{1} << (i % 8);
    EXPECT_FALSE(key.public_key().Verify(damaged, signature)) << i;
  }
  for (std::size_t i = 0; i < signature.size(); ++i) {
    EXPECT_FALSE(key.public_key().Verify(message, ByteView(signature).first(i))) << i;
  }
  for (std::size_t i = 0; i < 256; ++i) {
    auto raw = key.public_key().raw();
    raw[i / 8] ^= std::byte{1} << (i % 8);
    EXPECT_FALSE(PublicKey::FromRaw(raw).value().Verify(message, signature)) << i;
  }
}

TEST(Ed25519Test, WrongSizesAreRefused) {
  for (const std::size_t size : {0U, 31U, 33U, 64U}) {
    EXPECT_FALSE(PublicKey::FromRaw(Bytes(size)).has_value());
    EXPECT_FALSE(SigningKey::FromSeed(SecretBytes(Bytes(size))).has_value());
  }
}

TEST(RandomTest, IdsHaveTheirShapeAndDoNotRepeat) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = RandomId("lease");
    EXPECT_EQ(id.size(), std::string("lease-").size() + 12) << id;
    EXPECT_TRUE(id.starts_with("lease-"));
    EXPECT_TRUE(seen.insert(id).second) << id;
  }
}

constexpr std::string_view kType = "application/vnd.ringfence.grant+json";

TEST(DsseTest, OpensForTheRightKeyAndTypeOnly) {
  const SigningKey key = SigningKey::Generate();
  for (const std::string& payload :
       {std::string(), std::string("{\"lease\":\"l1\"}"), std::string("\0\xff binary", 9)}) {
    const std::string envelope = SignEnvelope(key, kType, payload);
    EXPECT_EQ(OpenEnvelope(key.public_key(), kType, envelope).value(), payload);
    const auto other_type = OpenEnvelope(key.public_key(), "text/plain", envelope);
    EXPECT_EQ(other_type.error().code, Code::kPermissionDenied);
    const auto other_key = OpenEnvelope(SigningKey::Generate().public_key(), kType, envelope);
    EXPECT_EQ(other_key.error().code, Code::kPermissionDenied);
  }
}

TEST(DsseTest, TheSignedBytesAreTheStandardsPreAuthenticationEncoding) {
  const SigningKey key = KeyOf(kVectors[0]);
  const std::string envelope = SignEnvelope(key, "http://example.com/HelloWorld", "hello world");
  const Signature expected =
      key.Sign(AsBytes("DSSEv1 29 http://example.com/HelloWorld 11 hello world"));
  EXPECT_NE(envelope.find(Base64(expected)), std::string::npos) << envelope;
}

TEST(DsseTest, EveryFlippedBitAndEveryCutIsRefused) {
  const SigningKey key = SigningKey::Generate();
  const std::string payload = "{\"lease\":\"lease-7k3m9q2x4abc\"}";
  const std::string envelope = SignEnvelope(key, kType, payload);
  const std::size_t id_at = envelope.find(key.public_key().Id());
  for (std::size_t i = 0; i < envelope.size(); ++i) {
    EXPECT_FALSE(OpenEnvelope(key.public_key(), kType, envelope.substr(0, i)).has_value()) << i;
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string damaged = envelope;
      damaged[i] = static_cast<char>(damaged[i] ^ static_cast<char>(1U << bit));
      const auto opened = OpenEnvelope(key.public_key(), kType, damaged);
      if (i >= id_at && i < id_at + 16) {
        // The key's id is a hint outside the signature: it may be wrong, the payload may not.
        EXPECT_TRUE(!opened.has_value() || opened.value() == payload) << i;
      } else {
        EXPECT_FALSE(opened.has_value()) << i << '.' << bit << ' ' << damaged;
      }
    }
  }
}

TEST(DsseTest, AnotherKeysSignatureBesideOursDoesNotMatter) {
  const SigningKey key = SigningKey::Generate();
  const SigningKey other = SigningKey::Generate();
  Json envelope = ParseJson(SignEnvelope(other, kType, "payload"), kEnvelopeBytesMax).value();
  const Json ours = ParseJson(SignEnvelope(key, kType, "payload"), kEnvelopeBytesMax).value();
  envelope.at("signatures").as_array().push_back(ours.at("signatures").as_array().front());
  EXPECT_TRUE(OpenEnvelope(key.public_key(), kType, CanonicalJson(envelope)).has_value());
  envelope.at("signatures").as_array().clear();
  EXPECT_FALSE(OpenEnvelope(key.public_key(), kType, CanonicalJson(envelope)).has_value());
}

}  // namespace
}  // namespace ringfence::crypto
