// Goal: a box of an image has the image and nothing of the host; what the grant does not say of
// image and mounts, nobody gets; an image that was changed is not run.
// Method: the real jailer, runtime and kernel (see harness_test.h), with images built here around
// Debian's static busybox and imported by the real worker.

#include <fstream>

#include "isolate/image_import.h"
#include "isolate/image_worker.h"
#include "jailer/harness_test.h"
#include "unpack/tar_writer_test.h"

namespace ringfence::jailer {
namespace {

constexpr const char* kBusybox = "/bin/busybox";
constexpr unsigned kUidBase = 1'000'000'000;  // the jailer's default

class ImageBoxTest : public JailerTest {
 protected:
  void SetUp() override {
    JailerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    if (!os::Exists(kBusybox)) {
      GTEST_SKIP() << "needs Debian's busybox-static";
    }
    place_.store = folder_ + "/private/state/images";
    place_.worker.program = Binary("ringfence-unpack");
    place_.worker.walls = isolate::WorkerWalls::kAll;
    place_.worker.uid = isolate::ImageUid(kUidBase);
  }

  // A docker archive of one layer, imported; returns its digest.
  std::string Import(const std::string& marker) {
    std::ifstream program(kBusybox, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(program), {}};
    image::TarWriter layer;
    layer.Folder("bin").File("bin/busybox", bytes, 04755).File("app/marker", marker);
    for (const char* name : {"sh", "cat", "ls", "touch", "env", "pwd", "mkdir", "id"}) {
      layer.Link(std::string("bin/") + name, "busybox");
    }
    layer.Link("etc/passwd", "/proc/1/environ").Link("run", "/app").File("home/job/x", "x");
    const std::string config =
        R"({"os":"linux","architecture":"amd64","config":{"Env":["PATH=/bin","COLOUR=red",)"
        R"("LD_PRELOAD=/x.so","NVIDIA_VISIBLE_DEVICES=all"],"WorkingDir":"/app"},"rootfs":)"
        R"({"diff_ids":[")" +
        image::DigestText(layer.Take()) + "\"]}}";
    image::TarWriter archive;
    archive.File("manifest.json", R"([{"Config":"c","RepoTags":["test:1"],"Layers":["l"]}])");
    archive.File("c", config).File("l", layer.Take());
    const std::string path = folder_ + "/private/" + marker + ".tar";
    std::ofstream(path, std::ios::binary) << archive.Take();
    const auto stored =
        isolate::ImportImage(place_, image::ParseSource(path, false).value(), {}, clock_);
    EXPECT_TRUE(stored.has_value()) << stored.error().message;
    return stored.has_value() ? stored->report.digest : "";
  }

  isolate::Grant ImageGrant(const std::string& digest, const std::string& script) {
    isolate::Grant grant = MakeGrant({"sh", "-c", script});
    grant.box.image = digest;
    return grant;
  }

