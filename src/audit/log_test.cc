// Goal: the log on disk is the RFC 6962 tree of its entries, whatever way it grew; proofs of any
// size can be read from it; a damaged edge is refused.
// Method: compare roots, proofs and paths with a plain recursive implementation for all sizes up
// to some hundreds; damage every byte that the writer depends on.

#include "audit/log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "audit/audit_test_util.h"
#include "audit/log_writer.h"
#include "audit/note.h"
#include "audit/tiles.h"
#include "base/encoding.h"

namespace ringfence::audit {
namespace {

using testing::FilesOf;
using testing::kOrigin;
using testing::Sample;
using testing::Samples;
using testing::TempFolder;

const crypto::SigningKey& LogKey() {
  static const crypto::SigningKey key = testing::KeyOf(1);
  return key;
}

std::unique_ptr<LogWriter> OpenHasty(const std::string& folder) {
  auto writer =
      TileLogWriter::Open(folder, kOrigin, LogKey(), std::make_unique<testing::HastyDisk>());
  EXPECT_TRUE(writer.has_value()) << (writer.has_value() ? "" : writer.error().message);
  return std::move(writer).value();
}

TEST(LogTest, ANewLogIsEmptyAndSigned) {
  const TempFolder folder;
  const auto writer = LogWriter::Open(folder.path() + "/a/b", kOrigin, LogKey()).value();
  EXPECT_EQ(writer->head().size, 0U);
  EXPECT_EQ(writer->head().root, crypto::Sha256(ByteView()));
  EXPECT_EQ(testing::Slurp(folder.path() + "/a/b/checkpoint"), writer->checkpoint());
  EXPECT_TRUE(
      OpenCheckpoint(writer->checkpoint(), {kOrigin, 1, LogKey().public_key()}).has_value());
}

TEST(LogTest, RootsProofsAndEntriesAreThoseOfRfc6962ForEverySize) {
  constexpr std::uint64_t kMost = 600;
  const TempFolder folder;
  const auto writer = OpenHasty(folder.path());
  const std::vector<Digest> all = testing::LeavesOf(Samples(0, kMost));
  const std::span<const Digest> leaves = all;
  for (std::uint64_t size = 1; size <= kMost; ++size) {
    const auto head = writer->Append({Sample(size - 1)});
    ASSERT_TRUE(head.has_value()) << head.error().message;
    ASSERT_EQ(*head, (TreeHead{size, testing::Mth(leaves.first(size))})) << size;
  }
  std::mt19937 random(1);
  for (std::uint64_t size = 1; size <= kMost; ++size) {
    const TreeHead head{size, testing::Mth(leaves.first(size))};
    for (const std::uint64_t index :
         {std::uint64_t{0}, size - 1, size / 2, std::uint64_t{random() % size}}) {
      const auto proof = InclusionProof(folder.path(), index, size);
      ASSERT_TRUE(proof.has_value()) << proof.error().message;
      ASSERT_EQ(*proof, testing::Path(index, leaves.first(size))) << index << " of " << size;
      EXPECT_TRUE(VerifyInclusion(leaves[index], index, head, *proof).has_value());
      EXPECT_EQ(ReadEntry(folder.path(), index, size).value(), Sample(index));
    }
    for (const std::uint64_t old_size :
         {std::uint64_t{1}, size, size / 2 + 1, 1 + random() % size}) {
      const auto proof = ConsistencyProof(folder.path(), old_size, size);
      ASSERT_TRUE(proof.has_value()) << proof.error().message;
      ASSERT_EQ(*proof, testing::Subproof(old_size, leaves.first(size), true));
      const TreeHead old_head{old_size, testing::Mth(leaves.first(old_size))};
      EXPECT_TRUE(VerifyConsistency(old_head, head, *proof).has_value()) << old_size << size;
    }
  }
  EXPECT_EQ(ReadEntry(folder.path(), kMost, kMost).error().code, Code::kNotFound);
  EXPECT_FALSE(InclusionProof(folder.path(), kMost, kMost).has_value());
  EXPECT_FALSE(ConsistencyProof(folder.path(), 3, 2).has_value());
  EXPECT_TRUE(ConsistencyProof(folder.path(), 0, kMost).value().empty());
}

TEST(LogTest, BatchesOfAnySizeAndReopeningGiveTheSameFiles) {
  constexpr std::uint64_t kMost = 66000;  // two tiles at level 1
  const TempFolder whole;
  (void)OpenHasty(whole.path())->Append(Samples(0, kMost - 500)).value();
  const TreeHead head = OpenHasty(whole.path())->Append(Samples(kMost - 500, 500)).value();
  EXPECT_EQ(head.root, testing::Mth(testing::LeavesOf(Samples(0, kMost))));

  const TempFolder parts;
  std::mt19937 random(2);
  std::uint64_t size = 0;
  auto writer = OpenHasty(parts.path());
  while (size < kMost) {
    const std::uint64_t count = std::min<std::uint64_t>(kMost - size, 1 + random() % 2000);
    const auto grown = writer->Append(Samples(size, count));
    ASSERT_TRUE(grown.has_value()) << grown.error().message;
    size += count;
    ASSERT_EQ(grown->size, size);
    if (random() % 4 == 0) {
      writer.reset();
      writer = OpenHasty(parts.path());
      ASSERT_EQ(writer->head(), *grown);
    }
  }
  EXPECT_EQ(writer->head(), head);
  // All of the one are in the other; the other may also have superseded partial tiles.
  testing::Files has = FilesOf(parts.path());
  for (const auto& [path, content] : FilesOf(whole.path())) {
    if (path.find(".p/") == std::string::npos) {
      EXPECT_EQ(has[path], content) << path;
    }
  }
}

TEST(LogTest, TheLayoutIsThatOfTlogTiles) {
  EXPECT_EQ(TilePath(0, 1234067, 256), "tile/0/x001/x234/067");
  EXPECT_EQ(TilePath(3, 5, 17), "tile/3/005.p/17");
  EXPECT_EQ(BundlePath(1000, 256), "tile/entries/x001/000");
  const TempFolder folder;
  (void)OpenHasty(folder.path())->Append(Samples(0, 600)).value();
  std::vector<std::string> names;
  for (const auto& [path, content] : FilesOf(folder.path())) {
    names.push_back(path + " " + std::to_string(content.size()));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"checkpoint 185", "tile/0/000 8192", "tile/0/001 8192",
                                             "tile/0/002.p/88 2816", "tile/1/000.p/2 64",
                                             "tile/entries/000 2706", "tile/entries/001 2816",
                                             "tile/entries/002.p/88 968"}));
}

