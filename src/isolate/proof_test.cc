// Goal: a probe's signed ending survives a round trip, and no other statement or key passes for
// one. Method: seal, open, compare; open with another key, another type, a damaged byte.

#include "isolate/proof.h"

#include <gtest/gtest.h>

#include "crypto/dsse.h"

namespace ringfence::isolate {
namespace {

Proof Sample() {
  return {"node-1",
          "lease-1",
          {"/run/ringfence/probe", "ptrace", "attack", "digest=00"},
          {"seccomp", "landlock"},
          "exited 10",
          ParseTime("2026-11-16T05:00:00Z").value()};
}

TEST(ProofTest, RoundTrips) {
  const crypto::SigningKey key = crypto::SigningKey::Generate();
  const auto back = OpenProof(key.public_key(), SealProof(key, Sample()));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->node, "node-1");
  EXPECT_EQ(back->lease, "lease-1");
  EXPECT_EQ(back->command, Sample().command);
  EXPECT_EQ(back->walls_away, Sample().walls_away);
  EXPECT_EQ(back->ending, "exited 10");
  EXPECT_EQ(back->time, Sample().time);
}

TEST(ProofTest, NothingElseOpens) {
  const crypto::SigningKey key = crypto::SigningKey::Generate();
  const crypto::SigningKey other = crypto::SigningKey::Generate();
  EXPECT_EQ(OpenProof(key.public_key(), SealProof(other, Sample())).error().code,
            Code::kPermissionDenied);
  const std::string wrong_type = crypto::SignEnvelope(key, "application/other", "{}");
  EXPECT_EQ(OpenProof(key.public_key(), wrong_type).error().code, Code::kPermissionDenied);
  const std::string no_proof = crypto::SignEnvelope(key, kProofType, R"({"v":1})");
  EXPECT_EQ(OpenProof(key.public_key(), no_proof).error().code, Code::kInvalidArgument);
  std::string damaged = SealProof(key, Sample());
  const std::size_t at = damaged.find("\"payload\":\"") + 40;
  damaged[at] = damaged[at] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(OpenProof(key.public_key(), damaged).has_value());
}

}  // namespace
}  // namespace ringfence::isolate
