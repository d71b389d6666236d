// Goal: a lease is never placed on a GPU that is not free and clean on a ready node, quotas hold at
// every level, and the life of a lease allows only its own steps.
// Method: all small fleets at random against a plain count; every state pair; every ending line.

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "lease/life.h"
#include "lease/placement.h"

namespace ringfence::lease {
namespace {

constexpr Timestamp kNow{Milliseconds(1'000'000'000)};

model::Node NodeNamed(const std::string& name, bool silent = false, bool incapable = false) {
  model::Node node;
  node.name = name;
  node.last_seen = silent ? Timestamp() : kNow;
  if (incapable) {
    node.missing = {"not root"};
  }
  return node;
}

TEST(PlacementTest, OnlyFreeGpusOfReadyNodesAndNeverTooFew) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    Fleet fleet;
    fleet.now = kNow;
    std::size_t best = 0;
    std::size_t largest = 0;
    std::set<std::string> usable;
    const unsigned nodes = random() % 4;
    for (unsigned n = 0; n < nodes; ++n) {
      const std::string name = "n" + std::to_string(n);
      fleet.nodes.push_back(NodeNamed(name, random() % 4 == 0, random() % 4 == 0));
      const bool ready = fleet.nodes.back().last_seen == kNow && fleet.nodes.back().missing.empty();
      std::size_t free = 0;
      std::size_t total = 0;
      for (unsigned g = 0; g < random() % 5; ++g) {
        model::Gpu gpu;
        gpu.uuid = "GPU-" + name + "-" + std::to_string(g);
        gpu.node = name;
        gpu.state = static_cast<model::GpuState>(random() % 5);
        total += gpu.state != model::GpuState::kLost;
        if (gpu.state == model::GpuState::kFree && ready) {
          ++free;
          usable.insert(gpu.uuid);
        }
        fleet.gpus.push_back(gpu);
      }
      best = std::max(best, free);
      largest = std::max(largest, total);
    }
    const unsigned wanted = 1 + random() % 4;
    const auto placed = Place(wanted, fleet);
    EXPECT_EQ(placed.has_value(), best >= wanted);
    if (placed.has_value()) {
      EXPECT_EQ(placed->gpus.size(), wanted);
      EXPECT_EQ(std::set<std::string>(placed->gpus.begin(), placed->gpus.end()).size(), wanted);
      for (const std::string& uuid : placed->gpus) {
        EXPECT_TRUE(usable.contains(uuid));
        EXPECT_TRUE(uuid.starts_with("GPU-" + placed->node + "-"));
      }
    } else {
      EXPECT_EQ(placed.error().code, !fleet.nodes.empty() && wanted > largest
                                         ? Code::kInvalidArgument
                                         : Code::kUnavailable);
      EXPECT_FALSE(placed.error().hint.empty());
    }
  }
}

TEST(PlacementTest, QuotasHoldAtEveryLevel) {
  const auto policy = policy::Policy::Parse({{"p.yaml", R"(apiVersion: ringfence.dev/v1
kind: Tenant
metadata: {name: acme}
spec: {}
---
apiVersion: ringfence.dev/v1
kind: Tenant
metadata: {name: acme/a}
spec: {}
---
apiVersion: ringfence.dev/v1
kind: Tenant
metadata: {name: acme/b}
spec: {}
---
apiVersion: ringfence.dev/v1
kind: Principal
metadata: {name: admin}
spec: {kind: user}
---
apiVersion: ringfence.dev/v1
kind: Binding
metadata: {name: b}
spec: {principal: admin, role: admin, tenant: /}
---
apiVersion: ringfence.dev/v1
kind: Quota
metadata: {name: q}
spec: {tenant: acme, gpus: 3}
---
apiVersion: ringfence.dev/v1
kind: Quota
metadata: {name: q2}
spec: {tenant: acme/a, gpus: 2}
)"}});
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  std::vector<model::Lease> open;
  const auto a = model::TenantPath::Create("acme/a").value();
  const auto b = model::TenantPath::Create("acme/b").value();
  EXPECT_TRUE(CheckQuotas(**policy, a, 2000, open).has_value());
  EXPECT_FALSE(CheckQuotas(**policy, a, 3000, open).has_value());
  EXPECT_TRUE(CheckQuotas(**policy, b, 3000, open).has_value());
  model::Lease lease;
  lease.request.tenant = b;
  lease.gpus = {"GPU-0", "GPU-1"};
  open.push_back(lease);
  EXPECT_TRUE(CheckQuotas(**policy, a, 1000, open).has_value());
  const Status over = CheckQuotas(**policy, a, 2000, open);
  ASSERT_FALSE(over.has_value());
  EXPECT_EQ(over.error().code, Code::kExhausted);
  EXPECT_NE(over.error().message.find("p.yaml:"), std::string::npos);
  open[0].ended = kNow;
  EXPECT_TRUE(CheckQuotas(**policy, a, 2000, open).has_value())
      << "being scrubbed is not being held";
}

TEST(PlacementTest, ANodeThatMayNotBeSharedIsBarredWhileSomebodyIsThere) {
  const auto policy = policy::Policy::Parse({{"p.yaml", R"(apiVersion: ringfence.dev/v1
kind: Tenant
metadata: {name: acme}
spec: {}
---
apiVersion: ringfence.dev/v1
kind: Tenant
metadata: {name: globex}
spec: {}
---
apiVersion: ringfence.dev/v1
kind: Principal
metadata: {name: admin}
spec: {kind: user}
---
apiVersion: ringfence.dev/v1
kind: Binding
metadata: {name: b}
spec: {principal: admin, role: admin, tenant: /}
---
apiVersion: ringfence.dev/v1
kind: Boundary
metadata: {name: apart}
spec: {between: [acme, globex], least: node}
)"}});
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  const auto acme = model::TenantPath::Create("acme").value();
  const auto globex = model::TenantPath::Create("globex").value();
  model::Lease lease;
  lease.request.tenant = globex;
  lease.node = "n1";
  Fleet fleet;
  fleet.now = kNow;
  fleet.nodes = {NodeNamed("n1")};
  model::Gpu gpu;
  gpu.uuid = "GPU-1";
  gpu.node = "n1";
  gpu.state = model::GpuState::kFree;
  fleet.gpus = {gpu};
  EXPECT_TRUE(BarredNodes(**policy, globex, {lease}).empty()) << "with itself it may share";
  fleet.barred = BarredNodes(**policy, acme, {lease});
  const auto refused = Place(1, fleet);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("p.yaml:"), std::string::npos) << refused.error().message;
  fleet.barred = BarredNodes(**policy, acme, {});
  EXPECT_TRUE(Place(1, fleet).has_value());
}

TEST(PlacementTest, ANodeWhoseWallsLeakServesOneTenantAtATime) {
  const model::TenantPath acme = model::TenantPath::Create("acme").value();
  const model::TenantPath globex = model::TenantPath::Create("globex").value();
  const std::vector<store::LeakingNode> leaks = {{"n1", "ptrace", kNow}};
  model::Lease lease;
  lease.node = "n1";
  lease.request.tenant = globex;
  EXPECT_NE(LeakingNodes(leaks, acme, {lease})["n1"].find("ptrace"), std::string::npos);
  EXPECT_TRUE(LeakingNodes(leaks, globex, {lease}).empty()) << "with itself it may share";
  EXPECT_TRUE(LeakingNodes(leaks, acme, {}).empty()) << "nobody is there";
  EXPECT_TRUE(LeakingNodes({}, acme, {lease}).empty()) << "nothing leaked";
  lease.node = "n2";
  EXPECT_TRUE(LeakingNodes(leaks, acme, {lease}).empty()) << "another node";
}

TEST(LifeTest, AStepIsTakenOnlyWhereTheTableAllowsIt) {
  for (int from = 0; from <= static_cast<int>(model::LeaseState::kQuarantined); ++from) {
    for (int to = 0; to <= static_cast<int>(model::LeaseState::kQuarantined); ++to) {
      model::Lease lease;
      lease.state = static_cast<model::LeaseState>(from);
      const auto target = static_cast<model::LeaseState>(to);
      const bool allowed = model::MayFollow(lease.state, target);
      EXPECT_EQ(Step(lease, target, kNow, "why").has_value(), allowed);
      EXPECT_EQ(lease.state, allowed ? target : static_cast<model::LeaseState>(from));
      EXPECT_EQ(lease.steps.size(), allowed ? 1U : 0U);
    }
  }
  EXPECT_FALSE(model::MayFollow(model::LeaseState::kActive, model::LeaseState::kClosed))
      << "no lease that ran is closed without a scrub";
  EXPECT_FALSE(model::MayFollow(model::LeaseState::kEnding, model::LeaseState::kClosed));
  EXPECT_FALSE(model::MayFollow(model::LeaseState::kClosed, model::LeaseState::kActive));
}

TEST(LifeTest, Endings) {
  EXPECT_EQ(ParseEnding("exited 7")->exit_code, 7);
  EXPECT_EQ(ParseEnding("signalled 9")->exit_code, 137);
  EXPECT_EQ(ParseEnding("timeout")->exit_code, 124);
  EXPECT_EQ(ParseEnding("oom")->exit_code, 137);
  EXPECT_EQ(ParseEnding("failed no runc")->reason, "no runc");
  for (const char* bad :
       {"", "exited", "exited x", "exited -1", "exited 256", "exited 1 2", "gone"}) {
    EXPECT_FALSE(ParseEnding(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace ringfence::lease
