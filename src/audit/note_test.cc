// Goal: keys, notes and proofs are written as C2SP and RFC 6962 say, and nothing damaged passes;
// a witness never cosigns what contradicts what it has cosigned.
// Method: frozen values, every flipped bit and cut, every pair of sizes up to some dozens, and a
// log that rolls back and forks.

#include "audit/note.h"

#include <gtest/gtest.h>

#include "audit/audit_test_util.h"
#include "audit/note_text.h"
#include "base/encoding.h"

namespace ringfence::audit {
namespace {

using testing::kOrigin;
using testing::Samples;
using testing::TempFolder;

const crypto::SigningKey& LogKey() {
  static const crypto::SigningKey key = testing::KeyOf(1);
  return key;
}
const NamedKey& LogName() {
  static const NamedKey name{kOrigin, 1, LogKey().public_key()};
  return name;
}
TreeHead HeadOf(std::uint64_t size, std::uint64_t first = 0) {
  return {size, testing::Mth(testing::LeavesOf(Samples(first, size)))};
}
std::string NoteOf(const TreeHead& head) { return SignCheckpoint({kOrigin, head}, LogKey()); }

TEST(NoteTest, AVerifierKeyIsReadBackAndNoDamagedOneIs) {
  for (const std::uint8_t type : {std::uint8_t{1}, std::uint8_t{4}}) {
    const std::string vkey = VerifierKey(kOrigin, type, LogKey().public_key());
    const NamedKey key = ParseVerifierKey(vkey).value();
    EXPECT_EQ(key.name, kOrigin);
    EXPECT_EQ(key.type, type);
    EXPECT_EQ(key.key, LogKey().public_key());
    for (std::size_t i = 0; i < vkey.size() * 8; ++i) {
      std::string damaged = vkey;
      damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
      EXPECT_FALSE(ParseVerifierKey(damaged).has_value()) << damaged;
      EXPECT_FALSE(ParseVerifierKey(vkey.substr(0, i / 8)).has_value());
    }
  }
}

TEST(NoteTest, ACheckpointIsReadBackAndNoDamagedOneIs) {
  const std::string note = NoteOf(HeadOf(5));
  const Checkpoint checkpoint = OpenCheckpoint(note, LogName()).value();
  EXPECT_EQ(checkpoint.origin, kOrigin);
  EXPECT_EQ(checkpoint.head, HeadOf(5));
  for (std::size_t i = 0; i < note.size() * 8; ++i) {
    std::string damaged = note;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    EXPECT_EQ(OpenCheckpoint(damaged, LogName()).error().code, Code::kCorrupt) << damaged;
    EXPECT_FALSE(OpenCheckpoint(note.substr(0, i / 8), LogName()).has_value());
  }
  EXPECT_FALSE(OpenCheckpoint(note, {kOrigin, 1, testing::KeyOf(2).public_key()}).has_value());
  EXPECT_FALSE(OpenCheckpoint(note, {kOrigin, 4, LogKey().public_key()}).has_value());
}

TEST(NoteTest, OnlyCheckpointsOfThreeLinesOfThatLogAreOpened) {
  const auto sign = [](const std::string& text) {
    const std::uint32_t id = KeyId(kOrigin, 1, LogKey().public_key().raw());
    return text + "\n" + SignatureLine(kOrigin, id, LogKey().Sign(AsBytes(text)));
  };
  const std::string origin = std::string(kOrigin) + "\n";
  const std::string root = Base64(HeadOf(3).root) + "\n";
  EXPECT_TRUE(OpenCheckpoint(sign(origin + "3\n" + root), LogName()).has_value());
  for (const std::string& text :
       {origin + "3\n" + root + "more\n", origin + "3\n", origin + "03\n" + root,
        origin + "-3\n" + root, origin + "\n" + root, origin + "99999999999999999999\n" + root,
        origin + "3\nAAAA\n", origin + "0\n" + root, "other\n3\n" + root, std::string("\n")}) {
    EXPECT_FALSE(OpenCheckpoint(sign(text), LogName()).has_value()) << text;
  }
}

TEST(NoteTest, CosignaturesVerifyAndNoDamagedOneDoes) {
  const crypto::SigningKey key = testing::KeyOf(7);
  const NamedKey witness{"w.test/1", 4, key.public_key()};
  const Timestamp time(std::chrono::milliseconds(1700000000999));
  const std::string note = NoteOf(HeadOf(5));
  const std::string line = Cosign(note, "w.test/1", key, time);
  EXPECT_EQ(VerifyCosignature(note + line, witness).value(),
            Timestamp(std::chrono::seconds(1700000000)));
  EXPECT_TRUE(OpenCheckpoint(note + line, LogName()).has_value());
  EXPECT_EQ(VerifyCosignature(note, witness).error().code, Code::kNotFound);
  EXPECT_FALSE(VerifyCosignature(NoteOf(HeadOf(6)) + line, witness).has_value());
  for (std::size_t i = 0; i < line.size() * 8; ++i) {
    std::string damaged = line;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    EXPECT_FALSE(VerifyCosignature(note + damaged, witness).has_value()) << damaged;
  }
  EXPECT_TRUE(Cosign("no note", "w.test/1", key, time).empty());
  EXPECT_TRUE(Cosign(note, "two words", key, time).empty());
}

TEST(NoteTest, ProofsAreCheckedForEveryPairOfSizes) {
  constexpr std::uint64_t kMost = 40;
  const std::vector<Digest> all = testing::LeavesOf(Samples(0, kMost));
  const std::span<const Digest> leaves = all;
  for (std::uint64_t size = 1; size <= kMost; ++size) {
    const TreeHead head = HeadOf(size);
    for (std::uint64_t index = 0; index < size; ++index) {
      std::vector<Digest> proof = testing::Path(index, leaves.first(size));
      EXPECT_TRUE(VerifyInclusion(leaves[index], index, head, proof).has_value());
      EXPECT_FALSE(VerifyInclusion(leaves[index], index + size, head, proof).has_value());
      if (size > 1) {
        EXPECT_FALSE(VerifyInclusion(leaves[index], (index + 1) % size, head, proof).has_value());
      }
      for (Digest& hash : proof) {
        hash[0] ^= std::byte{1};
        EXPECT_FALSE(VerifyInclusion(leaves[index], index, head, proof).has_value());
        hash[0] ^= std::byte{1};
      }
      proof.emplace_back();
      EXPECT_FALSE(VerifyInclusion(leaves[index], index, head, proof).has_value());
    }
    for (std::uint64_t old_size = 0; old_size <= size; ++old_size) {
      const TreeHead old_head = HeadOf(old_size);
      std::vector<Digest> proof;
      if (old_size > 0) {
        proof = testing::Subproof(old_size, leaves.first(size), true);
      }
      EXPECT_TRUE(VerifyConsistency(old_head, head, proof).has_value()) << old_size << size;
      TreeHead wrong = old_head;
      wrong.root[5] ^= std::byte{1};
      EXPECT_FALSE(VerifyConsistency(wrong, head, proof).has_value());
      if (old_size < size) {
        EXPECT_FALSE(VerifyConsistency(head, old_head, proof).has_value());
      }
      for (Digest& hash : proof) {
        hash[31] ^= std::byte{128};
        EXPECT_FALSE(VerifyConsistency(old_head, head, proof).has_value());
        hash[31] ^= std::byte{128};
      }
      if (!proof.empty()) {
        const std::vector<Digest> shorter(proof.begin(), proof.end() - 1);
        EXPECT_FALSE(VerifyConsistency(old_head, head, shorter).has_value());
      }
      proof.emplace_back();
      EXPECT_FALSE(VerifyConsistency(old_head, head, proof).has_value());
    }
  }
}

class WitnessTest : public ::testing::Test {
 protected:
  Witness Open() {
    return Witness::Open(folder_.path() + "/seen", "w.test/1", testing::KeyOf(7), LogName())
        .value();
  }
  static std::vector<Digest> ProofOf(std::uint64_t old_size, std::uint64_t size) {
    return old_size == 0 ? std::vector<Digest>()
                         : testing::Subproof(old_size, testing::LeavesOf(Samples(0, size)), true);
  }
  TempFolder folder_;
  const Timestamp now_{std::chrono::seconds(1700000000)};
};

TEST_F(WitnessTest, CosignsWhatExtendsWhatItSawAndRemembersIt) {
  std::uint64_t before = 0;
  for (const std::uint64_t size : {0U, 3U, 3U, 4U, 300U}) {
    Witness witness = Open();  // anew each time: it remembers over restarts
    EXPECT_EQ(witness.seen(), HeadOf(before));
    const std::string note = NoteOf(HeadOf(size));
    const auto line = witness.Check(note, ProofOf(before == size ? 0 : before, size), now_);
    ASSERT_TRUE(line.has_value()) << line.error().message;
    EXPECT_TRUE(
        VerifyCosignature(note + *line, ParseVerifierKey(witness.vkey()).value()).has_value());
    EXPECT_EQ(witness.seen(), HeadOf(size));
    before = size;
  }
}

TEST_F(WitnessTest, RefusesRollbackAndForkForGood) {
  ASSERT_TRUE(Open().Check(NoteOf(HeadOf(10)), {}, now_).has_value());
  for (int again = 0; again < 2; ++again) {
    Witness witness = Open();
    const auto refused = [&](const TreeHead& head, const std::vector<Digest>& proof) {
      const auto line = witness.Check(NoteOf(head), proof, now_);
      EXPECT_EQ(witness.seen(), HeadOf(10));
      return !line.has_value() && line.error().code == Code::kCorrupt &&
             line.error().message.find(Base64(HeadOf(10).root)) != std::string::npos &&
             line.error().message.find(Base64(head.root)) != std::string::npos;
    };
    EXPECT_TRUE(refused(HeadOf(9), {}));
    EXPECT_TRUE(refused(HeadOf(0), {}));
    EXPECT_TRUE(refused(HeadOf(10, 1), {}));
    EXPECT_TRUE(refused(HeadOf(20, 1), ProofOf(10, 20)));
    EXPECT_TRUE(refused(HeadOf(20), {}));
    EXPECT_FALSE(witness.Check("no note", {}, now_).has_value());
    EXPECT_FALSE(
        witness
            .Check(SignCheckpoint({kOrigin, HeadOf(20)}, testing::KeyOf(2)), ProofOf(10, 20), now_)
            .has_value());
  }
  EXPECT_TRUE(Open().Check(NoteOf(HeadOf(20)), ProofOf(10, 20), now_).has_value());
}

TEST_F(WitnessTest, ADamagedMemoryIsAnErrorNotAFreshStart) {
  const std::string path = folder_.path() + "/seen";
  ASSERT_TRUE(Open().Check(NoteOf(HeadOf(10)), {}, now_).has_value());
  const std::string good = testing::Slurp(path);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    testing::Spew(path, damaged);
    EXPECT_EQ(Witness::Open(path, "w.test/1", testing::KeyOf(7), LogName()).error().code,
              Code::kCorrupt);
    testing::Spew(path, good.substr(0, i));
    EXPECT_FALSE(Witness::Open(path, "w.test/1", testing::KeyOf(7), LogName()).has_value());
  }
  EXPECT_FALSE(Witness::Open(path, "two words", testing::KeyOf(7), LogName()).has_value());
}

TEST_F(WitnessTest, NothingIsCosignedThatCannotBeRemembered) {
  Witness witness =
      Witness::Open(folder_.path() + "/absent/seen", "w.test/1", testing::KeyOf(7), LogName())
          .value();
  EXPECT_FALSE(witness.Check(NoteOf(HeadOf(10)), {}, now_).has_value());
  EXPECT_EQ(witness.seen().size, 0U);
}

}  // namespace
}  // namespace ringfence::audit
