// Goal: a sealed file opens only whole, unchanged and with its passphrase.
// Method: files of sizes around a chunk's; every bit of the header and a bit of every byte behind
// it damaged; cut at and around every boundary; chunks swapped, dropped, repeated, taken from
// another file.

#include "backup/seal.h"

#include <gtest/gtest.h>

#include "crypto/random.h"
#include "os/file.h"
#include "os/self.h"
#include "os/staged_file.h"

namespace ringfence::backup {
namespace {

constexpr crypto::ScryptCost kCheap{.log_n = 4, .r = 1, .p = 1};

class SealTest : public testing::Test {
 protected:
  Bytes Seal(ByteView plain, std::size_t piece = 1000) {
    const os::UniqueFd fd = os::OpenForWrite(path_, 0600).value();
    auto writer = SealedWriter::Create(fd.get(), passphrase_, kCheap).value();
    for (ByteView left = plain; !left.empty(); left = left.subspan(std::min(piece, left.size()))) {
      EXPECT_TRUE(writer.Write(left.first(std::min(piece, left.size()))).has_value());
    }
    EXPECT_TRUE(writer.Finish().has_value());
    EXPECT_EQ(writer.bytes(), plain.size());
    return os::ReadFile(path_, 1 << 24).value();
  }

  Result<Bytes> Open(ByteView file, std::size_t bytes) {
    EXPECT_TRUE(os::WriteFile(path_, file).has_value());
    RINGFENCE_ASSIGN(SealedReader reader, SealedReader::Open(path_, passphrase_));
    Bytes plain(bytes);
    RINGFENCE_TRY(reader.Read(plain));
    if (!reader.at_end()) {
      return Error{Code::kCorrupt, "not at its end"};
    }
    return plain;
  }

  os::TempFolder folder_ = os::TempFolder::Create("ringfence-seal-test").value();
  std::string path_ = folder_.path() + "/file";
  SecretBytes passphrase_{AsBytes("open sesame")};
};

TEST_F(SealTest, OpensToWhatWasSealed) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kChunkBytes - 1, kChunkBytes,
                                 kChunkBytes + 1, 2 * kChunkBytes, 3 * kChunkBytes + 17}) {
    const Bytes plain = crypto::RandomBytes(size);
    const Bytes file = Seal(plain, 7777);
    const std::size_t chunks = std::max<std::size_t>(1, (size + kChunkBytes - 1) / kChunkBytes);
    EXPECT_EQ(file.size(), kHeaderBytes + size + chunks * crypto::kGcmTagBytes) << size;
    const auto opened = Open(file, size);
    // Nothing at all is never read: an empty file has a chunk that nobody asks for.
    if (size > 0) {
      ASSERT_TRUE(opened.has_value()) << size << ": " << opened.error().message;
      EXPECT_EQ(*opened, plain) << size;
    }
    EXPECT_FALSE(Open(file, size + 1).has_value()) << "more than there is";
  }
}

TEST_F(SealTest, TwoFilesOfOneTextShareNothing) {
  const Bytes plain = ToBytes("the same");
  const Bytes one = Seal(plain);
  const Bytes two = Seal(plain);
  EXPECT_NE(Bytes(one.begin() + kHeaderBytes, one.end()),
            Bytes(two.begin() + kHeaderBytes, two.end()));
}

TEST_F(SealTest, AnotherPassphraseOpensNothing) {
  const Bytes file = Seal(ToBytes("secret"));
  for (const char* wrong : {"", "open sesam", "open sesame ", "Open sesame"}) {
    const auto opened = SealedReader::Open(path_, SecretBytes(AsBytes(wrong)));
    ASSERT_FALSE(opened.has_value()) << wrong;
    EXPECT_EQ(opened.error().code, Code::kCorrupt);
    EXPECT_NE(opened.error().message.find("passphrase"), std::string::npos);
  }
}

TEST_F(SealTest, EveryBitCounts) {
  const Bytes plain = crypto::RandomBytes(300);
  const Bytes file = Seal(plain);
  ASSERT_TRUE(Open(file, plain.size()).has_value());
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    Bytes damaged = file;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto opened = Open(damaged, plain.size());
    ASSERT_FALSE(opened.has_value()) << bit;
    EXPECT_TRUE(opened.error().code == Code::kCorrupt ||
                opened.error().code == Code::kFailedPrecondition)
        << bit << ": " << opened.error().message;
  }
}

