// Goal: a node whose neighbours a boundary keeps apart by NVLink, or that was not proven in time,
// is barred with the rule's file and line, and no other node is. Method: two nodes, one neighbour,
// each rule; times around the edge.

#include "lease/neighbours.h"

#include <gtest/gtest.h>

namespace ringfence::lease {
namespace {

constexpr Timestamp kNow{std::chrono::hours(1000)};

std::unique_ptr<policy::Policy> With(const std::string& spec) {
  const std::string head = "--- {apiVersion: ringfence.dev/v1, kind: ";
  std::string text =
      head + "Principal, metadata: {name: a}, spec: {kind: user}}\n" + head +
      "Binding, metadata: {name: b}, spec: {principal: a, role: admin, tenant: /}}\n";
  for (const std::string name : {"acme", "globex", "initech"}) {
    text += head + "Tenant, metadata: {name: " + name + "}, spec: {}}\n";
  }
  auto policy = policy::Policy::Parse(
      {{"t.yaml", text},
       {"b.yaml", head + "Boundary, metadata: {name: x}, spec: {" + spec + "}}\n"}});
  EXPECT_TRUE(policy.has_value()) << policy.error().message;
  return std::move(policy).value();
}

model::TenantPath Path(const char* text) { return model::TenantPath::Create(text).value(); }

struct World {
  std::vector<model::Node> nodes;
  std::vector<model::Lease> open;
  ProvenTimes proven;

  World() {
    for (const char* const name : {"n1", "n2"}) {
      nodes.emplace_back().name = name;
    }
    model::Lease& lease = open.emplace_back();
    lease.request.tenant = Path("globex");
    lease.node = "n1";
    lease.gpus = {"g"};
  }
  Neighbourhood around() const { return {nodes, open, proven, kNow}; }
};

TEST(NeighboursTest, NvlinkNeighboursAreOfOneTenant) {
  const World world;
  const auto policy = With("tenant: acme, nvlink: one-tenant");
  const auto barred = LinkedNodes(*policy, Path("acme"), world.around());
  ASSERT_EQ(barred.size(), 1U);
  EXPECT_EQ(barred.at("n1"),
            "its GPUs may be joined by NVLink to those of globex, and boundary around acme "
            "(b.yaml:1) wants neighbours of one tenant");
  EXPECT_TRUE(LinkedNodes(*policy, Path("initech"), world.around()).empty());
  EXPECT_TRUE(LinkedNodes(*policy, Path("globex"), world.around()).empty());
}

TEST(NeighboursTest, ProvenWithinItsTimeOrNot) {
  World world;
  const auto policy = With("tenant: acme, provenWithin: 2h");
  EXPECT_TRUE(DemandsProof(*policy));
  EXPECT_EQ(UnprovenNodes(*policy, Path("acme"), world.around()).size(), 2U);
  world.proven = {{"n1", kNow - std::chrono::hours(2)},
                  {"n2", kNow - std::chrono::hours(2) - Milliseconds(1)}};
  const auto barred = UnprovenNodes(*policy, Path("acme"), world.around());
  ASSERT_EQ(barred.size(), 1U);
  EXPECT_NE(barred.at("n2").find("boundary around acme (b.yaml:1) wants that within 2h"),
            std::string::npos)
      << barred.at("n2");
  // Beside acme others need the proof too; elsewhere they do not.
  world.proven.clear();
  world.open[0].request.tenant = Path("acme");
  EXPECT_EQ(UnprovenNodes(*policy, Path("initech"), world.around()).count("n1"), 1U);
  EXPECT_EQ(UnprovenNodes(*policy, Path("initech"), world.around()).size(), 1U);
  EXPECT_FALSE(DemandsProof(*With("tenant: acme, least: gpu")));
}

TEST(NeighboursTest, TheEarliestRelease) {
  World world;
  EXPECT_EQ(EarliestRelease({}), std::nullopt);
  world.open[0].started = kNow;
  world.open[0].request.timeout = std::chrono::hours(3);
  world.open.push_back(world.open[0]);
  world.open[1].request.timeout = std::chrono::hours(1);
  EXPECT_EQ(EarliestRelease(world.open), kNow + std::chrono::hours(1));
  world.open[1].ended = kNow;
  EXPECT_EQ(EarliestRelease(world.open), kNow + std::chrono::hours(3));
}

}  // namespace
}  // namespace ringfence::lease
