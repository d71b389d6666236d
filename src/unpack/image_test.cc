// Goal: of what a folder or a tar holds, exactly the image that was asked for is taken, and every
// digest on the way is checked.
// Method: OCI and docker archives written here, whole and with each part changed.

#include "unpack/image.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "os/memory_file.h"
#include "unpack/tar_writer_test.h"

namespace ringfence::image {
namespace {

struct Parts {
  std::string layer = TarWriter().File("f", "data").Folder("work").Take();
  std::string config = "{\"os\":\"linux\",\"architecture\":\"" + std::string(kArchitecture) +
                       "\",\"config\":{\"Env\":[\"A=1\",\"bad-name=2\"],\"WorkingDir\":\"/work\"},"
                       "\"rootfs\":{\"diff_ids\":[\"" +
                       DigestText(layer) + "\"]}}";
  std::string manifest() const {
    return "{\"config\":{\"digest\":\"" + DigestText(config) + "\"},\"layers\":[{\"digest\":\"" +
           DigestText(layer) + "\"}]}";
  }
};

std::string Entry(const std::string& blob, const std::string& name,
                  const std::string& architecture = std::string(kArchitecture)) {
  return "{\"digest\":\"" + DigestText(blob) +
         "\",\"annotations\":{\"org.opencontainers.image.ref.name\":\"" + name +
         "\"},\"platform\":{\"os\":\"linux\",\"architecture\":\"" + architecture + "\"}}";
}

void AddBlob(TarWriter& tar, const std::string& blob) {
  tar.File("blobs/sha256/" + DigestText(blob).substr(7), blob);
}

TarWriter Whole(const Parts& parts, const std::string& entries) {
  TarWriter tar;
  tar.File("index.json", "{\"manifests\":[" + entries + "]}");
  for (const std::string& blob : {parts.manifest(), parts.config, parts.layer}) {
    AddBlob(tar, blob);
  }
  return tar;
}

Result<Report> Take(const TarWriter& tar, const Wanted& wanted = {}) {
  const auto file = os::MakeMemoryFile("image", AsBytes(tar.Take()));
  RINGFENCE_ASSIGN(const auto source, SourceOfTar(file->get()));
  RINGFENCE_ASSIGN(const Found found, FindImage(*source, wanted));
  std::string folder = testing::TempDir() + "/tree.XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  RINGFENCE_ASSIGN(os::Tree tree, os::Tree::Open(folder));
  auto report = UnpackImage(*source, found, tree, Limits());
  std::filesystem::remove_all(folder);
  return report;
}

TEST(Image, AnOciArchive) {
  const Parts parts;
  const auto report = Take(Whole(parts, Entry(parts.manifest(), "v1")));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->digest, DigestText(parts.manifest()));
  EXPECT_EQ(report->names, std::vector<std::string>{"v1"});
  EXPECT_EQ(report->working_folder, "/work");
  ASSERT_EQ(report->environment.size(), 1U);
  EXPECT_EQ(report->environment[0].first, "A");
  const auto again = ReportFromJson(ReportToJson(*report));
  ASSERT_TRUE(again.has_value()) << again.error().message;
  Json forged = ReportToJson(*report);
  forged.get_object()["digest"] = "sha256:" + std::string(64, '0');
  EXPECT_FALSE(ReportFromJson(forged).has_value());
}

TEST(Image, TheOneThatWasAskedFor) {
  const Parts parts;
  Parts other;
  other.config += " ";
  TarWriter tar = Whole(parts, Entry(parts.manifest(), "v1") + "," + Entry(other.manifest(), "v2"));
  AddBlob(tar, other.manifest());
  AddBlob(tar, other.config);
  EXPECT_NE(Take(tar).error().message.find("several"), std::string::npos);
  EXPECT_EQ(Take(tar, {"v2", ""}).value().digest, DigestText(other.manifest()));
  EXPECT_EQ(Take(tar, {"", DigestText(parts.manifest())}).value().names[0], "v1");
  EXPECT_EQ(Take(tar, {"", "sha256:" + std::string(64, '1')}).error().code, Code::kCorrupt);
  EXPECT_FALSE(Take(tar, {"v3", ""}).has_value());
}

TEST(Image, AnIndexOfSeveralMachines) {
  const Parts parts;
  const std::string inner =
      "{\"manifests\":[" + Entry(parts.manifest(), "") + "," + Entry("other", "", "s390x") + "]}";
  TarWriter tar = Whole(parts,
                        "{\"mediaType\":\"application/vnd.oci.image.index.v1+json\","
                        "\"digest\":\"" +
                            DigestText(inner) + "\"}");
  AddBlob(tar, inner);
  EXPECT_EQ(Take(tar).value().digest, DigestText(parts.manifest()));
  EXPECT_TRUE(Take(tar, {"", DigestText(inner)}).has_value()) << "pinned by its index";
  EXPECT_TRUE(Take(tar, {"", DigestText(parts.manifest())}).has_value());
  EXPECT_FALSE(Take(tar, {"", "sha256:" + std::string(64, '1')}).has_value());
}

TEST(Image, EveryPartIsChecked) {
  const Parts good;
  for (int part = 0; part < 3; ++part) {
    TarWriter tar;
    tar.File("index.json", "{\"manifests\":[" + Entry(good.manifest(), "v1") + "]}");
    int number = 0;
    for (const std::string& blob : {good.manifest(), good.config, good.layer}) {
      tar.File("blobs/sha256/" + DigestText(blob).substr(7), number++ == part ? blob + " " : blob);
    }
    EXPECT_EQ(Take(tar).error().code, Code::kCorrupt) << part;
  }
  Parts lying;  // the layer is as the manifest says, and not as the configuration does
  const std::string config = lying.config;
  lying.layer = TarWriter().File("f", "other").Take();
  lying.config = config;
  EXPECT_EQ(Take(Whole(lying, Entry(lying.manifest(), ""))).error().code, Code::kCorrupt);
  Parts foreign;
  foreign.config.replace(foreign.config.find(kArchitecture), kArchitecture.size(), "s390x");
  EXPECT_NE(Take(Whole(foreign, Entry(foreign.manifest(), ""))).error().message.find("s390x"),
            std::string::npos);
}

TEST(Image, ADockerArchive) {
  const Parts parts;
  TarWriter tar;
  tar.File("manifest.json",
           "[{\"Config\":\"c.json\",\"RepoTags\":[\"a/b:1\"],\"Layers\":[\"x/layer.tar\"]}]");
  tar.File("c.json", parts.config).Link("x/layer.tar", "../y/layer.tar");
  tar.File("y/layer.tar", parts.layer);
  const auto report = Take(tar);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->digest, DigestText(parts.config));
  EXPECT_EQ(report->names[0], "a/b:1");
  EXPECT_TRUE(Take(tar, {"", DigestText(parts.config)}).has_value());
  EXPECT_FALSE(Take(tar, {"", DigestText("x")}).has_value());
}

TEST(Image, NotAnImage) {
  EXPECT_FALSE(Take(TarWriter().File("hello", "world")).has_value());
  EXPECT_FALSE(Take(TarWriter().File("index.json", "{")).has_value());
  EXPECT_FALSE(Take(TarWriter()).has_value());
}

}  // namespace
}  // namespace ringfence::image
