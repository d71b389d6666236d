// Goal: a folder with strange things in it is read as documented, and a large one at all.
// Method: real folders with links, pipes, hidden and huge files; ten thousand bindings.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>

#include "os/file.h"
#include "policy/policy.h"

namespace ringfence::policy {
namespace {

constexpr std::string_view kLeast =
    "--- {apiVersion: ringfence.dev/v1, kind: Principal, metadata: {name: a}, spec: {kind: user}}\n"
    "--- {apiVersion: ringfence.dev/v1, kind: Binding, metadata: {name: b},"
    " spec: {principal: a, role: admin, tenant: /}}\n";
constexpr std::string_view kTenant =
    "{apiVersion: ringfence.dev/v1, kind: Tenant, metadata: {name: t}, spec: {}}\n";

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    // Unique without the time or a process id: a name that did not exist.
    std::random_device random;
    folder_ = testing::TempDir() + "policy-" + std::to_string(random()) + std::to_string(random());
    ASSERT_TRUE(std::filesystem::create_directory(folder_));
    Write("policy.yaml", kLeast);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(os::WriteFile(folder_ + "/" + name, AsBytes(text)).has_value());
  }
  std::string LoadError() {
    const auto policy = Policy::Load(folder_);
    return policy.has_value() ? "" : policy.error().message;
  }
  std::string folder_;
};

TEST_F(FolderTest, ReadsBelowAndPassesOverWhatIsNotPolicy) {
  std::filesystem::create_directory(folder_ + "/teams");
  std::filesystem::create_directory(folder_ + "/.git");
  Write("teams/t.yml", kTenant);
  Write(".hidden.yaml", "[");
  Write(".git/x.yaml", "[");
  Write("README.md", "[");
  Write("x.yaml~", "[");
  const auto policy = Policy::Load(folder_);
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  ASSERT_EQ((*policy)->tenants().size(), 1U);
  EXPECT_EQ((*policy)->tenants()[0].source.file, "teams/t.yml");
}

TEST_F(FolderTest, LinksInsideAreReadAndLinksOutAreRefused) {
  namespace fs = std::filesystem;
  fs::create_directory(folder_ + "/.data");
  Write(".data/t.yaml", kTenant);
  fs::create_symlink(".data/t.yaml", folder_ + "/t.yaml");  // how Kubernetes mounts a ConfigMap
  const auto policy = Policy::Load(folder_);
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_EQ((*policy)->tenants().size(), 1U);
  fs::create_symlink("/etc/hostname", folder_ + "/out.yaml");
  EXPECT_EQ(LoadError(),
            "out.yaml: a link that leads out of the policy folder (put the file itself here)");
  fs::remove(folder_ + "/out.yaml");
  fs::create_symlink("..", folder_ + "/up");
  EXPECT_EQ(LoadError(), "up: a link to a folder (put the folder itself here)");
  fs::remove(folder_ + "/up");
  fs::create_symlink("nowhere", folder_ + "/gone.yaml");
  EXPECT_EQ(LoadError(), "gone.yaml: a link that leads nowhere (remove it or mend it)");
}

TEST_F(FolderTest, StrangeFoldersAreRefusedAndNeverBlock) {
  ASSERT_EQ(mkfifo((folder_ + "/pipe.yaml").c_str(), 0600), 0);
  EXPECT_EQ(LoadError(), "pipe.yaml: not a plain file (put a plain file here)");
  std::filesystem::remove(folder_ + "/pipe.yaml");
  Write("large.yaml", std::string((1 << 20) + 1, '#'));
  EXPECT_NE(LoadError().find("large.yaml: "), std::string::npos) << LoadError();
  std::filesystem::remove(folder_ + "/large.yaml");
  std::string deep = folder_;
  for (int i = 0; i < 10; ++i) {
    deep += "/d";
    std::filesystem::create_directory(deep);
  }
  EXPECT_EQ(LoadError(), "d/d/d/d/d/d/d/d/d/: folders nested deeper than 8 (flatten them)");
  EXPECT_EQ(Policy::Load(folder_ + "/absent").error().code, Code::kNotFound);
  EXPECT_EQ(Policy::Load(folder_ + "/policy.yaml").error().code, Code::kInvalidArgument);
}

TEST_F(FolderTest, EmptyFolder) {
  std::filesystem::remove(folder_ + "/policy.yaml");
  EXPECT_TRUE(LoadError().starts_with("policy folder: there is no document in it")) << LoadError();
}

TEST(DigestTest, DiffersForEveryChangeAndMove) {
  const std::string text(kLeast);
  const std::string digest = Policy::Parse({{"a.yaml", text}}).value()->digest();
  EXPECT_EQ(Policy::Parse({{"a.yaml", text}}).value()->digest(), digest);
  EXPECT_NE(Policy::Parse({{"b.yaml", text}}).value()->digest(), digest);
  EXPECT_NE(Policy::Parse({{"a.yaml", text + "\n"}}).value()->digest(), digest);
  EXPECT_NE(Policy::Parse({{"a.yaml", text}, {"b.yaml", ""}}).value()->digest(), digest);
}

TEST(ScaleTest, TenThousandBindings) {
  std::map<std::string, std::string> files{{"least.yaml", std::string(kLeast)}};
  const std::string head = "--- {apiVersion: ringfence.dev/v1, kind: ";
  for (int i = 0; i < 10000; ++i) {
    const std::string n = std::to_string(i);
    const std::string name = ", metadata: {name: p" + n + "}, spec: {";
    files["principals" + std::to_string(i / 5000) + ".yaml"] +=
        head + "Principal" + name + "kind: user}}\n";
    files["bindings" + std::to_string(i / 5000) + ".yaml"] +=
        head + "Binding" + name + "principal: p" + n + ", role: developer, tenant: t" +
        std::to_string(i % 100) + "}}\n";
  }
  for (int i = 0; i < 100; ++i) {
    files["tenants.yaml"] +=
        head + "Tenant, metadata: {name: t" + std::to_string(i) + "}, spec: {}}\n";
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto policy = Policy::Parse(files);
  const auto loaded = std::chrono::steady_clock::now();
  ASSERT_TRUE(policy.has_value()) << policy.error().message.substr(0, 500);
  EXPECT_EQ((*policy)->bindings().size(), 10001U);
  for (int i = 0; i < 10000; ++i) {
    const Query query{"p" + std::to_string(i), Action::kLeaseRequest,
                      model::TenantPath::Create("t" + std::to_string(i % 100)).value()};
    ASSERT_TRUE((*policy)->Decide(query).allowed);
  }
  const auto decided = std::chrono::steady_clock::now();
  // Shown, not asserted: times belong to the machine.
  const auto ms = [](auto span) {
    return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(span).count());
  };
  RecordProperty("load_ms", ms(loaded - begin));
  RecordProperty("decide_10000_ms", ms(decided - loaded));
  std::printf("load %d ms, 10000 decisions %d ms\n", ms(loaded - begin), ms(decided - loaded));
}

}  // namespace
}  // namespace ringfence::policy
