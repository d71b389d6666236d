// Goal: an exception is two people's, for a short time, for one tenant, and for nothing but
// host_network and host_pid.
// Method: one that is right, and each way of being wrong; its use on both sides of every edge.

#include "policy/exception.h"

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
kind: Tenant
metadata: {name: globex}
spec: {}
---
apiVersion: ringfence.dev/v1
kind: Principal
metadata: {name: alice}
spec: {kind: user}
---
apiVersion: ringfence.dev/v1
kind: Principal
metadata: {name: carol}
spec: {kind: user}
---
apiVersion: ringfence.dev/v1
kind: Principal
metadata: {name: ci}
spec: {kind: service}
---
apiVersion: ringfence.dev/v1
kind: Binding
metadata: {name: root}
spec: {principal: carol, role: admin, tenant: /}
---
apiVersion: ringfence.dev/v1
kind: Exception
metadata: {name: debug}
spec:
)";

// The spec with one line changed; an empty one is left out.
Result<std::unique_ptr<Policy>> With(const std::string& field, const std::string& value) {
  const std::pair<std::string, std::string> lines[] = {{"tenant", "acme"},
                                                       {"what", "[host_network]"},
                                                       {"reason", "the vendor's tool needs it"},
                                                       {"requestedBy", "alice"},
                                                       {"approvedBy", "carol"},
                                                       {"from", "2026-11-16T08:00:00Z"},
                                                       {"until", "2026-11-20T08:00:00Z"}};
  std::string text = kBase;
  for (const auto& [name, usual] : lines) {
    const std::string& written = name == field ? value : usual;
    text += written.empty() ? "" : "  " + name + ": " + written + "\n";
  }
  return Policy::Parse({{"all.yaml", text}});
}

Timestamp At(const char* text) { return ParseTime(text).value(); }
model::TenantPath Tenant(const char* text) { return model::TenantPath::Create(text).value(); }

TEST(Exception, WhatIsWrong) {
  const struct {
    const char* field;
    const char* value;
    const char* said;
  } cases[] = {
      {"what", "[privileged]", "is no exception that can be made"},
      {"what", "[host_ipc]", "is no exception that can be made"},
      {"what", "[]", "what"},
      {"what", "", "what"},
      {"approvedBy", "alice", "must not be who approves it"},
      {"approvedBy", "ci", "approved by people"},
      {"approvedBy", "mallory", "unknown principal"},
      {"requestedBy", "mallory", "unknown principal"},
      {"approvedBy", "", "approvedBy"},
      {"requestedBy", "", "requestedBy"},
      {"until", "2026-12-16T08:00:01Z", "more than 30 days"},
      {"until", "2026-11-16T08:00:00Z", "lies before from"},
      {"until", "2026-11-15T08:00:00Z", "lies before from"},
      {"until", "never", "is no time"},
      {"until", "", "until"},
      {"from", "", "from"},
      {"reason", "because", "is no reason"},
      {"reason", "", "reason"},
      {"tenant", "/", "tenant"},
      {"tenant", "acmee", "unknown tenant"},
  };
  for (const auto& one : cases) {
    const auto policy = With(one.field, one.value);
    ASSERT_FALSE(policy.has_value()) << one.field << ": " << one.value;
    EXPECT_NE(policy.error().message.find(one.said), std::string::npos)
        << one.field << ": " << one.value << "\n"
        << policy.error().message;
  }
  EXPECT_TRUE(With("until", "2026-12-16T08:00:00Z").has_value());  // 30 days
  EXPECT_TRUE(With("what", "[host_network, host_pid]").has_value());
}

TEST(Exception, ForItsTenantInItsTime) {
  const auto policy = With("", "").value();
  const Timestamp now = At("2026-11-18T00:00:00Z");
  const auto found = FindException(*policy, Tenant("acme/vision"), "debug", now);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_TRUE(found->host_network);
  EXPECT_FALSE(found->host_pid);
  EXPECT_EQ(found->approved_by, "carol");
  const auto code = [&](const char* tenant, const char* name, Timestamp time) {
    const auto result = FindException(*policy, Tenant(tenant), name, time);
    return result.has_value() ? Code::kInternal : result.error().code;
  };
  EXPECT_EQ(code("globex", "debug", now), Code::kPermissionDenied);
  EXPECT_EQ(code("acme", "debgu", now), Code::kNotFound);
  EXPECT_EQ(code("acme", "debug", At("2026-11-16T07:59:59.999Z")), Code::kPermissionDenied);
  EXPECT_EQ(code("acme", "debug", At("2026-11-16T08:00:00Z")), Code::kInternal);
  EXPECT_EQ(code("acme", "debug", At("2026-11-20T08:00:00Z")), Code::kPermissionDenied);
  EXPECT_EQ(ExceptionsInForce(*policy, now).size(), 1U);
  EXPECT_TRUE(ExceptionsInForce(*policy, At("2026-11-21T00:00:00Z")).empty());
  EXPECT_NE(found->Warning().find("acme have host_network until 2026-11-20"), std::string::npos)
      << found->Warning();
}

}  // namespace
}  // namespace ringfence::policy
