// Goal: the sample folder means what it says, and every decision is right and explains itself.
// Method: a table of who may do what in the sample, and every principal, action and tenant held
// against a plain second reading of the bindings.

#include "policy/policy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policy/boundary.h"
#include "policy/roles.h"

namespace ringfence::policy {
namespace {

using model::IsolationClass;
using model::TenantPath;

TenantPath Path(std::string_view text) {
  return text == "/" ? TenantPath::Root() : TenantPath::Create(text).value();
}

class SampleTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = Policy::Load(std::string(RINGFENCE_SOURCE_DIR) + "/content/sample-policy");
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    policy_ = std::move(loaded).value();
  }
  Decision Decide(std::string_view principal, Action action, std::string_view tenant) {
    return policy_->Decide({std::string(principal), action, Path(tenant)});
  }
  std::unique_ptr<Policy> policy_;
};

TEST_F(SampleTest, HasTheTreeThatTheIssueAsksFor) {
  std::map<model::TenantKind, int> kinds;
  for (const Tenant& tenant : policy_->tenants()) {
    ++kinds[tenant.path.kind()];
  }
  EXPECT_EQ(kinds[model::TenantKind::kDepartment], 2);
  EXPECT_EQ(kinds[model::TenantKind::kTeam], 4);
  EXPECT_EQ(kinds[model::TenantKind::kProject], 6);
  EXPECT_EQ(policy_->principals().size(), 8U);
  EXPECT_EQ(policy_->roles().size(), 7U);
  ASSERT_NE(policy_->FindTenant(Path("acme/research/vision")), nullptr);
  EXPECT_EQ(policy_->FindTenant(Path("acme/research/vision"))->display_name,
            "Cameras that see defects");
  EXPECT_EQ(policy_->FindTenant(Path("acme/x")), nullptr);
  EXPECT_TRUE(policy_->FindPrincipal("vision-nightly")->service);
  EXPECT_FALSE(policy_->FindPrincipal("admin")->service);
  EXPECT_EQ(policy_->FindPrincipal("nobody"), nullptr);
  EXPECT_EQ(policy_->digest().size(), 64U);
  EXPECT_EQ(policy_->ClosestTenant("acme/reserch/vison"), "acme/research/vision");
  EXPECT_EQ(policy_->ClosestTenant("umbrella"), std::nullopt);
}

