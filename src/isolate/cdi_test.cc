// Goal: CDI documents are read as their specification says, ours give a lease's devices and nothing
// else, and a folder that others write to is brought in step without touching what is theirs.
// Method: the specification's own cases; every member of a document broken in turn; a real folder
// with foreign, claiming, changed, linked and half-written files, and one that others can change.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "isolate/cdi_folder.h"
#include "isolate/cdi_spec.h"
#include "os/beneath.h"
#include "os/file.h"

namespace ringfence::isolate {
namespace {

Json Parse(std::string_view text) { return ParseJson(text, kCdiBytesMax).value(); }

std::string Vectors() { return std::string(RINGFENCE_SOURCE_DIR) + "/tests/vectors/cdi"; }

TEST(CdiSpecTest, TheSpecificationsOwnCases) {
  std::map<std::string, int> seen;
  for (const auto& entry : std::filesystem::directory_iterator(Vectors() + "/cases")) {
    const Json json = Parse(os::ReadText(entry.path(), kCdiBytesMax).value());
    const std::string kind(json.at("kind").as_string());
    const bool valid = json.at("valid").as_bool();
    ++seen[kind];
    if (kind == "document") {
      const auto read = ReadCdi(json.at("document"));
      EXPECT_EQ(read.has_value(), valid) << entry.path();
      if (!read.has_value()) {
        EXPECT_FALSE(read.error().field.empty() && read.error().message.empty()) << entry.path();
      }
    } else if (kind == "qualified-name") {
      const auto name = ParseCdiName(std::string(json.at("input").as_string()));
      ASSERT_EQ(name.has_value(), valid) << entry.path();
      if (valid) {
        EXPECT_EQ(name->vendor, json.at("vendor").as_string());
        EXPECT_EQ(name->device_class, json.at("class").as_string());
        EXPECT_EQ(name->device, json.at("device").as_string());
      }
    } else if (kind == "minimum-version") {
      JsonObject document = json.at("spec").as_object();
      document["cdiVersion"] = "1.0.0";
      document["kind"] = "vendor.com/device";
      document["devices"] = Parse(R"([{"name":"dev","containerEdits":{"env":["FOO=BAR"]}}])");
      EXPECT_EQ(LeastCdiVersion(ReadCdi(document).value()), json.at("version").as_string());
    }
  }
  EXPECT_EQ(seen["document"], 12);
  EXPECT_EQ(seen["qualified-name"], 4);
  EXPECT_EQ(seen["minimum-version"], 1);
  for (const char* good : {"minimal", "spec-example"}) {
    const auto read = ReadCdi(Parse(
        os::ReadText(Vectors() + "/schema/testdata/good/" + good + ".json", kCdiBytesMax).value()));
    EXPECT_TRUE(read.has_value()) << good << ": " << read.error().message;
  }
}

TEST(CdiSpecTest, WhatIsWrongIsNamed) {
  const std::string good =
      R"({"cdiVersion":"0.5.0","kind":"v.com/c","devices":[{"name":"d","containerEdits":)"
      R"({"deviceNodes":[{"path":"/dev/x","hostPath":"/dev/y","type":"c","major":1,"minor":2,)"
      R"("fileMode":438,"uid":0,"gid":0,"permissions":"rw"}],"mounts":[{"hostPath":"/a",)"
      R"("containerPath":"/b","options":["ro"]}],"hooks":[{"hookName":"prestart","path":"/h",)"
      R"("args":["h"],"env":["A=b"],"timeout":3}],"additionalGids":[4]}}]})";
  ASSERT_TRUE(ReadCdi(Parse(good)).has_value()) << ReadCdi(Parse(good)).error().message;
  EXPECT_EQ(LeastCdiVersion(ReadCdi(Parse(good)).value()), "0.7.0");
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto read = ReadCdi(Parse(text));
    return read.has_value() ? std::string("accepted") : read.error().message;
  };
  EXPECT_NE(with("0.5.0", "0.5").find("cdiVersion"), std::string::npos);
  EXPECT_NE(with("v.com/c", "v.com").find("kind"), std::string::npos);
  EXPECT_NE(with(R"("name":"d")", R"("name":"-d")").find("devices[0].name"), std::string::npos);
  EXPECT_NE(with(R"("path":"/dev/x")", R"("path":"")").find("deviceNodes[0].path"),
            std::string::npos);
  EXPECT_NE(with(R"("type":"c")", R"("type":"cc")").find("deviceNodes[0].type"), std::string::npos);
  EXPECT_NE(with(R"("permissions":"rw")", R"("permissions":"rx")").find("permissions"),
            std::string::npos);
  EXPECT_NE(with(R"("hostPath":"/a")", R"("hostPath":"")").find("mounts[0].hostPath"),
            std::string::npos);
  EXPECT_NE(with("prestart", "prestop").find("hooks[0].hookName"), std::string::npos);
  EXPECT_NE(with("A=b", "=b").find("hooks[0].env"), std::string::npos);
  EXPECT_NE(with("[4]", "[-4]").find("additionalGids[0]"), std::string::npos);
  EXPECT_NE(with(R"("gid":0)", R"("gib":0)").find("gib"), std::string::npos) << "unknown member";
}

LeaseSpec ExampleSpec() {
  LeaseSpec spec;
  spec.lease = "lease-abc";
  spec.files.nodes = {{"/dev/nvidia3", 195, 3}, {"/dev/nvidiactl", 195, 255}};
  spec.files.mounts = {{"/host/lib", "/run/ringfence/driver/lib", false, false},
                       {"/host/memory", "/run/ringfence/driver/memory", true, true}};
  spec.files.library_folders = {"/run/ringfence/driver/lib"};
  spec.hook = "/usr/lib/ringfence/ringfence-hook";
  spec.held_folder = "/var/lib/ringfence/node/jailer/cdi";
  return spec;
}

TEST(CdiSpecTest, OursGivesTheLeasesDevicesAndNothingElse) {
  const std::string text = WriteCdi(ExampleSpec());
  EXPECT_EQ(text, WriteCdi(ExampleSpec()));
  const auto read = ReadCdi(Parse(text));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->kind, kCdiKind);
  EXPECT_EQ(read->version, "0.5.0");
  EXPECT_LE(LeastCdiVersion(*read), "0.5.0");
  EXPECT_TRUE(read->edits.empty()) << "nothing for whoever takes no lease";
  ASSERT_EQ(read->devices.size(), 1U);
  EXPECT_EQ(read->devices[0].name, "lease-abc");
  std::set<std::pair<std::int64_t, std::int64_t>> nodes;
  for (const CdiNode& node : read->devices[0].edits.nodes) {
    nodes.insert({node.major, node.minor});
    EXPECT_EQ(node.permissions, "rw") << "no right to make nodes";
  }
  EXPECT_EQ(nodes, (std::set<std::pair<std::int64_t, std::int64_t>>{{195, 3}, {195, 255}}));
  EXPECT_EQ(read->devices[0].edits.hook_paths,
            std::vector<std::string>{"/usr/lib/ringfence/ringfence-hook"});
  EXPECT_EQ(ParseCdiName(CdiDeviceName("lease-abc"))->device, "lease-abc");
}

class CdiFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root, whose folder it is";
    }
    char name[] = "/tmp/ringfence-cdi-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    ASSERT_EQ(chmod(name, 0755), 0);
    sync_.folder = folder_;
    sync_.wanted["lease-a"] = WriteCdi(ExampleSpec());
  }
  void TearDown() override {
    if (!folder_.empty()) {
      std::filesystem::remove_all(folder_);
    }
  }

  void Put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }
  std::map<std::string, CdiFinding> Sync() {
    std::map<std::string, CdiFinding> found;
    const auto files = SyncCdiFolder(sync_);
    EXPECT_TRUE(files.has_value()) << files.error().message;
    for (const CdiFile& file : files.has_value() ? *files : std::vector<CdiFile>()) {
      EXPECT_TRUE(found.emplace(file.name, file.finding).second) << file.name;
    }
    return found;
  }
  std::string Read(const std::string& name) {
    const auto text = os::ReadText(folder_ + "/" + name, kCdiBytesMax);
    return text.has_value() ? *text : "(none)";
  }

  using Found = std::map<std::string, CdiFinding>;
  static constexpr const char* kOurs = "ringfence-lease-a.json";
  std::string folder_;
  CdiSync sync_;
};

TEST_F(CdiFolderTest, WritesWhatIsMissingAndRemovesWhatIsStale) {
  EXPECT_EQ(Sync(), (Found{{kOurs, CdiFinding::kMissing}}));
  EXPECT_EQ(Read(kOurs), sync_.wanted["lease-a"]);
  EXPECT_EQ(Sync(), (Found{{kOurs, CdiFinding::kInStep}}));
  sync_.wanted.clear();
  sync_.repair = false;
  EXPECT_EQ(Sync(), (Found{{kOurs, CdiFinding::kStale}}));
  EXPECT_NE(Read(kOurs), "(none)") << "only looked at";
  sync_.repair = true;
  EXPECT_EQ(Sync(), (Found{{kOurs, CdiFinding::kStale}}));
  EXPECT_EQ(Sync(), Found{});
}