TEST_F(SealTest, EveryCutIsSeen) {
  const Bytes plain = crypto::RandomBytes(2 * kChunkBytes + 100);
  const Bytes file = Seal(plain);
  std::vector<std::size_t> cuts;
  for (std::size_t size = 0; size < kHeaderBytes + 40; ++size) {
    cuts.push_back(size);
  }
  for (const std::size_t edge :
       {kHeaderBytes + kSealedChunkBytes, kHeaderBytes + 2 * kSealedChunkBytes, file.size()}) {
    for (std::size_t back = 1; back < 40; ++back) {
      cuts.push_back(edge - back);
      cuts.push_back(std::min(edge + back, file.size() - 1));
    }
  }
  cuts.push_back(kHeaderBytes + kSealedChunkBytes);
  cuts.push_back(kHeaderBytes + 2 * kSealedChunkBytes);
  for (const std::size_t size : cuts) {
    for (const std::size_t wanted :
         {plain.size(), std::min(plain.size(), (size / kSealedChunkBytes) * kChunkBytes)}) {
      if (wanted > 0) {
        EXPECT_FALSE(Open(ByteView(file).first(size), wanted).has_value()) << size;
      }
    }
  }
  const auto cut = Open(ByteView(file).first(kHeaderBytes + kSealedChunkBytes), kChunkBytes);
  ASSERT_FALSE(cut.has_value());
  EXPECT_NE(cut.error().message.find("cut short after chunk 0"), std::string::npos)
      << cut.error().message;
}

TEST_F(SealTest, ChunksStayInTheirOrderAndTheirFile) {
  const Bytes plain = crypto::RandomBytes(3 * kChunkBytes + 50);
  const Bytes file = Seal(plain);
  const Bytes other = Seal(plain);
  const auto chunk = [](const Bytes& of, std::size_t index) {
    const ByteView rest = ByteView(of).subspan(kHeaderBytes + index * kSealedChunkBytes);
    return rest.first(std::min(rest.size(), kSealedChunkBytes));
  };
  const auto build = [&](const std::vector<ByteView>& chunks) {
    Bytes made(file.begin(), file.begin() + kHeaderBytes);
    for (const ByteView one : chunks) {
      Append(made, one);
    }
    return made;
  };
  const auto a = chunk(file, 0);
  const auto b = chunk(file, 1);
  const auto c = chunk(file, 2);
  const auto end = chunk(file, 3);
  ASSERT_TRUE(Open(build({a, b, c, end}), plain.size()).has_value());
  EXPECT_FALSE(Open(build({b, a, c, end}), plain.size()).has_value()) << "swapped";
  EXPECT_FALSE(Open(build({a, c, end}), plain.size() - kChunkBytes).has_value()) << "dropped";
  EXPECT_FALSE(Open(build({a, b, b, end}), plain.size()).has_value()) << "repeated";
  EXPECT_FALSE(Open(build({a, chunk(other, 1), c, end}), plain.size()).has_value()) << "foreign";
  EXPECT_FALSE(Open(build({a, b, c, end, end}), plain.size()).has_value()) << "lengthened";
  Bytes longer = file;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(Open(longer, plain.size()).has_value()) << "one byte more";
  const auto whole = Seal(crypto::RandomBytes(kChunkBytes));  // a full last chunk
  Bytes added = whole;
  Append(added, ToBytes("something after the end"));
  const auto opened = Open(added, kChunkBytes);
  ASSERT_FALSE(opened.has_value());
  EXPECT_NE(opened.error().message.find("added after its end"), std::string::npos)
      << opened.error().message;
}

TEST_F(SealTest, WhatIsNoBackupIsSaidToBeNone) {
  for (const char* text :
       {"", "ringfence", "not a backup at all, but long enough to look like it"}) {
    ASSERT_TRUE(os::WriteFile(path_, AsBytes(text)).has_value());
    const auto opened = SealedReader::Open(path_, passphrase_);
    ASSERT_FALSE(opened.has_value());
    EXPECT_NE(opened.error().message.find("not a Ringfence backup"), std::string::npos);
  }
}

}  // namespace
}  // namespace ringfence::backup