TEST_F(SampleTest, WhoMayDoWhat) {
  struct Row {
    std::string_view principal;
    Action action;
    std::string_view tenant;
    bool allowed;
  };
  using enum Action;
  const Row rows[] = {
      {"admin", kLeaseRequest, "acme/research/vision", true},
      {"admin", kTokenCreate, "/", true},
      {"admin", kAuditRead, "acme", true},  // about the cluster, whatever the tenant
      {"alice@acme.example", kLeaseRequest, "acme/research", true},
      {"alice@acme.example", kLeaseRequest, "acme/research/speech", true},
      {"alice@acme.example", kLeaseRequest, "acme", false},
      {"alice@acme.example", kLeaseRequest, "acme/finance/risk", false},
      {"alice@acme.example", kLeaseRead, "globex/genomics/folding", false},
      {"alice@acme.example", kTenantRead, "acme/research", true},
      {"alice@acme.example", kTenantRead, "/", false},
      {"alice@acme.example", kNodeRead, "/", true},
      {"alice@acme.example", kStatusRead, "/", true},
      {"alice@acme.example", kNodeJoin, "/", false},
      {"alice@acme.example", kGpuScrub, "acme/research", false},
      {"alice@acme.example", kTokenCreate, "acme/research", false},
      {"bob@acme.example", kLeaseEnd, "acme/research/vision", true},  // cost-controller at acme
      {"bob@acme.example", kLeaseLogs, "acme/research/vision", false},
      {"bob@acme.example", kLeaseLogs, "acme/finance/risk", true},
      {"bob@acme.example", kLeaseEnd, "globex/trading/pricing", false},
      {"grace@globex.example", kLeaseRequest, "globex/genomics/imaging", true},
      {"grace@globex.example", kLeaseRequest, "acme/research/vision", false},
      {"vision-nightly", kLeaseRequest, "acme/research/vision", true},
      {"vision-nightly", kLeaseRequest, "acme/research/speech", false},
      {"vision-nightly", kNodeRead, "/", false},  // the role service does not allow it
      {"amir@audit.example", kAuditRead, "/", true},
      {"amir@audit.example", kLeaseLogs, "globex/trading/pricing", true},
      {"amir@audit.example", kLeaseEnd, "globex/trading/pricing", false},
      {"amir@audit.example", kLeaseRequest, "acme", false},
      {"olga@ops.example", kNodeJoin, "/", true},
      {"olga@ops.example", kGpuScrub, "/", true},
      {"olga@ops.example", kLeaseLogs, "acme/research/vision", false},
      {"olga@ops.example", kAuditRead, "/", false},
      {"sam@security.example", kLeaseEnd, "globex/trading/pricing", true},
      {"sam@security.example", kPolicyApply, "/", false},
      {"sam@security.example", kAlertManage, "/", true},
      {"amir@audit.example", kAlertManage, "/", false},
      {"amir@audit.example", kEventRead, "/", true},
      {"alice@acme.example", kEventRead, "acme/research/vision", true},
      {"alice@acme.example", kEventRead, "globex/genomics", false},
      {"alice@acme.example", kEventRead, "/", false},
      {"alice@acme.example", kAlertRead, "acme/research", false},
      {"alice@acme.example", kUsageRead, "acme/research/vision", true},
      {"alice@acme.example", kUsageRead, "globex", false},
      {"olga@ops.example", kUsageRead, "globex/genomics", true},
      {"amir@audit.example", kUsageRead, "/", true},
      {"vision-nightly", kUsageRead, "acme/research/vision", false},
      {"mallory@acme.example", kStatusRead, "/", false},
      {"", kStatusRead, "/", false},
  };
  for (const Row& row : rows) {
    const Decision decision = Decide(row.principal, row.action, row.tenant);
    EXPECT_EQ(decision.allowed, row.allowed)
        << row.principal << ' ' << Name(row.action) << ' ' << row.tenant << ": " << decision.reason;
  }
}

TEST_F(SampleTest, ReasonsNameWhatDecidedAndTheNearest) {
  using enum Action;
  EXPECT_EQ(Decide("alice@acme.example", kLeaseRequest, "acme/research/vision").reason,
            "role developer at acme/research (bindings.yaml:42)");
  EXPECT_EQ(Decide("bob@acme.example", kLeaseEnd, "acme/finance/risk").reason,
            "role developer at acme/finance/risk (bindings.yaml:52)");
  EXPECT_EQ(Decide("bob@acme.example", kLeaseEnd, "acme/finance").reason,
            "role cost-controller at acme (bindings.yaml:62)");
  EXPECT_EQ(Decide("alice@acme.example", kLeaseRequest, "acme/finance").reason,
            "needs lease.request at acme/finance; alice@acme.example holds developer at "
            "acme/research (bindings.yaml:42); ask someone with admin at / (such as admin) for the "
            "role developer at acme/finance");
  EXPECT_EQ(Decide("bob@acme.example", kLeaseLogs, "acme/research").reason,
            "needs lease.logs at acme/research; bob@acme.example holds developer at "
            "acme/finance/risk (bindings.yaml:52); ask someone with admin at / (such as admin) for "
            "the role developer at acme/research");
  EXPECT_EQ(Decide("alice@acme.example", kTokenCreate, "/").reason,
            "needs token.create at /; alice@acme.example holds developer at acme/research "
            "(bindings.yaml:42); ask someone with admin at / (such as admin) to do it");
  EXPECT_EQ(Decide("vision-nightly", kStatusRead, "/").reason,
            "needs status.read at any tenant; vision-nightly holds service at acme/research/vision "
            "(bindings.yaml:80); ask someone with admin at / (such as admin) for the role "
            "cost-controller");
  EXPECT_EQ(
      Decide("olga@ops.example", kLeaseLogs, "acme").reason,
      "needs lease.logs at acme; olga@ops.example holds operator at / (bindings.yaml:14); ask "
      "someone with admin at / (such as admin) for the role developer at acme");
  EXPECT_EQ(Decide("mallory@acme.example", kStatusRead, "/").reason,
            "unknown principal: the policy does not declare mallory@acme.example");
  EXPECT_EQ(Decide("Mal\x1b[2J", kStatusRead, "/").reason, "unknown principal");
  EXPECT_EQ(Decide("admin", kLeaseRequest, "acme/reserch").reason,
            "unknown tenant acme/reserch (did you mean acme/research?)");
}