TEST_F(CdiFolderTest, WhatOthersChangedIsWrittenAnew) {
  (void)Sync();
  const std::string path = folder_ + "/" + kOurs;
  const std::vector<std::function<void()>> tampers = {
      [&] { Put(kOurs, "{}"); },
      [&] { ASSERT_EQ(chmod(path.c_str(), 0666), 0); },
      [&] { ASSERT_EQ(chown(path.c_str(), 1, 1), 0); },
      [&] {
        ASSERT_EQ(rename(path.c_str(), (folder_ + "/other").c_str()), 0);
        ASSERT_EQ(symlink("other", path.c_str()), 0);
      },
  };
  for (std::size_t i = 0; i < tampers.size(); ++i) {
    tampers[i]();
    EXPECT_EQ(Sync(), (Found{{kOurs, CdiFinding::kChanged}})) << i;
    EXPECT_EQ(Sync(), (Found{{kOurs, CdiFinding::kInStep}})) << i;
    EXPECT_EQ(Read(kOurs), sync_.wanted["lease-a"]) << i;
  }
  ASSERT_EQ(unlink(path.c_str()), 0);
  ASSERT_EQ(mkdir(path.c_str(), 0755), 0);
  EXPECT_EQ(Sync(), (Found{{kOurs, CdiFinding::kClaimed}}));
  EXPECT_EQ(Read(kOurs), sync_.wanted["lease-a"]);
}

TEST_F(CdiFolderTest, WhatIsOthersIsLeftAloneUnlessItClaimsToBeOurs) {
  const std::string foreign =
      R"({"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[{"name":"0",)"
      R"("containerEdits":{"env":["A=b"]}}]})";
  std::string claim = foreign;
  claim.replace(claim.find("nvidia.com/gpu"), 14, "ringfence.dev/lease");
  std::string escaped = foreign;
  escaped.replace(escaped.find("nvidia.com/gpu"), 14, "ringfence\\u002edev/lease");
  Put("nvidia.json", foreign);
  Put("nvidia.yaml", "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n");
  Put("broken.json", "{");
  Put("odd.json", R"({"cdiVersion":"9.9.9"})");
  Put("notes.txt", claim);
  Put("mine.json", claim);
  Put("escaped.json", escaped);
  Put("mine.yaml", "cdiVersion: 0.5.0\nkind: ringfence.dev/lease\n");
  Put("hidden.yaml", "cdiVersion: 0.5.0\nkind: \"ringf\\x65nce.dev/lease\"\n");
  ASSERT_EQ(symlink("/etc/hostname", (folder_ + "/link.json").c_str()), 0);
  EXPECT_EQ(Sync(), (Found{{kOurs, CdiFinding::kMissing},
                           {"nvidia.json", CdiFinding::kForeign},
                           {"nvidia.yaml", CdiFinding::kForeign},
                           {"broken.json", CdiFinding::kUnclear},
                           {"odd.json", CdiFinding::kUnclear},
                           {"link.json", CdiFinding::kUnclear},
                           {"mine.json", CdiFinding::kClaimed},
                           {"escaped.json", CdiFinding::kClaimed},
                           {"mine.yaml", CdiFinding::kClaimed},
                           {"hidden.yaml", CdiFinding::kClaimed}}));
  EXPECT_EQ(Read("nvidia.json"), foreign);
  EXPECT_EQ(Read("notes.txt"), claim);
  EXPECT_EQ(Read("mine.json"), "(none)");
  EXPECT_EQ(Read("mine.json.refused-by-ringfence"), claim) << "kept for whoever looks into it";
  EXPECT_EQ(Sync().size(), 6U) << "the claims are gone, the rest is as it was";
}

TEST_F(CdiFolderTest, AFolderThatOthersCanChangeIsRefused) {
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  const auto files = SyncCdiFolder(sync_);
  ASSERT_FALSE(files.has_value());
  EXPECT_EQ(files.error().code, Code::kFailedPrecondition);
  EXPECT_NE(files.error().message.find("others than root"), std::string::npos);
  EXPECT_FALSE(WriteCdiFile(folder_, "lease-a", "x").has_value());
  EXPECT_EQ(Read(kOurs), "(none)");
  Put(kOurs, "x");
  EXPECT_TRUE(RemoveCdiFile(folder_, "lease-a").has_value()) << "what is ours never stays";
  EXPECT_EQ(Read(kOurs), "(none)");
}

TEST_F(CdiFolderTest, WhatAKilledWriterLeftIsRemoved) {
  Put(os::StagedName(kOurs), "half a docum");
  EXPECT_EQ(Sync(),
            (Found{{os::StagedName(kOurs), CdiFinding::kLeftover}, {kOurs, CdiFinding::kMissing}}));
  EXPECT_EQ(Sync(), (Found{{kOurs, CdiFinding::kInStep}}));
}

TEST_F(CdiFolderTest, ALeaseThatEndsWhileItIsWrittenLeavesNothing) {
  int asked = 0;
  sync_.still_held = [&](const std::string&) { return ++asked == 1; };
  (void)Sync();
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(Read(kOurs), "(none)");
}

}  // namespace
}  // namespace ringfence::isolate