TEST(LogTest, FilesAreReadableByAnAuditorWhateverTheUmask) {
  const TempFolder folder;
  const mode_t before = umask(077);
  (void)LogWriter::Open(folder.path(), kOrigin, LogKey()).value()->Append(Samples(0, 3)).value();
  umask(before);
  for (const char* name : {"checkpoint", "tile/0/000.p/3", "tile/entries/000.p/3"}) {
    struct stat facts{};
    ASSERT_EQ(stat((folder.path() + "/" + name).c_str(), &facts), 0) << name;
    EXPECT_EQ(facts.st_mode & 0777U, 0644U) << name;
  }
}

TEST(LogTest, PartialTilesGoOnceTheFullOneIsThereAndReadersDoNotMind) {
  const TempFolder folder;
  const auto writer = OpenHasty(folder.path());
  for (std::uint64_t i = 0; i < 300; ++i) {
    (void)writer->Append({Sample(i)}).value();
  }
  EXPECT_FALSE(os::Exists(folder.path() + "/tile/0/000.p"));
  EXPECT_FALSE(os::Exists(folder.path() + "/tile/entries/000.p"));
  EXPECT_TRUE(os::Exists(folder.path() + "/tile/0/001.p/43"));
  // A size whose own partial tile is gone, while a wider one is there.
  ASSERT_TRUE(os::RemoveFile(folder.path() + "/tile/0/001.p/10").has_value());
  ASSERT_TRUE(os::RemoveFile(folder.path() + "/tile/entries/001.p/10").has_value());
  EXPECT_EQ(ReadEntry(folder.path(), 260, 266).value(), Sample(260));
  EXPECT_EQ(InclusionProof(folder.path(), 260, 266).value(),
            testing::Path(260, testing::LeavesOf(Samples(0, 266))));
}

TEST(LogTest, OneWriterAtATime) {
  const TempFolder folder;
  auto first = OpenHasty(folder.path());
  EXPECT_EQ(LogWriter::Open(folder.path(), kOrigin, LogKey()).error().code, Code::kConflict);
  first.reset();
  EXPECT_TRUE(LogWriter::Open(folder.path(), kOrigin, LogKey()).has_value());
}

