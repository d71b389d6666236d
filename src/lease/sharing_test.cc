// Goal: no share crosses a boundary, mixes classes, sits beside a whole lease or over-commits a
// GPU, and none is refused where one could be. Method: random small clusters filled share by share,
// against a plain check of every promise.

#include "lease/sharing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "policy/boundary.h"

namespace ringfence::lease {
namespace {

constexpr Timestamp kNow{Milliseconds(1'000'000'000)};
constexpr std::uint64_t kMib = 1U << 20U;

constexpr const char* kPolicy = R"(apiVersion: ringfence.dev/v1
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
metadata: {name: acme/a/x}
spec: {}
---
apiVersion: ringfence.dev/v1
kind: Tenant
metadata: {name: acme/a/y}
spec: {}
---
apiVersion: ringfence.dev/v1
kind: Tenant
metadata: {name: acme/a/secret}
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
kind: Boundary
metadata: {name: apart}
spec: {between: [acme/a/secret, acme/a/x], least: gpu}
)";

model::LeaseRequest Wants(const std::string& tenant, std::uint64_t mib,
                          model::IsolationClass isolation = model::IsolationClass::kTime) {
  model::LeaseRequest request;
  request.tenant = model::TenantPath::Create(tenant).value();
  request.command = {"true"};
  request.share = model::ShareRequest{isolation, mib * kMib, 0};
  return request;
}

model::Lease Has(const std::string& id, const model::LeaseRequest& request,
                 const Placement& placement) {
  model::Lease lease;
  lease.id = id;
  lease.request = request;
  lease.node = placement.node;
  lease.gpus = placement.gpus;
  lease.state = model::LeaseState::kActive;
  return lease;
}

struct Cluster {
  std::shared_ptr<const policy::Policy> policy;
  Fleet fleet;
  std::vector<model::Lease> open;
  std::map<std::string, std::string> leaks;

  Cluster(std::size_t nodes, std::size_t gpus) {
    auto parsed = policy::Policy::Parse({{"p.yaml", kPolicy}});
    EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
    policy = std::move(*parsed);
    fleet.now = kNow;
    for (std::size_t n = 0; n < nodes; ++n) {
      model::Node node;
      node.name = "n" + std::to_string(n);
      node.last_seen = kNow;
      node.scrub_on_free = true;
      fleet.nodes.push_back(node);
      for (std::uint32_t g = 0; g < gpus; ++g) {
        model::Gpu gpu;
        gpu.uuid = "GPU-" + node.name + "-" + std::to_string(g);
        gpu.node = node.name;
        gpu.index = g;
        gpu.mig = "off";
        gpu.memory_bytes = 64 * kMib;
        gpu.state = model::GpuState::kFree;
        fleet.gpus.push_back(gpu);
      }
    }
  }
  Result<Placement> Place(const model::LeaseRequest& request) const {
    return PlaceShare(request, fleet, {*policy, open, leaks});
  }
  model::Gpu& Gpu(const std::string& uuid) {
    return *std::find_if(fleet.gpus.begin(), fleet.gpus.end(),
                         [&](const model::Gpu& gpu) { return gpu.uuid == uuid; });
  }
  void Take(const std::string& id, const model::LeaseRequest& request, const Placement& placement) {
    open.push_back(Has(id, request, placement));
    Gpu(placement.gpus.front()).state = model::GpuState::kShared;
  }
};

// Whether this request could be on this GPU, said as plainly as can be.
bool Fits(const Cluster& cluster, const model::Gpu& gpu, const model::LeaseRequest& request) {
  std::uint64_t sum = request.share->memory_bytes;
  std::size_t there = 0;
  for (const model::Lease& lease : cluster.open) {
    if (lease.gpus.front() != gpu.uuid || lease.ended.has_value()) {
      continue;
    }
    ++there;
    sum += lease.request.share->memory_bytes;
    if (policy::LeastBetween(*cluster.policy, request.tenant, lease.request.tenant).least >
        model::IsolationClass::kTime) {
      return false;
    }
  }
  const bool usable =
      gpu.state == model::GpuState::kFree || (gpu.state == model::GpuState::kShared && there > 0);
  return usable && gpu.mig == "off" && sum <= 62 * kMib;
}

TEST(PlaceShareTest, RandomClustersCrossNoBoundaryAndPromiseNoByteTwice) {
  std::mt19937 random(11);
  const std::vector<std::string> tenants = {"acme/a/x", "acme/a/y", "acme/a/secret", "acme/b"};
  std::size_t placed_in_all = 0;
  std::size_t refused = 0;
  for (int round = 0; round < 400; ++round) {
    Cluster cluster(1 + random() % 3, 1 + random() % 3);
    for (model::Gpu& gpu : cluster.fleet.gpus) {
      const auto dice = random() % 8;
      gpu.state = dice == 0   ? model::GpuState::kLeased
                  : dice == 1 ? model::GpuState::kDirty
                              : model::GpuState::kFree;
      gpu.mig = dice == 2 ? "on" : "off";
    }
    for (int step = 0; step < 20; ++step) {
      if (!cluster.open.empty() && random() % 4 == 0) {
        cluster.open[random() % cluster.open.size()].ended = kNow;
      }
      const auto request = Wants(tenants[random() % tenants.size()], 1 + random() % 40);
      const bool could =
          std::any_of(cluster.fleet.gpus.begin(), cluster.fleet.gpus.end(),
                      [&](const model::Gpu& gpu) { return Fits(cluster, gpu, request); });
      const auto placed = cluster.Place(request);
      ASSERT_EQ(placed.has_value(), could) << (placed.has_value() ? "" : placed.error().message);
      if (!placed.has_value()) {
        ++refused;
        EXPECT_FALSE(placed.error().hint.empty());
        continue;
      }
      ++placed_in_all;
      ASSERT_TRUE(Fits(cluster, cluster.Gpu(placed->gpus.front()), request));
      cluster.Take("lease-" + std::to_string(step), request, *placed);
    }
  }
  EXPECT_GT(placed_in_all, 1000U);
  EXPECT_GT(refused, 1000U);
}

TEST(PlaceShareTest, ARefusalNamesNeighbourRuleAndRelease) {
  Cluster cluster(1, 1);
  const auto first = Wants("acme/a/x", 16);
  cluster.Take("lease-x", first, *cluster.Place(first));
  cluster.fleet.earliest_release = kNow;
  EXPECT_TRUE(cluster.Place(Wants("acme/a/y", 16)).has_value());
  const auto apart = cluster.Place(Wants("acme/a/secret", 16));
  ASSERT_FALSE(apart.has_value());
  EXPECT_EQ(apart.error().code, Code::kUnavailable);
  for (const char* part : {"acme/a/x", "lease-x", "p.yaml:", "wants gpu", "earliest release by"}) {
    EXPECT_NE(apart.error().message.find(part), std::string::npos) << apart.error().message;
  }
  const auto large = cluster.Place(Wants("acme/a/y", 50));
  ASSERT_FALSE(large.has_value());
  EXPECT_NE(large.error().message.find("46 MiB left for shares"), std::string::npos)
      << large.error().message;
  EXPECT_EQ(cluster.Place(Wants("acme/a/y", 63)).error().code, Code::kInvalidArgument);
}

TEST(PlaceShareTest, NodesThatCannotShareAreNotAsked) {
  for (const auto scrubs : {std::optional<bool>(), std::optional<bool>(false)}) {
    Cluster cluster(1, 1);
    cluster.fleet.nodes[0].scrub_on_free = scrubs;
    const auto placed = cluster.Place(Wants("acme/a/x", 16));
    ASSERT_FALSE(placed.has_value());
    EXPECT_EQ(placed.error().code, Code::kFailedPrecondition);
  }
  Cluster cluster(1, 1);
  EXPECT_EQ(cluster.Place(Wants("acme/a/x", 16, model::IsolationClass::kMps)).error().code,
            Code::kFailedPrecondition);
}

TEST(PlaceShareTest, WhereTimeSlicesLeakedOnlyOneTenantSharesAGpu) {
  Cluster cluster(1, 1);
  const auto first = Wants("acme/a/x", 16);
  cluster.Take("lease-x", first, *cluster.Place(first));
  cluster.leaks["n0"] = "2026-01-01T00:00:00.000Z";
  EXPECT_TRUE(cluster.Place(first).has_value());
  const auto other = cluster.Place(Wants("acme/a/y", 16));
  ASSERT_FALSE(other.has_value());
  EXPECT_NE(other.error().message.find("time slices leak"), std::string::npos);
}

TEST(PlaceShareTest, AGpuWhoseLastShareHasEndedIsScrubbedFirst) {
  Cluster cluster(1, 1);
  const auto first = Wants("acme/a/x", 16);
  cluster.Take("lease-x", first, *cluster.Place(first));
  cluster.open[0].ended = kNow;
  EXPECT_FALSE(cluster.Place(first).has_value());
}

}  // namespace
}  // namespace ringfence::lease
