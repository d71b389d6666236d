// Goal: the verifier accepts every good log and no other, and names what is bad as closely as it
// can be known.
// Method: good logs of several sizes, made by the real writer; damage every byte, cut everywhere,
// delete, swap, append, roll back, fork; then look at what the report says.

#include "audit/verify.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <thread>

#include "audit/audit_test_util.h"
#include "audit/log_writer.h"
#include "audit/note.h"
#include "base/encoding.h"
#include "base/sanitizer.h"

namespace ringfence::audit {
namespace {

using testing::Files;
using testing::FilesOf;
using testing::kOrigin;
using testing::Sample;
using testing::Samples;
using testing::TempFolder;

const crypto::SigningKey& LogKey() {
  static const crypto::SigningKey key = testing::KeyOf(1);
  return key;
}
std::string LogVkey() { return VerifierKey(kOrigin, 1, LogKey().public_key()); }

std::unique_ptr<LogWriter> Grow(const std::string& folder, const std::vector<Bytes>& entries) {
  auto writer =
      TileLogWriter::Open(folder, kOrigin, LogKey(), std::make_unique<testing::HastyDisk>())
          .value();
  (void)writer->Append(entries).value();
  return writer;
}

VerifyOptions OptionsFor(const std::string& folder) {
  VerifyOptions options;
  options.folder = folder;
  options.vkeys = {LogVkey()};
  options.settle = std::chrono::milliseconds(0);
  options.threads = 1;
  return options;
}
VerifyReport Verify(const std::string& folder) { return VerifyLog(OptionsFor(folder)).value(); }

std::string Explain(const VerifyReport& report) {
  std::string text;
  for (const BadRange& range : report.bad) {
    text +=
        std::to_string(range.first) + "-" + std::to_string(range.last) + " " + range.what + "; ";
  }
  for (const std::string& problem : report.problems) {
    text += problem + "; ";
  }
  return text;
}

bool Names(const VerifyReport& report, std::uint64_t first, std::uint64_t last) {
  return std::any_of(report.bad.begin(), report.bad.end(), [&](const BadRange& range) {
    return range.first == first && range.last == last;
  });
}
bool HasProblem(const VerifyReport& report, std::string_view word) {
  return std::any_of(report.problems.begin(), report.problems.end(),
                     [&](const std::string& text) { return text.find(word) != text.npos; });
}

// The entry that a byte of a bundle's file belongs to, length included.
std::uint64_t EntryAt(const std::string& bundle, std::size_t byte) {
  std::uint64_t index = 0;
  for (std::size_t at = 0;; ++index) {
    at += 2 + GetBigEndian<std::uint16_t>(AsBytes(bundle).subspan(at));
    if (byte < at) {
      return index;
    }
  }
}
// "tile/0/002.p/88": 2 * 256, of entries or of hashes.
std::uint64_t FirstOf(const std::string& path) {
  const std::size_t slash = path.find('/', 5);
  return std::stoull(path.substr(slash + 1, 3)) * 256;
}

// Every byte where there are few, and every byte of the entries of one log; else a choice of them,
// a smaller one where a sanitizer makes everything slow.
std::size_t StepFor(std::uint64_t log_size, std::size_t file_size) {
#ifdef RINGFENCE_ADDRESS_SANITIZER
  constexpr std::size_t kThinner = 7;
#else
  constexpr std::size_t kThinner = 1;
#endif
  if (file_size <= 300) {
    return 1;
  }
  return kThinner * (log_size == 257 ? (file_size > 3000 ? 5 : 1) : 29);
}

class VerifySizes : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(VerifySizes, AGoodLogIsGood) {
  const TempFolder folder;
  const auto writer = Grow(folder.path(), Samples(0, GetParam()));
  const VerifyReport report = Verify(folder.path());
  EXPECT_TRUE(report.ok) << Explain(report);
  EXPECT_EQ(report.origin, kOrigin);
  EXPECT_EQ(report.size, GetParam());
  EXPECT_EQ(report.entries_read, GetParam());
  EXPECT_EQ(report.root, Base64(writer->head().root));
}

TEST_P(VerifySizes, EveryFlippedBitIsFoundAndItsPlaceNamed) {
  const TempFolder folder;
  (void)Grow(folder.path(), Samples(0, GetParam()));
  const Files files = FilesOf(folder.path());
  for (const auto& [path, content] : files) {
    const std::string whole = folder.path() + "/" + path;
    const std::size_t step = StepFor(GetParam(), content.size());
    for (std::size_t i = 0; i < content.size(); i += step) {
      for (unsigned bit = content.size() > 300 ? i % 8 : 0; bit < 8;
           bit += content.size() > 300 ? 8 : 1) {
        std::string damaged = content;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
        testing::Spew(whole, damaged);
        const VerifyReport report = Verify(folder.path());
        const std::string where = path + " byte " + std::to_string(i) + ": " + Explain(report);
        ASSERT_FALSE(report.ok) << where;
        if (path.starts_with("tile/entries/")) {
          const std::uint64_t entry = FirstOf(path) + EntryAt(content, i);
          ASSERT_TRUE(Names(report, entry, entry)) << where;
          ASSERT_EQ(report.bad.size(), 1U) << where;
          ASSERT_TRUE(HasProblem(report, "the tiles lead to the signed root")) << where;
        } else if (path.starts_with("tile/0/")) {
          const std::uint64_t entry = FirstOf(path) + i / 32;
          ASSERT_TRUE(Names(report, entry, entry)) << where;
          ASSERT_TRUE(HasProblem(report, "the entries lead to the signed root")) << where;
        } else if (path.starts_with("tile/1/")) {
          const std::uint64_t first = i / 32 * 256;
          ASSERT_TRUE(Names(report, first, first + 255)) << where;
        }
      }
    }
    testing::Spew(whole, content);
  }
  EXPECT_TRUE(Verify(folder.path()).ok);
}

TEST_P(VerifySizes, EveryCutAdditionAndDeletionIsFound) {
  const TempFolder folder;
  (void)Grow(folder.path(), Samples(0, GetParam()));
  const Files files = FilesOf(folder.path());
  for (const auto& [path, content] : files) {
    const std::string whole = folder.path() + "/" + path;
    const std::size_t step = StepFor(GetParam(), content.size());
    for (std::size_t cut = 0; cut < content.size(); cut += step) {
      testing::Spew(whole, content.substr(0, cut));
      const VerifyReport report = Verify(folder.path());
      ASSERT_FALSE(report.ok) << path << " cut at " << cut;
      if (path.starts_with("tile/entries/")) {
        const std::uint64_t entry = FirstOf(path) + EntryAt(content, cut);
        const std::uint64_t last = std::min(FirstOf(path) + 255, GetParam() - 1);
        ASSERT_TRUE(Names(report, entry, last)) << path << " " << cut << " " << Explain(report);
      }
    }
    testing::Spew(whole, content + std::string(1, '\0'));
    EXPECT_FALSE(Verify(folder.path()).ok) << path << " with a byte more";
    if (path.starts_with("tile/entries/")) {
      testing::Spew(whole, content + std::string("\0\x0a{\"n\":9999}", 12));
      EXPECT_FALSE(Verify(folder.path()).ok) << path << " with an entry more";
    }
    ASSERT_TRUE(os::RemoveFile(whole).has_value());
    EXPECT_FALSE(Verify(folder.path()).ok) << path << " deleted";
    testing::Spew(whole, content);
  }
  EXPECT_TRUE(Verify(folder.path()).ok);
}

INSTANTIATE_TEST_SUITE_P(Sizes, VerifySizes, ::testing::Values(1, 2, 255, 256, 257, 600));

TEST(VerifyTest, AnEmptyLogAndBadInput) {
  const TempFolder folder;
  (void)Grow(folder.path(), {});
  EXPECT_TRUE(Verify(folder.path()).ok);
  VerifyOptions options = OptionsFor(folder.path());
  options.folder += "/absent";
  EXPECT_EQ(VerifyLog(options).error().code, Code::kNotFound);
  options = OptionsFor(folder.path());
  for (const std::vector<std::string>& keys : {std::vector<std::string>{},
                                               {"x"},
                                               {VerifierKey("w", 4, LogKey().public_key())},
                                               {LogVkey(), LogVkey()},
                                               {LogVkey() + "A"}}) {
    options.vkeys = keys;
    EXPECT_EQ(VerifyLog(options).error().code, Code::kInvalidArgument);
  }
  options.vkeys = {VerifierKey(kOrigin, 1, testing::KeyOf(2).public_key())};
  EXPECT_FALSE(VerifyLog(options)->ok);
  options.vkeys = {VerifierKey("ringfence.test/other", 1, LogKey().public_key())};
  EXPECT_FALSE(VerifyLog(options)->ok);
}

TEST(VerifyTest, SwappedEntriesAreBothNamed) {
  const TempFolder folder;
  (void)Grow(folder.path(), Samples(100, 300));
  const std::string path = folder.path() + "/tile/entries/000";
  std::string bundle = testing::Slurp(path);
  std::swap_ranges(bundle.begin() + 11 * 3, bundle.begin() + 11 * 4, bundle.begin() + 11 * 7);
  testing::Spew(path, bundle);
  const VerifyReport report = Verify(folder.path());
  EXPECT_TRUE(Names(report, 3, 3)) << Explain(report);
  EXPECT_TRUE(Names(report, 7, 7));
  EXPECT_EQ(report.bad.size(), 2U);
}

TEST(VerifyTest, AnEntryForgedTogetherWithItsTileIsNarrowedToTheTile) {
  const TempFolder folder;
  (void)Grow(folder.path(), Samples(100, 700));
  const auto forge = [&](unsigned tile, std::uint64_t entry) {
    const std::string number = "00" + std::to_string(tile);
    std::string bundle = testing::Slurp(folder.path() + "/tile/entries/" + number);
    bundle.replace((entry % 256) * 11 + 2, 9, "{\"n\":666}");
    testing::Spew(folder.path() + "/tile/entries/" + number, bundle);
    std::string hashes = testing::Slurp(folder.path() + "/tile/0/" + number);
    const Digest hash = testing::MthLeaf(AsBytes("{\"n\":666}"));
    hashes.replace((entry % 256) * 32, 32, AsText(hash));
    testing::Spew(folder.path() + "/tile/0/" + number, hashes);
    return hashes;
  };
  const std::string hashes = forge(1, 300);
  VerifyReport report = Verify(folder.path());
  EXPECT_TRUE(Names(report, 256, 511)) << Explain(report);
  EXPECT_EQ(report.bad.size(), 1U);
  // Forged up to the last tile: only the signed root is left to tell.
  std::vector<Digest> leaves(256);
  std::memcpy(leaves.data(), hashes.data(), hashes.size());
  std::string upper = testing::Slurp(folder.path() + "/tile/1/000.p/2");
  upper.replace(32, 32, AsText(testing::Mth(leaves)));
  testing::Spew(folder.path() + "/tile/1/000.p/2", upper);
  report = Verify(folder.path());
  EXPECT_TRUE(Names(report, 0, 699)) << Explain(report);
  EXPECT_TRUE(HasProblem(report, "neither"));
}

TEST(VerifyTest, DamageInSeveralPlacesIsAllNamed) {
  const TempFolder folder;
  (void)Grow(folder.path(), Samples(1000, 66000 - 1000));
  const auto flip = [&](const std::string& path, std::size_t byte) {
    std::string content = testing::Slurp(folder.path() + "/" + path);
    content[byte] = static_cast<char>(content[byte] ^ 1);
    testing::Spew(folder.path() + "/" + path, content);
  };
  ASSERT_TRUE(Verify(folder.path()).ok);
  flip("tile/entries/007", 8);
  flip("tile/0/100", 64);
  flip("tile/1/000.p/253", 200 * 32);
  ASSERT_TRUE(os::RemoveFile(folder.path() + "/tile/entries/050").has_value());
  ASSERT_TRUE(os::RemoveFile(folder.path() + "/tile/0/060").has_value());
  ASSERT_TRUE(os::RemoveFile(folder.path() + "/tile/entries/070").has_value());
  ASSERT_TRUE(os::RemoveFile(folder.path() + "/tile/0/070").has_value());
  for (const unsigned threads : {1U, 2U}) {
    VerifyOptions options = OptionsFor(folder.path());
    options.threads = threads;
    const VerifyReport report = VerifyLog(options).value();
    EXPECT_TRUE(Names(report, 7 * 256, 7 * 256)) << Explain(report);
    EXPECT_TRUE(Names(report, 100 * 256 + 2, 100 * 256 + 2));
    EXPECT_TRUE(Names(report, 200 * 256, 200 * 256 + 255));
    EXPECT_TRUE(Names(report, 50 * 256, 50 * 256 + 255));
    EXPECT_TRUE(Names(report, 60 * 256, 60 * 256 + 255));
    EXPECT_TRUE(Names(report, 70 * 256, 70 * 256 + 255));
    EXPECT_EQ(report.bad.size(), 7U);  // the last one twice: entries and tile
  }
}

TEST(VerifyTest, EntriesThatAreNotCanonicalAreNamedThoughTheyAreSigned) {
  const TempFolder folder;
  std::vector<Bytes> entries = Samples(0, 5);
  entries[1] = ToBytes("{\"b\":1,\"a\":2}");
  entries[2] = ToBytes("{ }");
  entries[4] = {};
  (void)Grow(folder.path(), entries);
  const VerifyReport report = Verify(folder.path());
  EXPECT_FALSE(report.ok);
  ASSERT_EQ(report.bad.size(), 3U);
  EXPECT_TRUE(Names(report, 1, 1) && Names(report, 2, 2) && Names(report, 4, 4));
}

TEST(VerifyTest, RollbackAndForkAreFoundWithAnEarlierCheckpoint) {
  const TempFolder folder;
  std::vector<std::string> notes;
  std::uint64_t before = 0;
  for (const std::uint64_t size : {0U, 1U, 5U, 255U, 256U, 257U, 512U, 700U}) {
    notes.push_back(Grow(folder.path(), Samples(before, size - before))->checkpoint());
    before = size;
  }
  VerifyOptions options = OptionsFor(folder.path());
  options.earlier_checkpoints = notes;
  EXPECT_TRUE(VerifyLog(options)->ok) << Explain(*VerifyLog(options));

  // An older state, which is consistent in itself, shown after a newer one was seen.
  const TempFolder old;
  (void)Grow(old.path(), Samples(0, 257));
  ASSERT_TRUE(Verify(old.path()).ok);
  options.folder = old.path();
  options.earlier_checkpoints = {notes.back()};
  EXPECT_TRUE(HasProblem(*VerifyLog(options), "rollback"));
  // Only the checkpoint put back.
  options.folder = folder.path();
  const std::string newest = testing::Slurp(folder.path() + "/checkpoint");
  testing::Spew(folder.path() + "/checkpoint", notes[4]);
  EXPECT_TRUE(HasProblem(*VerifyLog(options), "rollback"));
  EXPECT_TRUE(HasProblem(*VerifyLog(options), "beyond"));
  testing::Spew(folder.path() + "/checkpoint", newest);

  // A log that is good in itself but is not the one that was seen.
  for (std::size_t i = 1; i < notes.size(); ++i) {
    const TempFolder fork;
    std::vector<Bytes> entries = Samples(0, 800);
    entries[0] = Sample(77);
    (void)Grow(fork.path(), entries);
    ASSERT_TRUE(Verify(fork.path()).ok);
    options.folder = fork.path();
    options.earlier_checkpoints = {notes[i]};
    EXPECT_TRUE(HasProblem(*VerifyLog(options), "fork")) << i;
  }
  // One that is not signed by the log at all.
  options.folder = folder.path();
  options.earlier_checkpoints = {SignCheckpoint({kOrigin, {}}, testing::KeyOf(3))};
  EXPECT_FALSE(VerifyLog(options)->ok);
}

TEST(VerifyTest, WitnessesThatMustCosignAreAskedFor) {
  const TempFolder folder;
  const auto writer = Grow(folder.path(), Samples(0, 5));
  const crypto::SigningKey witness = testing::KeyOf(7);
  VerifyOptions options = OptionsFor(folder.path());
  options.vkeys.push_back(VerifierKey("w.test/1", 4, witness.public_key()));
  EXPECT_TRUE(HasProblem(*VerifyLog(options), "no cosignature by w.test/1"));
  const std::string line = Cosign(writer->checkpoint(), "w.test/1", witness,
                                  Timestamp(std::chrono::seconds(1700000000)));
  ASSERT_TRUE(writer->AddCosignature(line).has_value());
  const VerifyReport report = VerifyLog(options).value();
  EXPECT_TRUE(report.ok) << Explain(report);
  EXPECT_EQ(report.witnesses, std::vector<std::string>{"w.test/1 at 2023-11-14T22:13:20.000Z"});
  const std::string good = testing::Slurp(folder.path() + "/checkpoint");
  for (std::size_t i = 0; i < good.size() * 8; ++i) {
    std::string damaged = good;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    testing::Spew(folder.path() + "/checkpoint", damaged);
    ASSERT_FALSE(VerifyLog(options)->ok) << "bit " << i;
  }
}

TEST(VerifyTest, FilesThatDoNotBelongAreReported) {
  const TempFolder folder;
  (void)Grow(folder.path(), Samples(0, 300));
  for (const char* name :
       {"tile/x", "tile/8/000", "tile/0/2", "tile/0/x000/001", "tile/0/abc", "tile/0/001.p/0",
        "tile/0/001.p/044", "tile/0/001.p/256", "tile/entries/x1", "tile/entries/000.q/1",
        // beyond the checkpoint
        "tile/0/001", "tile/0/002", "tile/0/002.p/1", "tile/0/001.p/45", "tile/2/000.p/1",
        "tile/entries/x001/000", "tile/entries/001",
        // superseded, but not by the same
        "tile/0/000.p/1", "tile/0/001.p/43", "tile/entries/001.p/7"}) {
    testing::Spew(folder.path() + "/" + name, "x");
    const VerifyReport report = Verify(folder.path());
    EXPECT_TRUE(!report.ok && report.bad.empty()) << name << " " << Explain(report);
    std::filesystem::remove(folder.path() + "/" + name);
    for (std::filesystem::path up = std::filesystem::path(name).parent_path();
         std::filesystem::is_empty(folder.path() / up); up = up.parent_path()) {
      std::filesystem::remove(folder.path() / up);
    }
  }
  EXPECT_TRUE(Verify(folder.path()).ok);
  // A partial tile that is a true part of what superseded it.
  testing::Spew(folder.path() + "/tile/0/000.p/2",
                testing::Slurp(folder.path() + "/tile/0/000").substr(0, 64));
  testing::Spew(folder.path() + "/tile/entries/000.p/2",
                testing::Slurp(folder.path() + "/tile/entries/000").substr(0, 18));
  EXPECT_TRUE(Verify(folder.path()).ok) << Explain(Verify(folder.path()));
}

TEST(VerifyTest, ALinkOrAPipeInPlaceOfAFileIsNotFollowed) {
  const TempFolder folder;
  (void)Grow(folder.path(), Samples(0, 5));
  const std::string path = folder.path() + "/tile/entries/000.p/5";
  std::filesystem::rename(path, folder.path() + "/moved");
  std::filesystem::create_symlink("../../../moved", path);
  EXPECT_FALSE(Verify(folder.path()).ok);
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(Verify(folder.path()).ok);
}

TEST(VerifyTest, ACheckpointCanClaimAnySizeWithoutHoldingUpTheVerifier) {
  const TempFolder folder;
  (void)Grow(folder.path(), Samples(0, 300));
  testing::Spew(folder.path() + "/checkpoint",
                SignCheckpoint({kOrigin, {~std::uint64_t{0}, Digest{}}}, LogKey()));
  EXPECT_FALSE(Verify(folder.path()).ok);
}

TEST(VerifyTest, ALogCanBeVerifiedWhileItGrows) {
  const TempFolder folder;
  const auto writer = Grow(folder.path(), Samples(0, 200));
  std::jthread grower([&](const std::stop_token& stop) {
    for (std::uint64_t size = 200; !stop.stop_requested() && size < 20000; size += 37) {
      (void)writer->Append(Samples(size, 37)).value();
    }
  });
  for (int i = 0; i < 50; ++i) {
    VerifyOptions options = OptionsFor(folder.path());
    options.settle = std::chrono::seconds(60);
    const VerifyReport report = VerifyLog(options).value();
    ASSERT_TRUE(report.ok) << Explain(report);
  }
}

}  // namespace
}  // namespace ringfence::audit
