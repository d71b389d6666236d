// Goal: a proof file proves its entry to someone who has only the log's key, and no other does.
// Method: prove entries of a real log; cut and flip every bit of a proof.

#include "audit/proof.h"

#include <gtest/gtest.h>

#include "audit/audit_test_util.h"
#include "audit/log_writer.h"
#include "audit/note.h"
#include "audit/verify.h"

namespace ringfence::audit {
namespace {

using testing::kOrigin;

TEST(ProofTest, AProofFileProvesItsEntryAndNoDamagedOneDoes) {
  const testing::TempFolder folder;
  const crypto::SigningKey key = testing::KeyOf(1);
  const std::string vkey = VerifierKey(kOrigin, 1, key.public_key());
  const auto writer =
      TileLogWriter::Open(folder.path(), kOrigin, key, std::make_unique<testing::HastyDisk>())
          .value();
  (void)writer->Append(testing::Samples(0, 300)).value();
  for (const std::uint64_t index : {0U, 17U, 255U, 256U, 299U}) {
    const std::string proof =
        ProveEntry(folder.path(), index, kOrigin, 300, writer->checkpoint()).value();
    const VerifyReport report = VerifyProof(proof, vkey).value();
    EXPECT_TRUE(report.ok);
    EXPECT_EQ(report.size, 300U);
  }
  const std::string proof =
      ProveEntry(folder.path(), 17, kOrigin, 300, writer->checkpoint()).value();
  for (std::size_t i = 0; i < proof.size(); ++i) {
    EXPECT_FALSE(VerifyProof(proof.substr(0, i), vkey)->ok) << i;
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string damaged = proof;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      ASSERT_FALSE(VerifyProof(damaged, vkey)->ok) << damaged;
    }
  }
  EXPECT_FALSE(VerifyProof(proof, "x").has_value());
}

}  // namespace
}  // namespace ringfence::audit
