// Goal: AES-256-GCM is the standard's, and nothing that was changed opens.
// Method: Project Wycheproof's vectors of our sizes; every bit of a sealed text, its nonce and its
// associated data damaged; every length cut.

#include "crypto/aes_gcm.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/encoding.h"
#include "base/json.h"
#include "crypto/random.h"

namespace ringfence::crypto {
namespace {

Bytes HexOf(const Json& object, const char* name) {
  return FromHex(std::string(object.at(name).as_string().c_str())).value();
}

GcmNonce NonceOf(ByteView bytes) {
  GcmNonce nonce{};
  std::copy(bytes.begin(), bytes.end(), nonce.begin());
  return nonce;
}

Result<Bytes> OpenIt(const Aes256Gcm& cipher, const GcmNonce& nonce, ByteView associated,
                     ByteView sealed) {
  Bytes plain(sealed.size() - kGcmTagBytes, std::byte{0x55});
  const Status opened = cipher.Open(nonce, associated, sealed, plain);
  if (!opened.has_value()) {
    EXPECT_EQ(plain, Bytes(plain.size())) << "something was left of what must not be used";
    return opened.error();
  }
  return plain;
}

TEST(AesGcmTest, AgreesWithWycheproof) {
  std::ifstream file(RINGFENCE_SOURCE_DIR "/tests/vectors/wycheproof/aes_gcm_test.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json vectors = ParseJson(text, 1 << 20).value();
  int valid = 0;
  int invalid = 0;
  for (const Json& group : vectors.at("testGroups").as_array()) {
    if (group.at("keySize").as_int64() != 256 || group.at("ivSize").as_int64() != 96 ||
        group.at("tagSize").as_int64() != 128) {
      continue;
    }
    for (const Json& test : group.at("tests").as_array()) {
      const Aes256Gcm cipher = Aes256Gcm::Create(SecretBytes(HexOf(test, "key"))).value();
      const GcmNonce nonce = NonceOf(HexOf(test, "iv"));
      Bytes expected = HexOf(test, "ct");
      Append(expected, HexOf(test, "tag"));
      const auto opened = OpenIt(cipher, nonce, HexOf(test, "aad"), expected);
      const bool good = test.at("result").as_string() == "valid";
      ++(good ? valid : invalid);
      ASSERT_EQ(opened.has_value(), good) << test.at("tcId").as_int64();
      if (good) {
        const Bytes plain = HexOf(test, "msg");
        EXPECT_EQ(*opened, plain) << test.at("tcId").as_int64();
        Bytes sealed(plain.size() + kGcmTagBytes);
        cipher.Seal(nonce, HexOf(test, "aad"), plain, sealed);
        EXPECT_EQ(sealed, expected) << test.at("tcId").as_int64();
      }
    }
  }
  EXPECT_GT(valid, 30);
  EXPECT_GT(invalid, 10);
}

TEST(AesGcmTest, DamageOpensNothing) {
  const Aes256Gcm cipher = Aes256Gcm::Create(RandomSecret(32)).value();
  const Aes256Gcm other = Aes256Gcm::Create(RandomSecret(32)).value();
  const GcmNonce nonce = NonceOf(RandomBytes(12));
  const Bytes plain = RandomBytes(40);
  const Bytes about = ToBytes("about");
  Bytes sealed(plain.size() + kGcmTagBytes);
  cipher.Seal(nonce, about, plain, sealed);
  ASSERT_EQ(OpenIt(cipher, nonce, about, sealed).value(), plain);
  EXPECT_FALSE(OpenIt(other, nonce, about, sealed).has_value());
  EXPECT_FALSE(OpenIt(cipher, nonce, {}, sealed).has_value());
  for (std::size_t bit = 0; bit < sealed.size() * 8; ++bit) {
    Bytes damaged = sealed;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(OpenIt(cipher, nonce, about, damaged).has_value()) << bit;
  }
  for (std::size_t bit = 0; bit < nonce.size() * 8; ++bit) {
    GcmNonce damaged = nonce;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(OpenIt(cipher, damaged, about, sealed).has_value()) << bit;
  }
  for (std::size_t size = kGcmTagBytes; size < sealed.size(); ++size) {
    EXPECT_FALSE(OpenIt(cipher, nonce, about, ByteView(sealed).first(size)).has_value()) << size;
  }
}

TEST(AesGcmTest, AKeyHas32Bytes) {
  for (const std::size_t size : {0U, 16U, 31U, 33U}) {
    EXPECT_FALSE(Aes256Gcm::Create(RandomSecret(size)).has_value()) << size;
  }
}

}  // namespace
}  // namespace ringfence::crypto
