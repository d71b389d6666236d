// Goal: layers become the tree they describe, and whatever an attacker writes into one is refused
// by name, with nothing outside the tree touched.
// Method: tars written byte by byte; each attack alone, and an honest image beside it; every bit of
// a small layer damaged and every cut of it: never a tree that passes as the one that was pinned.

#include "unpack/layer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/file.h"
#include "unpack/tar_writer_test.h"

namespace ringfence::image {
namespace {

namespace fs = std::filesystem;

std::string Packed(const std::string& program, const std::string& bytes) {
  const std::string from = testing::TempDir() + "/plain." + std::to_string(getpid());
  const std::string to = from + ".packed";
  std::ofstream(from, std::ios::binary) << bytes;
  EXPECT_EQ(std::system((program + " -c < " + from + " > " + to).c_str()), 0);
  std::ifstream in(to, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class LayerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/layer.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    base_ = name;
    fs::create_directories(base_ + "/tree");
    std::ofstream(base_ + "/outside") << "mine";
  }
  void TearDown() override {
    std::ifstream outside(base_ + "/outside");
    std::string text;
    outside >> text;
    EXPECT_EQ(text, "mine") << "something outside the tree was changed";
    EXPECT_TRUE(os::RemoveTree(base_).has_value());
  }
  Status Unpack(const std::string& stored, const std::string& plain) {
    auto tree = os::Tree::Open(base_ + "/tree");
    if (!tree.has_value()) {
      return tree.error();
    }
    bool given = false;
    const Pull pull = [&]() -> Result<ByteView> {
      const ByteView bytes = given ? ByteView() : AsBytes(stored);
      given = true;
      return bytes;
    };
    return UnpackLayer(pull, digest_.empty() ? DigestText(stored) : digest_, DigestText(plain),
                       limits_, *tree, sum_);
  }
  Status Unpack(const TarWriter& tar) { return Unpack(tar.Take(), tar.Take()); }
  Error Refused(const TarWriter& tar) {
    const Status done = Unpack(tar);
    EXPECT_FALSE(done.has_value());
    if (done.has_value()) {
      return {};
    }
    EXPECT_FALSE(done.error().hint.empty()) << done.error().message;
    return done.error();
  }
  std::string Read(const std::string& path) {
    std::ifstream in(base_ + "/tree/" + path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool Has(const std::string& path) {
    return fs::exists(fs::symlink_status(base_ + "/tree/" + path));
  }
  unsigned Mode(const std::string& path) {
    struct stat facts{};
    EXPECT_EQ(lstat((base_ + "/tree/" + path).c_str(), &facts), 0);
    return facts.st_mode & 07777U;
  }

  std::string base_;
  std::string digest_;
  Limits limits_;
  Unpacked sum_;
};

TEST_F(LayerTest, FilesFoldersLinksAndModes) {
  TarWriter tar;
  tar.Folder("./").Folder("usr/").Folder("usr/bin/").File("usr/bin/tool", "#!", 04755);
  tar.File("etc/secret", "s", 0600).Link("bin", "usr/bin").HardLink("usr/bin/same", "usr/bin/tool");
  tar.File("bin/through-a-link", "x", 0755).LongFile("etc/" + std::string(200, 'n'), "long");
  const Status done = Unpack(tar);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(Read("usr/bin/tool"), "#!");
  EXPECT_EQ(Read("usr/bin/same"), "#!");
  EXPECT_EQ(Read("usr/bin/through-a-link"), "x");
  EXPECT_EQ(Read("etc/" + std::string(200, 'n')), "long");
  EXPECT_EQ(fs::read_symlink(base_ + "/tree/bin"), "usr/bin");
  EXPECT_EQ(Mode("usr/bin/tool"), 0555U) << "set-user-id must be left out";
  EXPECT_EQ(Mode("etc/secret"), 0444U);
  EXPECT_EQ(Mode("etc"), 0755U);
  EXPECT_EQ(sum_.privileged_bits, 1U);
  EXPECT_EQ(sum_.layers, 1U);
}

TEST_F(LayerTest, LaterLayersReplaceAndHide) {
  TarWriter low;
  low.File("a/old", "1").File("a/keep", "1").File("b/x", "1").File("c", "file").Folder("d");
  low.File("d/inside", "1");
  ASSERT_TRUE(Unpack(low).has_value());
  TarWriter high;
  high.File("a/.wh.old", "").File("b/new", "2").File("b/.wh..wh..opq", "").Folder("c");
  high.File("c/now-a-folder", "2").File("d", "now a file").File("a/.wh.never-there", "");
  const Status done = Unpack(high);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_FALSE(Has("a/old"));
  EXPECT_TRUE(Has("a/keep"));
  EXPECT_FALSE(Has("b/x"));
  EXPECT_TRUE(Has("b/new")) << "a layer's own files are not what its whiteout means";
  EXPECT_TRUE(Has("c/now-a-folder"));
  EXPECT_EQ(Read("d"), "now a file");
  EXPECT_FALSE(Has("a/.wh.old"));
}

TEST_F(LayerTest, GzipAndZstd) {
  TarWriter tar;
  tar.File("f", std::string(100'000, 'z'));
  for (const char* program : {"gzip", "zstd -q"}) {
    const std::string stored = Packed(program, tar.Take());
    ASSERT_LT(stored.size(), tar.Take().size());
    const Status done = Unpack(stored, tar.Take());
    EXPECT_TRUE(done.has_value()) << program << ": " << done.error().message;
  }
  EXPECT_EQ(Read("f").size(), 100'000U);
}

TEST_F(LayerTest, NothingLeadsOut) {
  for (const std::string& path : {std::string("../outside"), std::string("a/../../outside"),
                                  base_ + "/outside", std::string("usr/.."), std::string("..")}) {
    TarWriter tar;
    tar.File(path, "stolen");
    const Error error = Refused(tar);
    EXPECT_NE(error.message.find(path), std::string::npos) << error.message;
  }
  // By a link: the kernel keeps the name in the tree.
  TarWriter link;
  link.Link("out", "../..").File("out/outside", "stolen");
  EXPECT_TRUE(Unpack(link).has_value());
  EXPECT_EQ(Read("outside"), "stolen") << "inside the tree, where the link leads from its root";
  TarWriter absolute;
  absolute.Link("evil", base_).File("evil/outside", "stolen");
  EXPECT_FALSE(Unpack(absolute).has_value()) << "there is no such folder in the tree";
  // A link is replaced, not written through.
  TarWriter through;
  through.Link("x", base_ + "/outside").File("x", "stolen");
  ASSERT_TRUE(Unpack(through).has_value());
  EXPECT_EQ(Read("x"), "stolen");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(base_ + "/tree/x")));
}

TEST_F(LayerTest, HardLinksStayInside) {
  for (const std::string& target :
       {std::string("../outside"), base_ + "/outside", std::string("not-there")}) {
    TarWriter tar;
    tar.HardLink("h", target);
    const Error error = Refused(tar);
    EXPECT_NE(error.message.find("\"h\""), std::string::npos) << error.message;
  }
  TarWriter folder;
  folder.Folder("d").HardLink("h", "d");
  EXPECT_NE(Refused(folder).message.find("no plain file"), std::string::npos);
  TarWriter link;
  link.Link("l", base_ + "/outside").HardLink("h", "l");
  EXPECT_NE(Refused(link).message.find("no plain file"), std::string::npos);
}

TEST_F(LayerTest, NoDevicesPipesOrSockets) {
  for (const char type : {'3', '4', '6'}) {
    TarWriter tar;
    tar.Special("dev/sda", type);
    const Error error = Refused(tar);
    EXPECT_NE(error.message.find("dev/sda"), std::string::npos) << error.message;
    EXPECT_FALSE(Has("dev/sda"));
  }
}

TEST_F(LayerTest, SizesAreBounded) {
  limits_.bytes_max = 1 << 20;
  TarWriter sparse;
  sparse.Sparse("huge", std::uint64_t{4} << 30U);
  const Error hole = Refused(sparse);
  EXPECT_EQ(hole.code, Code::kExhausted) << hole.message;
  EXPECT_NE(hole.message.find("huge"), std::string::npos);
  TarWriter promise;
  promise.Promise("promised", std::uint64_t{7} << 30U);
  EXPECT_NE(Refused(promise).message.find("promised"), std::string::npos);
  TarWriter many;
  for (int i = 0; i < 5; ++i) {
    many.File("f" + std::to_string(i), std::string(300'000, 'x'));
  }
  EXPECT_NE(Refused(many).message.find("f3"), std::string::npos);
}

TEST_F(LayerTest, AMillionEntries) {
  limits_.entries_max = 100;
  TarWriter tar;
  for (int i = 0; i < 101; ++i) {
    tar.Folder("d" + std::to_string(i % 3));
  }
  const Error error = Refused(tar);
  EXPECT_EQ(error.code, Code::kExhausted);
  EXPECT_NE(error.message.find("100"), std::string::npos);
}

TEST_F(LayerTest, ABombIsCutShort) {
  limits_.ratio_free_bytes = 1 << 20;
  TarWriter tar;
  tar.File("zeros", std::string(std::size_t{32} << 20U, '\0'));
  const std::string stored = Packed("gzip -9", tar.Take());
  const Status done = Unpack(stored, tar.Take());
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::kExhausted) << done.error().message;
}

TEST_F(LayerTest, NamesAreBounded) {
  TarWriter deep;
  std::string path = "d";
  for (int i = 0; i < 70; ++i) {
    path += "/d";
  }
  deep.LongFile(path, "x");
  EXPECT_NE(Refused(deep).message.find("deeper"), std::string::npos);
  TarWriter by_links;  // each name is short; where it leads is not
  std::string chain = std::string("d0");
  for (int i = 1; i < 40; ++i) {
    chain += "/d";
  }
  by_links.LongFile(chain + "/f", "x").Link("l", chain).LongFile("l/" + chain + "/f", "x");
  EXPECT_NE(Refused(by_links).message.find("links resolved"), std::string::npos);
  TarWriter longest;
  longest.LongFile(std::string(300, 'n'), "x");
  EXPECT_NE(Refused(longest).message.find("255"), std::string::npos);
  TarWriter endless;
  std::string text;
  for (int i = 0; i < 30; ++i) {
    text += std::string(100, 'p') + "/";
  }
  endless.LongFile(text + "f", "x");
  EXPECT_NE(Refused(endless).message.find("longer"), std::string::npos);
}

TEST_F(LayerTest, DamageIsAlwaysSeen) {
  TarWriter tar;
  tar.File("a", "alpha").Link("b", "a");
  const std::string good = tar.Take();
  digest_ = DigestText(good);
  ASSERT_TRUE(Unpack(good, good).has_value());
  for (std::size_t cut = 0; cut < good.size(); cut += 7) {
    EXPECT_FALSE(Unpack(good.substr(0, cut), good).has_value()) << cut;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(static_cast<unsigned char>(bad[at]) ^ (1U << (at % 8)));
    EXPECT_FALSE(Unpack(bad, good).has_value()) << at;
  }
  EXPECT_FALSE(Unpack(good + "x", good).has_value());
}

TEST_F(LayerTest, TheTreesDigestSeesEveryChange) {
  TarWriter tar;
  tar.File("a", "alpha").Link("b", "a").Folder("c");
  ASSERT_TRUE(Unpack(tar).has_value());
  const auto digest = [&] { return TreeDigest(os::Tree::Open(base_ + "/tree").value()).value(); };
  const std::string before = digest();
  EXPECT_EQ(digest(), before);
  ASSERT_EQ(chmod((base_ + "/tree/a").c_str(), 0644), 0);
  EXPECT_NE(digest(), before);
  ASSERT_EQ(chmod((base_ + "/tree/a").c_str(), 0444), 0);
  EXPECT_EQ(digest(), before);
  fs::rename(base_ + "/tree/c", base_ + "/tree/e");
  EXPECT_NE(digest(), before);
  fs::rename(base_ + "/tree/e", base_ + "/tree/c");
  fs::remove(base_ + "/tree/b");
  fs::create_symlink("c", base_ + "/tree/b");
  EXPECT_NE(digest(), before);
}

}  // namespace
}  // namespace ringfence::image