TEST_F(SampleTest, AgreesWithAPlainReadingOfTheBindingsEverywhere) {
  std::vector<TenantPath> places = {TenantPath::Root()};
  for (const Tenant& tenant : policy_->tenants()) {
    places.push_back(tenant.path);
  }
  std::map<std::string, Role> roles;
  for (const Role& role : policy_->roles()) {
    roles[role.name] = role;
  }
  int allowed_count = 0;
  for (const Principal& principal : policy_->principals()) {
    for (const Action action : AllActions()) {
      for (const TenantPath& place : places) {
        bool expected = false;
        for (const Binding& binding : policy_->bindings()) {
          const auto& allows = roles[binding.role].allows;
          const bool role_allows = std::find(allows.begin(), allows.end(), action) != allows.end();
          const bool reaches =
              ScopeOf(action) == ActionScope::kAnywhere ||
              (ScopeOf(action) == ActionScope::kCluster ? binding.tenant.is_root()
                                                        : binding.tenant.Contains(place));
          expected = expected || (binding.principal == principal.name && role_allows && reaches);
        }
        const Decision decision = policy_->Decide({principal.name, action, place});
        EXPECT_EQ(decision.allowed, expected) << principal.name << ' ' << Name(action);
        EXPECT_EQ(decision.reason.starts_with("role "), expected) << decision.reason;
        allowed_count += expected ? 1 : 0;
      }
    }
  }
  EXPECT_GT(allowed_count, 100);
}

TEST_F(SampleTest, QuotasFromTheTenantUp) {
  const auto quotas = policy_->QuotasOver(Path("acme/research/vision"));
  ASSERT_EQ(quotas.size(), 2U);
  EXPECT_EQ(quotas[0].tenant, Path("acme/research"));
  EXPECT_EQ(quotas[0].gpus_max, 4U);
  EXPECT_EQ(quotas[1].gpus_max, 6U);
  EXPECT_TRUE(policy_->QuotasOver(TenantPath::Root()).empty());
}

TEST_F(SampleTest, WhatLiesBetweenTwoTenants) {
  struct Row {
    std::string_view a, b;
    IsolationClass least;
    std::string_view reason;
  };
  using enum IsolationClass;
  const Row rows[] = {
      {"acme/research/vision", "acme/research/vision", kMps, "default within one tenant"},
      {"acme/research/vision", "acme/research/speech", kTime,
       "default between projects of one team"},
      {"acme/research", "acme/research/speech", kTime, "default between projects of one team"},
      {"acme", "acme/research", kMig, "default between teams"},
      {"globex/genomics", "globex/trading", kMig, "default between teams"},
      {"acme/research", "globex/genomics", kMig, "default between departments"},
      {"acme/research/vision", "acme/finance/risk", kTime,
       "boundary between acme/finance and acme/research (boundaries.yaml:24)"},
      {"acme/research/vision", "globex/trading/pricing", kGpu,
       "boundary between acme and globex/trading (boundaries.yaml:6)"},
      {"globex/genomics/folding", "globex/genomics/imaging", kMig,
       "boundary between globex/genomics/folding and globex/genomics/imaging (boundaries.yaml:15)"},
  };
  for (const Row& row : rows) {
    for (const auto& [a, b] : {std::pair(row.a, row.b), std::pair(row.b, row.a)}) {
      const IsolationDemand demand = LeastBetween(*policy_, Path(a), Path(b));
      EXPECT_EQ(demand.least, row.least) << a << ' ' << b;
      EXPECT_EQ(demand.reason, row.reason);
    }
  }
}

