// Goal: hashes, MACs and derived keys are the ones that the standards say.
// Method: the vectors of FIPS 180-4, and Project Wycheproof's, all that our interface can express.

#include "crypto/sha256.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/encoding.h"
#include "base/json.h"
#include "crypto/sha256_stream.h"

namespace ringfence::crypto {
namespace {

std::string TextOf(const Json& object, const char* name) {
  return std::string(object.at(name).as_string().c_str());
}
Bytes HexOf(const Json& object, const char* name) { return FromHex(TextOf(object, name)).value(); }

Json ReadVectors(const std::string& name) {
  std::ifstream file(std::string(RINGFENCE_SOURCE_DIR "/tests/vectors/wycheproof/") + name);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return ParseJson(text, 1 << 20).value();
}

TEST(Sha256Test, KnownDigests) {
  EXPECT_EQ(Hex(Sha256(AsBytes(""))),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex(Sha256(AsBytes("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1000000, 'a');
  EXPECT_EQ(Hex(Sha256(AsBytes(million))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PartsAreHashedAsOne) {
  const std::string text = "the quick brown fox jumps over the lazy dog, and over this block's end";
  for (std::size_t i = 0; i <= text.size(); ++i) {
    EXPECT_EQ(Sha256({AsBytes(text).first(i), AsBytes(text).subspan(i)}), Sha256(AsBytes(text)));
  }
}

TEST(Sha256Test, AStreamOfPiecesIsHashedAsOne) {
  const std::string text(1000, 'x');
  Sha256Stream stream;
  for (std::size_t piece = 1; piece < 300; piece += 37) {
    for (ByteView left = AsBytes(text); !left.empty();) {
      stream.Add(left.first(std::min(piece, left.size())));
      left = left.subspan(std::min(piece, left.size()));
    }
    EXPECT_EQ(stream.Finish(), Sha256(AsBytes(text))) << piece;
  }
  EXPECT_EQ(stream.Finish(), Sha256(AsBytes("")));
}

TEST(Sha256Test, HmacAgreesWithWycheproof) {
  int valid = 0;
  int invalid = 0;
  const Json file = ReadVectors("hmac_sha256_test.json");
  for (const Json& group : file.at("testGroups").as_array()) {
    const auto tag_bytes = static_cast<std::size_t>(group.at("tagSize").as_int64() / 8);
    for (const Json& test : group.at("tests").as_array()) {
      const Digest whole = HmacSha256(HexOf(test, "key"), HexOf(test, "msg"));
      const bool same =
          HexOf(test, "tag") == Bytes(whole.begin(), whole.begin() + static_cast<long>(tag_bytes));
      EXPECT_EQ(same, TextOf(test, "result") == "valid") << test.at("tcId").as_int64();
      ++(TextOf(test, "result") == "valid" ? valid : invalid);
    }
  }
  EXPECT_EQ(valid + invalid, file.at("numberOfTests").as_int64());
  EXPECT_GT(invalid, 0);
}

TEST(Sha256Test, HkdfAgreesWithWycheproof) {
  int tried = 0;
  const Json file = ReadVectors("hkdf_sha256_test.json");
  for (const Json& group : file.at("testGroups").as_array()) {
    for (const Json& test : group.at("tests").as_array()) {
      // Our interface has no salt and gives 32 bytes: the first 32, or fewer, of the vector's.
      const Bytes expected = HexOf(test, "okm");
      if (TextOf(test, "result") != "valid" || !TextOf(test, "salt").empty()) {
        continue;
      }
      const Digest key = HkdfSha256(HexOf(test, "ikm"), HexOf(test, "info"));
      const auto count = static_cast<long>(std::min(key.size(), expected.size()));
      EXPECT_TRUE(std::equal(key.begin(), key.begin() + count, expected.begin()))
          << test.at("tcId").as_int64();
      ++tried;
    }
  }
  EXPECT_GE(tried, 10);
}

}  // namespace
}  // namespace ringfence::crypto