  isolate::ImagePlace place_;
};

TEST_F(ImageBoxTest, TheBoxIsTheImage) {
  const std::string digest = Import("one");
  Start();
  const auto images = client_->Images();
  ASSERT_TRUE(images.has_value()) << images.error().message;
  ASSERT_EQ(images->size(), 1U);
  EXPECT_EQ((*images)[0].digest, digest);
  const Ran ran = Run(ImageGrant(
      digest,
      "pwd; cat marker; echo; env; ls /; ls -A /home/job; cat /etc/passwd; touch /app/x; "
      "touch /tmp/y && echo tmp; ls /run; ls -ln /bin/busybox; ls /dev"));
  EXPECT_EQ(ran.exit, "exited 0\n") << ran.err;
  EXPECT_TRUE(ran.out.starts_with("/app\none\n")) << ran.out;
  EXPECT_NE(ran.out.find("COLOUR=red\n"), std::string::npos);
  EXPECT_EQ(ran.out.find("LD_PRELOAD"), std::string::npos);
  EXPECT_EQ(ran.out.find("NVIDIA_VISIBLE"), std::string::npos);
  EXPECT_EQ(ran.out.find("usr\n"), std::string::npos) << "the host's /usr is not there";
  EXPECT_NE(ran.out.find("job:x:1000"), std::string::npos) << "the box's own passwd";
  EXPECT_NE(ran.out.find("tmp\n"), std::string::npos);
  EXPECT_NE(ran.out.find("-r-xr-xr-x"), std::string::npos) << ran.out;
  EXPECT_NE(ran.err.find("/app/x"), std::string::npos) << "the image cannot be written";
  EXPECT_FALSE(os::Exists(place_.store + "/sha256-" + digest.substr(7) + "/tree/app/x"));
  // A second box of the same image, with a GPU: the driver's files have their places.
  isolate::Grant grant = ImageGrant(digest, "ls /run/ringfence/driver /dev");
  grant.gpus = {Gpus()[0]};
  ASSERT_TRUE(client_->Scrub("", grant.gpus).has_value());
  const Ran with_gpu = Run(grant);
  EXPECT_EQ(with_gpu.exit, "exited 0\n") << with_gpu.err;
  EXPECT_NE(with_gpu.out.find("nvidia0"), std::string::npos) << with_gpu.out;
}

TEST_F(ImageBoxTest, WhatIsNotThereOrNotItselfIsNotRun) {
  const std::string digest = Import("two");
  Start();
  EXPECT_NE(Run(ImageGrant("sha256:" + std::string(64, '0'), "true")).exit.find("not on this node"),
            std::string::npos);
  const std::string tree = place_.store + "/sha256-" + digest.substr(7) + "/tree";
  std::ofstream(tree + "/app/more") << "x";
  EXPECT_NE(Run(ImageGrant(digest, "true")).exit.find("not what was imported"), std::string::npos);
  ASSERT_TRUE(os::RemoveFile(tree + "/app/more").has_value());
  EXPECT_EQ(Run(ImageGrant(digest, "true")).exit, "exited 0\n");
  // In use it stays; afterwards it goes.
  auto box = client_->Start(isolate::SealGrant(server_, ImageGrant(digest, "cat; sleep 100")));
  ASSERT_TRUE(box.has_value()) << box.error().message;
  image::Store store(place_.store);
  EXPECT_EQ(store.Remove(digest).error().code, Code::kConflict);
  const auto records = client_->List();
  for (const auto& record : *records) {
    (void)client_->End(record.lease);
  }
  (void)Collect(std::move(*box));
  EXPECT_TRUE(store.Remove(digest).has_value());
  EXPECT_FALSE(Run(ImageGrant(digest, "true")).exit.starts_with("exited"));
}

TEST_F(ImageBoxTest, MountsAndSizesAreTheGrants) {
  const std::string digest = Import("three");
  ASSERT_TRUE(os::MakeDirs(folder_ + "/data", 0755).has_value());
  ASSERT_TRUE(os::MakeDirs(folder_ + "/open", 0777).has_value());
  ASSERT_EQ(chmod((folder_ + "/open").c_str(), 0777), 0);
  std::ofstream(folder_ + "/data/set") << "dataset";
  mounts_ = "data=" + folder_ + "/data,open=" + folder_ + "/open:rw";
  Start();
  isolate::Grant grant =
      ImageGrant(digest, "cat /data/x/set; touch /data/x/y || echo ro; touch /mnt/z && echo rw");
  grant.box.mounts = {{"data", "/data/x", false}, {"open", "/mnt", true}};
  const Ran ran = Run(grant);
  EXPECT_EQ(ran.out, "datasetro\nrw\n") << ran.err;
  EXPECT_TRUE(os::Exists(folder_ + "/open/z"));
  grant = MakeGrant({"sh", "-c", "cat /data/x/set"});  // and without an image
  grant.box.mounts = {{"data", "/data/x", false}};
  EXPECT_EQ(Run(grant).out, "dataset");
  grant = MakeGrant({"true"});
  grant.box.mounts = {{"data", "/d", true}};
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, grant)), Code::kPermissionDenied);
  grant = MakeGrant({"true"});
  grant.box.mounts = {{"other", "/d", false}};
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, grant)), Code::kFailedPrecondition);
  grant = MakeGrant({"sh", "-c", "df -k --output=size /dev/shm /tmp"});
  grant.box.shm_bytes_max = std::uint64_t{8} << 20U;
  grant.box.tmp_bytes_max = std::uint64_t{16} << 20U;
  const Ran sizes = Run(grant);
  EXPECT_NE(sizes.out.find("8192"), std::string::npos) << sizes.out << sizes.err;
  EXPECT_NE(sizes.out.find("16384"), std::string::npos) << sizes.out;
}

TEST_F(ImageBoxTest, NoHugePagesUnlessTheyAreGranted) {
  Start();
  const Ran ran = Shell(
      "python3 -c 'import mmap,sys\n"
      "try:\n mmap.mmap(-1, 2<<20, flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS|0x40000)\n"
      "except OSError as e: print(e.errno)\n"
      "mmap.mmap(-1, 2<<20); print(\"plain\")'");
  EXPECT_EQ(ran.out, "1\nplain\n") << ran.err;
}

TEST_F(ImageBoxTest, TenantsHaveRangesOfTheirOwn) {
  Start();
  const auto base = [&](const std::string& tenant) {
    isolate::Grant grant = MakeGrant({"cat", "/proc/self/uid_map"});
    grant.tenant = tenant;
    return Run(grant).out;
  };
  const std::string acme = base("acme");
  const std::string globex = base("globex");
  EXPECT_NE(acme, globex);
  EXPECT_EQ(base("acme"), acme);
  EXPECT_EQ(base("globex"), globex);
}

}  // namespace
}  // namespace ringfence::jailer