TEST(RolesTest, LabelsGoBothWaysAndDutiesStayApart) {
  for (const Action action : AllActions()) {
    EXPECT_EQ(ParseAction(Name(action)), action);
  }
  EXPECT_EQ(ParseAction("lease.Request"), std::nullopt);
  std::map<std::string, ActionBits> bits;
  for (const Role& role : BuiltInRoles()) {
    bits[role.name] = BitsOf(role.allows);
  }
  const ActionBits assets =
      BitsOf({Action::kAssetRead, Action::kAssetWrite, Action::kAssetCopy, Action::kAssetShare});
  EXPECT_EQ(bits["admin"], BitsOf(AllActions()) & ~assets);
  for (const Action action : AllActions()) {
    const std::string_view label = Name(action);
    const bool reads = (label.ends_with(".read") && label != "asset.read") || label == "lease.logs";
    EXPECT_EQ((bits["auditor"] & BitOf(action)) != 0, reads) << label;
    EXPECT_EQ((bits["security"] & BitOf(action)) != 0,
              reads || label == "lease.end" || label == "node.prove" || label == "alert.manage" ||
                  label == "node.quarantine" || label == "key.rotate" ||
                  label == "exception.grant" || label == "drill.run")
        << label;
  }
  for (const std::string role : {"operator", "developer", "service"}) {
    EXPECT_EQ(bits[role] & BitsOf({Action::kAuditRead, Action::kTokenCreate, Action::kPolicyApply}),
              0U);
  }
  EXPECT_EQ(bits["operator"] & BitsOf({Action::kLeaseRequest, Action::kLeaseLogs}), 0U);
}

constexpr std::string_view kLeast =
    "--- {apiVersion: ringfence.dev/v1, kind: Principal, metadata: {name: a}, spec: {kind: user}}\n"
    "--- {apiVersion: ringfence.dev/v1, kind: Binding, metadata: {name: b},"
    " spec: {principal: a, role: admin, tenant: /}}\n";
TEST(ScopeTest, ARoleBelowTheRootGivesNothingAboutTheCluster) {
  const std::string head = "--- {apiVersion: ringfence.dev/v1, kind: ";
  std::string text(kLeast);
  text += head + "Tenant, metadata: {name: t}, spec: {}}\n";
  text += head + "Principal, metadata: {name: c}, spec: {kind: user}}\n";
  text += head + "Binding, metadata: {name: c}, spec: {principal: c, role: admin, tenant: t}}\n";
  const auto policy = Policy::Parse({{"x.yaml", text}});
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  for (const Action action : AllActions()) {
    const std::string_view label = Name(action);
    const bool asset = label.starts_with("asset.");
    const bool cluster = label == "mig.reshape" || label == "node.quarantine" ||
                         label == "drill.run" || label == "node.join" || label == "gpu.scrub" ||
                         label == "node.prove" || label == "audit.read" || label == "assess.read" ||
                         label.starts_with("token.") || label.starts_with("policy.");
    const bool anywhere = label == "node.read" || label == "status.read";
    EXPECT_EQ((*policy)->Decide({"c", action, Path("t")}).allowed, !cluster && !asset) << label;
    EXPECT_EQ((*policy)->Decide({"c", action, Path("/")}).allowed, anywhere) << label;
  }
}

TEST(LeastBetweenTest, TheStrongestOfSeveralHolds) {
  const std::string head = "--- {apiVersion: ringfence.dev/v1, kind: ";
  std::string text(kLeast);
  for (const std::string name : {"t", "t/u", "v", "v/w"}) {
    text += head + "Tenant, metadata: {name: " + name + "}, spec: {}}\n";
  }
  const auto boundary = [&](std::string_view name, std::string_view spec) {
    return head + "Boundary, metadata: {name: " + std::string(name) + "}, spec: {" +
           std::string(spec) + "}}\n";
  };
  const std::string wide = boundary("wide", "between: [t, v], least: gpu");
  const std::string narrow = boundary("narrow", "between: [v/w, t/u], least: time");
  for (const std::string& order : {wide + narrow, narrow + wide}) {
    const auto policy = Policy::Parse({{"x.yaml", text + order}});
    ASSERT_TRUE(policy.has_value()) << policy.error().message;
    EXPECT_EQ(LeastBetween(**policy, Path("t/u"), Path("v/w")).least, IsolationClass::kGpu);
    EXPECT_EQ(LeastBetween(**policy, Path("t"), Path("v/w")).least, IsolationClass::kGpu);
  }
}

}  // namespace
}  // namespace ringfence::policy
