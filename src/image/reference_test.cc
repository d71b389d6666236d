// Goal: an image's name says what it means or is refused; a store keeps whole images only.
// Method: names good and bad; reports kept, found, held, removed, damaged.

#include "image/reference.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/encoding.h"
#include "crypto/sha256.h"
#include "image/store.h"
#include "os/file.h"
#include "os/identity.h"

namespace ringfence::image {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

TEST(Reference, NamesAndDigests) {
  EXPECT_EQ(ParseReference("acme/train:7").value().name, "acme/train:7");
  EXPECT_FALSE(ParseReference("acme/train:7").value().pinned());
  EXPECT_EQ(ParseReference(kDigest).value().digest, kDigest);
  const auto both = ParseReference("acme/train@" + kDigest);
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->name, "acme/train");
  EXPECT_EQ(both->text(), "acme/train@" + kDigest);
  for (const std::string& bad :
       {std::string(), std::string("-x"), std::string("../x"), std::string("a b"),
        std::string("a@sha256:12"), "a@" + kDigest + "0", "sha256:" + std::string(64, 'A'),
        std::string("sha256:12"), std::string(600, 'a'), std::string("a\n")}) {
    EXPECT_FALSE(ParseReference(bad).has_value()) << bad;
  }
}

TEST(Reference, Sources) {
  const auto layout = ParseSource("oci:/srv/x:v1@" + kDigest, false);
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->place, "/srv/x");
  EXPECT_EQ(layout->tag, "v1");
  EXPECT_EQ(layout->digest, kDigest);
  EXPECT_EQ(ParseSource("./x.tar", false)->kind, SourceKind::kArchive);
  EXPECT_EQ(ParseSource("./x", true)->kind, SourceKind::kLayout);
  EXPECT_EQ(ParseSource("containers-storage:localhost/x:1", false)->place, "localhost/x:1");
  EXPECT_FALSE(ParseSource("containers-storage:--help", false).has_value());
  EXPECT_EQ(ParseSource("acme/train", false).error().code, Code::kNotFound);
  EXPECT_FALSE(ParseSource("oci:", false).has_value());
}

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/images.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static Report ReportOf(const std::string& document) {
    Report report;
    report.document = document;
    report.digest = "sha256:" + Hex(crypto::Sha256(AsBytes(document)));
    report.tree_digest = kDigest;
    return report;
  }
  Result<StoredImage> Keep(const std::string& document, const std::string& name) {
    Store store(folder_);
    auto import = store.Begin(os::UserId());
    EXPECT_TRUE(import.has_value()) << import.error().message;
    std::ofstream((*import)->tree() + "/file") << document;
    StoredImage facts;
    facts.names = {name};
    return (*import)->Keep(ReportOf(document), facts);
  }
  std::string folder_;
};

TEST_F(StoreTest, KeptFoundAndRemoved) {
  const auto kept = Keep("{}", "a:1");
  ASSERT_TRUE(kept.has_value()) << kept.error().message;
  Store store(folder_);
  EXPECT_EQ(store.FindByText("a:1").value().report.digest, kept->report.digest);
  EXPECT_EQ(store.FindByText(kept->report.digest.substr(7, 12)).value().names[0], "a:1");
  EXPECT_TRUE(os::Exists(kept->tree() + "/file"));
  EXPECT_EQ(store.Find(kDigest).error().code, Code::kNotFound);
  {
    const auto held = store.Hold(kept->report.digest);
    ASSERT_TRUE(held.has_value());
    const auto second = store.Hold(kept->report.digest);
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(store.Remove(kept->report.digest).error().code, Code::kConflict);
  }
  EXPECT_TRUE(store.Remove(kept->report.digest).has_value());
  EXPECT_TRUE(store.List().value().empty());
}

TEST_F(StoreTest, ANameIsOneImages) {
  ASSERT_TRUE(Keep("{}", "a:1").has_value());
  const auto second = Keep("{ }", "a:1");
  ASSERT_TRUE(second.has_value());
  Store store(folder_);
  EXPECT_EQ(store.FindByText("a:1").value().report.digest, second->report.digest);
  EXPECT_EQ(store.List().value().size(), 2U);
  ASSERT_TRUE(Keep("{ }", "b:1").has_value()) << "the same again: only a name more";
  EXPECT_EQ(store.List().value().size(), 2U);
  EXPECT_EQ(store.FindByText("b:1").value().names.size(), 2U);
}

TEST_F(StoreTest, AnImportThatEndsLeavesNothing) {
  Store store(folder_);
  {
    const auto import = store.Begin(os::UserId());
    ASSERT_TRUE(import.has_value());
    Store other(folder_);
    EXPECT_EQ(other.Begin(os::UserId()).error().code, Code::kConflict) << "one at a time";
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path().filename(), "lock");
  }
}

TEST_F(StoreTest, DamageIsFound) {
  const auto kept = Keep("{}", "a:1");
  ASSERT_TRUE(kept.has_value());
  std::ofstream(kept->folder + "/document") << "{ }";
  Store store(folder_);
  EXPECT_EQ(store.Find(kept->report.digest).error().code, Code::kCorrupt);
  EXPECT_EQ(store.Digests().size(), 1U);
  EXPECT_TRUE(store.Remove(kept->report.digest).has_value()) << "so that it can be imported again";
}

}  // namespace
}  // namespace ringfence::image
