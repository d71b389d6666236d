// Goal: a package is read back as it was written, and any change to it is found.
// Method: small packages; every bit of a manifest and every byte of a tar damaged or cut; the whole
// way with a server, and another verifier, is tests/e2e/test_compliance.py.

#include <gtest/gtest.h>

#include "assure/evidence_package.h"
#include "assure/evidence_page.h"
#include "os/file.h"
#include "os/self.h"

namespace ringfence::assure {
namespace {

const Timestamp kWhen = ParseTime("2030-07-15T12:00:00Z").value();

crypto::SigningKey Key(char fill) {
  const std::string seed(32, fill);
  return crypto::SigningKey::FromSeed(SecretBytes(AsBytes(seed))).value();
}

EvidenceFiles Small(const crypto::SigningKey* key = nullptr) {
  EvidenceFiles files = {{"VERIFY.md", VerifyPage()},
                         {"reports/a.json", "{}\n"},
                         {"reports/empty", ""},
                         {"z", std::string(1024, 'z')}};
  SealEvidence(key, files);
  return files;
}

TEST(EvidenceTest, PathsThatMayBe) {
  for (const char* good : {"a", "a/b", "audit/proofs/17.json", "A-b_c.D"}) {
    EXPECT_TRUE(IsEvidencePath(good)) << good;
  }
  for (const char* bad : {"", "/a", "a/", "a//b", "../a", "a/../b", ".a", "a/.b", "a b", "a\n"}) {
    EXPECT_FALSE(IsEvidencePath(bad)) << bad;
  }
  EXPECT_FALSE(IsEvidencePath(std::string(101, 'a')));
}

TEST(EvidenceTest, TarAndFolderAreReadBack) {
  const EvidenceFiles files = Small();
  const std::string tar = WriteTar(files, kWhen);
  EXPECT_EQ(tar, WriteTar(files, kWhen)) << "the same files, the same bytes";
  const auto read = ReadTar(tar);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, files);
  const auto folder = os::TempFolder::Create("ringfence-evidence").value();
  const std::string place = folder.path() + "/package";
  ASSERT_TRUE(WriteEvidenceFolder(place, files).has_value());
  EXPECT_EQ(*ReadEvidence(place), files);
  EXPECT_FALSE(WriteEvidenceFolder(place, files).has_value()) << "never over another";
  ASSERT_TRUE(os::WriteFile(folder.path() + "/p.tar", AsBytes(tar)).has_value());
  EXPECT_EQ(*ReadEvidence(folder.path() + "/p.tar"), files);
}

TEST(EvidenceTest, ATarThatIsCutOrDamagedIsFound) {
  const EvidenceFiles files = Small();
  const std::string tar = WriteTar(files, kWhen);
  for (std::size_t size = 0; size < tar.size(); size += 61) {
    EXPECT_FALSE(ReadTar(std::string_view(tar).substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(ReadTar(tar + "x").has_value());
  std::size_t quiet = 0;
  for (std::size_t i = 0; i < tar.size(); i += 7) {
    std::string bad = tar;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    const auto read = ReadTar(bad);
    // Only a file's time in its header, which is no evidence, may differ and be read.
    quiet += read.has_value() && VerifyEvidence(*read, {}).ok() ? 1U : 0U;
  }
  EXPECT_EQ(quiet, 0U);
}

TEST(EvidenceTest, EveryChangeIsFound) {
  const crypto::SigningKey key = Key('k');
  const EvidenceFiles files = Small(&key);
  const EvidenceReport good = VerifyEvidence(files, {key.public_key(), ""});
  EXPECT_TRUE(good.ok()) << good.problems.front();
  EXPECT_EQ(good.signer, key.public_key().Id());
  EXPECT_EQ(good.files, files.size() - 2);
  for (const auto& [path, bytes] : files) {
    for (std::size_t i = 0; i < bytes.size(); i += 1 + bytes.size() / 100) {
      EvidenceFiles bad = files;
      bad[path][i] = static_cast<char>(bad[path][i] ^ 4);
      EXPECT_FALSE(VerifyEvidence(bad, {}).ok()) << path << " " << i;
    }
    EvidenceFiles without = files;
    without.erase(path);
    EXPECT_FALSE(VerifyEvidence(without, {key.public_key(), ""}).ok()) << path;
  }
  EvidenceFiles more = files;
  more["extra"] = "";
  EXPECT_FALSE(VerifyEvidence(more, {}).ok());
  // Made up anew by another: whole in itself, but not by the key that the reader trusts.
  const crypto::SigningKey other = Key('o');
  EvidenceFiles forged = Small(&other);
  EXPECT_TRUE(VerifyEvidence(forged, {}).ok());
  EXPECT_FALSE(VerifyEvidence(forged, {key.public_key(), ""}).ok());
  EXPECT_FALSE(VerifyEvidence(Small(), {key.public_key(), ""}).ok()) << "not signed";
}

TEST(EvidenceTest, ManifestsOfOneForm) {
  const std::string digest(64, 'a');
  EXPECT_TRUE(ParseManifest(digest + "  a\n" + digest + "  b\n").has_value());
  for (const std::string& bad :
       {digest + "  a", digest + " a\n", digest + "  b\n" + digest + "  a\n",
        digest + "  a\n" + digest + "  a\n", digest + "  ../a\n", digest + "  MANIFEST.sig\n",
        std::string(64, 'A') + "  a\n", std::string("\n")}) {
    EXPECT_FALSE(ParseManifest(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace ringfence::assure
