// Goal: what a tenant's boxes may have is what the policy's BoxRules say, from "/" down.
// Method: a small policy; requests on both sides of each rule; rules that are no rules.

#include "policy/box_rule.h"

#include <gtest/gtest.h>

#include "policy/policy.h"

namespace ringfence::policy {
namespace {

constexpr const char* kBase = R"(
apiVersion: ringfence.dev/v1
kind: Tenant
metadata: {name: acme}
spec: {}
---
apiVersion: ringfence.dev/v1
kind: Tenant
metadata: {name: acme/vision}
spec: {}
---
apiVersion: ringfence.dev/v1
kind: Principal
metadata: {name: root}
spec: {kind: user}
---
apiVersion: ringfence.dev/v1
kind: Binding
metadata: {name: root}
spec: {principal: root, role: admin, tenant: /}
)";

std::string Rule(const std::string& name, const std::string& spec) {
  return "---\napiVersion: ringfence.dev/v1\nkind: BoxRule\nmetadata: {name: " + name +
         "}\nspec:\n" + spec;
}

Result<std::unique_ptr<Policy>> Parse(const std::string& rules) {
  return Policy::Parse({{"all.yaml", kBase + rules}});
}

class BoxRuleTest : public ::testing::Test {
 protected:
  Status Check(const model::BoxRequest& box, bool pinned = false) {
    return CheckBox(*policy_, model::TenantPath::Create("acme/vision").value(), box, pinned);
  }
  std::unique_ptr<Policy> policy_ =
      Parse(Rule("everyone", "  tenant: /\n  shmMiB: 64\n  pinnedImages: required\n") +
            Rule("acme", "  tenant: acme\n  mounts: [data, \"scratch:rw\"]\n  hugepagesMiB: 2\n") +
            Rule("vision", "  tenant: acme/vision\n  shmMiB: 4096\n"))
          .value();
};

TEST_F(BoxRuleTest, ImagesByDigest) {
  model::BoxRequest box;
  EXPECT_TRUE(Check(box).has_value());
  box.image = "a:1";
  const Status refused = Check(box);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kPermissionDenied);
  EXPECT_NE(refused.error().message.find("all.yaml:"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(Check(box, true).has_value());
}

TEST_F(BoxRuleTest, DevicesThatPassTheFirewallNeedARule) {
  model::BoxRequest box;
  box.devices = {"rdma"};
  const Status refused = Check(box);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kPermissionDenied);
  EXPECT_NE(refused.error().hint.find("devices: [rdma]"), std::string::npos);
  policy_ = Parse(Rule("acme", "  tenant: acme\n  devices: [rdma]\n")).value();
  EXPECT_TRUE(Check(box).has_value());
  box.devices = {"rdma", "imex"};
  EXPECT_FALSE(Check(box).has_value());
  policy_ = Parse(Rule("other", "  tenant: acme\n  devices: [imex]\n") +
                  Rule("all", "  tenant: /\n  devices: [rdma]\n"))
                .value();
  EXPECT_TRUE(Check(box).has_value());
  const auto wrong = Parse(Rule("acme", "  tenant: acme\n  devices: [/dev/sda]\n"));
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().message.find("is no device of a fabric"), std::string::npos);
}

TEST_F(BoxRuleTest, MountsAddUpAndOnlyWhatIsNamed) {
  model::BoxRequest box;
  box.mounts = {{"data", "/d", false}, {"scratch", "/s", true}};
  EXPECT_TRUE(Check(box).has_value());
  box.mounts = {{"data", "/d", true}};
  EXPECT_FALSE(Check(box).has_value());
  box.mounts = {{"other", "/d", false}};
  EXPECT_FALSE(Check(box).has_value());
}

TEST_F(BoxRuleTest, TheLeastLimitHolds) {
  model::BoxRequest box;
  box.shm_bytes_max = std::uint64_t{64} << 20U;
  EXPECT_TRUE(Check(box).has_value());
  box.shm_bytes_max += 1;
  EXPECT_FALSE(Check(box).has_value()) << "a rule below cannot lift one above";
  box = {};
  box.huge_bytes_max = std::uint64_t{2} << 20U;
  EXPECT_TRUE(Check(box).has_value());
  EXPECT_FALSE(CheckBox(*Parse("").value(), model::TenantPath::Create("acme").value(), box, false)
                   .has_value())
      << "no rule, no huge pages";
}

TEST(BoxRules, WhatIsNoRule) {
  for (const char* spec : {"  tenant: acme\n  pinnedImages: yes\n", "  tenant: nowhere\n",
                           "  tenant: acme\n  x: 1\n", "  tenant: acme\n  mounts: [\"/etc\"]\n",
                           "  tenant: acme\n  shmMiB: lots\n", "  shmMiB: 1\n"}) {
    EXPECT_FALSE(Parse(Rule("r", spec)).has_value()) << spec;
  }
  EXPECT_FALSE(Parse(Rule("r", "  tenant: acme\n") + Rule("r", "  tenant: acme\n")).has_value());
}

TEST(MountRequests, PathsOfTheBoxOnly) {
  EXPECT_TRUE(model::CheckMount({"data", "/data/sets", false}).has_value());
  for (const char* path : {"", "/", "data", "/etc/x", "/usr", "/home", "/home/job/x", "/proc/1",
                           "/a/../b", "/a//b", "/a/", "/dev", "/run/ringfence", "/a/.", "/a:b"}) {
    EXPECT_FALSE(model::CheckMount({"data", path, false}).has_value()) << path;
  }
  EXPECT_TRUE(model::CheckMount({"data", "/etcetera", false}).has_value());
  for (const char* name : {"", "Data", "/etc", "a/b", "-a", "a.b"}) {
    EXPECT_FALSE(model::CheckMount({name, "/data", false}).has_value()) << name;
  }
}

}  // namespace
}  // namespace ringfence::policy