TEST(LogTest, LimitsAreRefusedBeforeAnythingIsWritten) {
  const TempFolder folder;
  const auto writer = OpenHasty(folder.path());
  EXPECT_EQ(writer->Append({Bytes(kEntryBytesMax + 1)}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(writer->Append(std::vector<Bytes>(kBatchEntriesMax + 1)).error().code,
            Code::kInvalidArgument);
  EXPECT_EQ(writer->Append({}).value().size, 0U);
  EXPECT_EQ(FilesOf(folder.path()).size(), 1U);
  const Bytes longest(kEntryBytesMax, std::byte{'x'});
  EXPECT_EQ(writer->Append({longest}).value().size, 1U);
  EXPECT_EQ(ReadEntry(folder.path(), 0, 1).value(), longest);
  EXPECT_EQ(LogWriter::Open(folder.path(), "two words", LogKey()).error().code,
            Code::kInvalidArgument);
}

TEST(LogTest, OpenRefusesADamagedEdge) {
  const TempFolder folder;
  (void)OpenHasty(folder.path())->Append(Samples(0, 258)).value();
  const testing::Files good = FilesOf(folder.path());
  for (const auto& [path, content] : good) {
    if (path == "tile/0/000" || path == "tile/entries/000") {
      continue;  // below the edge: the verifier's business
    }
    const std::string whole = folder.path() + "/" + path;
    for (std::size_t i = 0; i <= content.size(); ++i) {
      std::string damaged = content.substr(0, i);
      if (i < content.size()) {
        testing::Spew(whole, damaged);
        EXPECT_EQ(LogWriter::Open(folder.path(), kOrigin, LogKey()).error().code, Code::kCorrupt)
            << path << " cut at " << i;
        damaged = content;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
      } else {
        damaged += 'x';
      }
      testing::Spew(whole, damaged);
      EXPECT_EQ(LogWriter::Open(folder.path(), kOrigin, LogKey()).error().code, Code::kCorrupt)
          << path << " damaged at " << i;
    }
    ASSERT_TRUE(os::RemoveFile(whole).has_value());
    EXPECT_EQ(LogWriter::Open(folder.path(), kOrigin, LogKey()).error().code, Code::kCorrupt)
        << path << " missing";
    testing::Spew(whole, content);
  }
  EXPECT_EQ(LogWriter::Open(folder.path(), "ringfence.test/other", LogKey()).error().code,
            Code::kCorrupt);
  EXPECT_EQ(LogWriter::Open(folder.path(), kOrigin, testing::KeyOf(9)).error().code,
            Code::kCorrupt);
  EXPECT_EQ(LogWriter::Open(folder.path(), kOrigin, LogKey()).value()->head().size, 258U);
}

TEST(LogTest, CosignaturesStandInTheCheckpointUntilTheNextHead) {
  const TempFolder folder;
  auto writer = OpenHasty(folder.path());
  (void)writer->Append(Samples(0, 5)).value();
  const crypto::SigningKey witness = testing::KeyOf(7);
  const NamedKey named{"w.test/1", 4, witness.public_key()};
  const auto file = [&] { return testing::Slurp(folder.path() + "/checkpoint"); };
  const std::string early =
      Cosign(writer->checkpoint(), "w.test/1", witness, Timestamp(std::chrono::seconds(1000)));
  const std::string later =
      Cosign(writer->checkpoint(), "w.test/1", witness, Timestamp(std::chrono::seconds(2000)));
  ASSERT_TRUE(writer->AddCosignature(early).has_value());
  EXPECT_EQ(file(), writer->checkpoint() + early);
  ASSERT_TRUE(writer->AddCosignature(later).has_value());  // by the same key: replaces
  EXPECT_EQ(file(), writer->checkpoint() + later);
  EXPECT_EQ(VerifyCosignature(file(), named).value(), Timestamp(std::chrono::seconds(2000)));

  writer.reset();
  writer = OpenHasty(folder.path());
  EXPECT_EQ(file(), writer->checkpoint() + later);
  for (const std::string& wrong :
       {std::string(), std::string("x"), later + later, later.substr(1), "\n" + later,
        later.substr(0, later.size() - 1), writer->checkpoint(),
        std::string("\xe2\x80\x94 w.test/1 AAAAAAAA\n")}) {
    EXPECT_EQ(writer->AddCosignature(wrong).error().code, Code::kInvalidArgument) << wrong;
  }
  (void)writer->Append(Samples(5, 1)).value();
  EXPECT_EQ(file(), writer->checkpoint());
}

}  // namespace
}  // namespace ringfence::audit
