// Goal: no slice is given across a boundary, none twice, none that is not clean, and a place is
// found whenever there is one. Method: random small fleets with random leases and boundaries,
// against a search that tries every slice; the words of a refusal on small fleets by hand.

#include "lease/slice_placement.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "policy/boundary.h"

namespace ringfence::lease {
namespace {

constexpr Timestamp kNow{std::chrono::hours(1000)};
constexpr std::uint64_t kGib = std::uint64_t{1} << 30U;
const std::string kHead = "--- {apiVersion: ringfence.dev/v1, kind: ";
const std::vector<std::string> kTenants = {"acme",        "acme/a",    "acme/a/x", "acme/a/y",
                                           "acme/b",      "globex",    "globex/t", "globex/t/p",
                                           "initech/q/r", "initech/q", "initech"};

std::unique_ptr<policy::Policy> With(const std::vector<std::string>& specs) {
  std::string text =
      kHead + "Principal, metadata: {name: a}, spec: {kind: user}}\n" + kHead +
      "Binding, metadata: {name: b}, spec: {principal: a, role: admin, tenant: /}}\n";
  for (const std::string& name : kTenants) {
    text += kHead + "Tenant, metadata: {name: " + name + "}, spec: {" +
            (name == "acme/b" ? "classification: secret" : "") + "}}\n";
  }
  std::string boundaries;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    boundaries += kHead + "Boundary, metadata: {name: x" + std::to_string(i) + "}, spec: {" +
                  specs[i] + "}}\n";
  }
  std::map<std::string, std::string> files = {{"t.yaml", text}};
  if (!boundaries.empty()) {
    files.emplace("b.yaml", boundaries);
  }
  auto policy = policy::Policy::Parse(files);
  EXPECT_TRUE(policy.has_value()) << policy.error().message << "\n" << boundaries;
  return policy.has_value() ? std::move(policy).value() : nullptr;
}

model::TenantPath Path(const std::string& text) { return model::TenantPath::Create(text).value(); }

struct World {
  Fleet fleet;
  std::vector<model::Lease> open;

  World() { fleet.now = kNow; }
  void AddNode(const std::string& name, bool ready = true) {
    model::Node& node = fleet.nodes.emplace_back();
    node.name = name;
    node.last_seen = ready ? kNow : Timestamp();
  }
  model::Gpu& AddGpu(const std::string& node, const std::string& uuid, model::GpuState state) {
    model::Gpu& gpu = fleet.gpus.emplace_back();
    gpu.uuid = uuid;
    gpu.node = node;
    gpu.state = state;
    gpu.memory_bytes = 80 * kGib;
    return gpu;
  }
  model::Gpu& AddSlice(const std::string& node, const std::string& parent, unsigned at,
                       const std::string& profile = "1g.18gb") {
    model::Gpu& gpu =
        AddGpu(node, "MIG-" + parent + "-" + std::to_string(at), model::GpuState::kFree);
    gpu.parent = parent;
    gpu.profile = profile;
    gpu.start = at;
    gpu.memory_bytes = profile == "1g.18gb" ? 10 * kGib : 40 * kGib;
    return gpu;
  }
  model::Lease& Hold(model::Gpu& gpu, const std::string& tenant) {
    model::Lease& lease = open.emplace_back();
    lease.id = "lease-" + std::to_string(open.size());
    lease.request.tenant = Path(tenant);
    lease.request.timeout = std::chrono::hours(open.size());
    lease.started = kNow;
    lease.node = gpu.node;
    lease.gpus = {gpu.uuid};
    gpu.state = model::GpuState::kLeased;
    gpu.lease = lease.id;
    return lease;
  }
  Result<Placement> Place(const policy::Policy& policy, const model::LeaseRequest& request) {
    fleet.barred = BarredNodes(policy, request.tenant, open);
    return PlaceSlice({request, policy, open, fleet});
  }
};

model::LeaseRequest Ask(const std::string& tenant, const std::string& profile,
                        std::uint64_t memory = 0) {
  model::LeaseRequest request;
  request.tenant = Path(tenant);
  request.profile = profile;
  request.gpu_memory_bytes = memory;
  return request;
}

const model::Gpu& GpuIn(const World& world, const std::string& uuid) {
  return *std::find_if(world.fleet.gpus.begin(), world.fleet.gpus.end(),
                       [&](const model::Gpu& gpu) { return gpu.uuid == uuid; });
}

// What policy says of each neighbour, asked anew and one by one.
bool MayHave(const policy::Policy& policy, const World& world, const model::LeaseRequest& request,
             const model::Gpu& unit) {
  for (const model::Node& node : world.fleet.nodes) {
    if (node.name == unit.node && node.last_seen != kNow) {
      return false;
    }
  }
  if (unit.state != model::GpuState::kFree ||
      (unit.is_slice() && GpuIn(world, unit.parent).state != model::GpuState::kCut)) {
    return false;
  }
  for (const model::Lease& lease : world.open) {
    const auto least = policy::LeastBetween(policy, lease.request.tenant, request.tenant).least;
    const model::Gpu& held = GpuIn(world, lease.gpus.front());
    if (held.node == unit.node && least == model::IsolationClass::kNode) {
      return false;
    }
    if (unit.is_slice() && held.parent == unit.parent && least >= model::IsolationClass::kGpu) {
      return false;
    }
  }
  return true;
}

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  unsigned operator()(unsigned below) { return static_cast<unsigned>(random_() % below); }
  const std::string& Tenant() { return kTenants[(*this)(static_cast<unsigned>(kTenants.size()))]; }

  std::vector<std::string> Boundaries() {
    const std::vector<std::string> classes = {"time", "mig", "gpu", "node"};
    std::vector<std::string> specs;
    if ((*this)(2) == 0) {
      specs.push_back("between: departments, least: " + classes[(*this)(4)]);
    }
    if ((*this)(2) == 0) {
      specs.push_back("tenant: " + Tenant() + ", least: " + classes[2 + (*this)(2)]);
    }
    if ((*this)(3) == 0) {
      specs.push_back("classification: secret, least: " + classes[2 + (*this)(2)]);
    }
    if ((*this)(3) == 0) {
      specs.emplace_back("between: [acme/a, globex/t], sharing: never");
    }
    return specs;
  }

  World Fleet() {
    World world;
    world.fleet.gpus.reserve(64);
    const unsigned nodes = 1 + (*this)(2);
    for (unsigned n = 0; n < nodes; ++n) {
      const std::string name = "n" + std::to_string(n);
      world.AddNode(name, (*this)(8) != 0);
      const unsigned gpus = 1 + (*this)(3);
      for (unsigned g = 0; g < gpus; ++g) {
        const std::string uuid = "GPU-" + name + "-" + std::to_string(g);
        const bool cut = (*this)(3) != 0;
        world.AddGpu(name, uuid,
                     (*this)(8) == 0 ? model::GpuState::kQuarantined
                     : cut           ? model::GpuState::kCut
                                     : static_cast<model::GpuState>((*this)(2) * 2));
        const unsigned slices = cut ? (*this)(5) : 0;
        for (unsigned s = 0; s < slices; ++s) {
          model::Gpu& slice =
              world.AddSlice(name, uuid, s, (*this)(3) == 0 ? "3g.71gb" : "1g.18gb");
          if ((*this)(6) == 0) {
            slice.state = model::GpuState::kDirty;
          }
        }
      }
    }
    for (model::Gpu& gpu : world.fleet.gpus) {
      if (gpu.state == model::GpuState::kFree && (*this)(3) == 0) {
        world.Hold(gpu, Tenant());
      }
    }
    return world;
  }

 private:
  std::mt19937 random_;
};

TEST(SlicePlacementTest, AgreesWithASearchOfEverySlice) {
  std::size_t placed_count = 0;
  std::size_t refused_by_boundary = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Dice dice(seed);
    const auto policy = With(dice.Boundaries());
    ASSERT_NE(policy, nullptr);
    World world = dice.Fleet();
    const bool by_memory = dice(3) == 0;
    const auto request = by_memory ? Ask(dice.Tenant(), "", (dice(2) == 0 ? 5 : 30) * kGib)
                                   : Ask(dice.Tenant(), dice(3) == 0 ? "3g.71gb" : "1g.18gb");
    std::set<std::string> may;
    std::set<std::string> may_whole;
    std::uint64_t smallest = UINT64_MAX;
    for (const model::Gpu& gpu : world.fleet.gpus) {
      if (!MayHave(*policy, world, request, gpu)) {
        refused_by_boundary += IsWanted(request, gpu) && gpu.state == model::GpuState::kFree;
        continue;
      }
      if (IsWanted(request, gpu)) {
        may.insert(gpu.uuid);
        smallest = std::min(smallest, gpu.memory_bytes);
      } else if (!gpu.is_slice() && by_memory) {
        may_whole.insert(gpu.uuid);
      }
    }
    const auto placed = world.Place(*policy, request);
    if (!placed.has_value()) {
      EXPECT_TRUE(may.empty()) << "seed " << seed << ": " << placed.error().message;
      EXPECT_FALSE(placed.error().hint.empty());
      continue;
    }
    ++placed_count;
    ASSERT_EQ(placed->gpus.size(), 1U);
    const model::Gpu& got = GpuIn(world, placed->gpus.front());
    EXPECT_EQ(got.node, placed->node);
    EXPECT_TRUE(may.contains(got.uuid) || (may.empty() && may_whole.contains(got.uuid)))
        << "seed " << seed << ": " << got.uuid;
    EXPECT_TRUE(!got.is_slice() || got.memory_bytes == smallest) << "seed " << seed;
  }
  EXPECT_GT(placed_count, 500U);
  EXPECT_GT(refused_by_boundary, 100U);
}

TEST(SlicePlacementTest, ARefusalNamesTheNeighbourTheRuleAndWhenItIsOver) {
  const auto policy = With({"tenant: acme, least: gpu"});
  World world;
  world.fleet.gpus.reserve(8);
  world.AddNode("n1");
  world.AddGpu("n1", "GPU-1", model::GpuState::kCut);
  model::Gpu& held = world.AddSlice("n1", "GPU-1", 0);
  world.AddSlice("n1", "GPU-1", 1);
  world.AddSlice("n1", "GPU-1", 2);
  world.Hold(held, "globex/t");
  const auto refused = world.Place(*policy, Ask("acme/a", "1g.18gb"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_EQ(refused.error().message,
            "no place now for a slice 1g.18gb: 2 slices are free but each has a neighbour on its "
            "GPU: globex/t has a slice of GPU-1, and boundary around acme (b.yaml:1) wants gpu; 1 "
            "slice is leased; earliest release by " +
                FormatTime(kNow + std::chrono::hours(1)));
  // The rule is acme's, and holds as well for whoever comes beside it.
  world.open[0].request.tenant = Path("acme/a");
  EXPECT_FALSE(world.Place(*policy, Ask("globex/t", "1g.18gb")).has_value());
  EXPECT_TRUE(world.Place(*policy, Ask("acme/a", "1g.18gb")).has_value());
}

TEST(SlicePlacementTest, MemoryMeansTheSmallestSliceAndAWholeGpuWherePolicyLeavesNoOther) {
  const auto policy = With({"tenant: acme, least: gpu"});
  World world;
  world.fleet.gpus.reserve(8);
  world.AddNode("n1");
  world.AddGpu("n1", "GPU-1", model::GpuState::kCut);
  world.AddSlice("n1", "GPU-1", 4, "3g.71gb");
  model::Gpu& small = world.AddSlice("n1", "GPU-1", 0);
  world.AddGpu("n1", "GPU-2", model::GpuState::kFree);
  EXPECT_EQ(world.Place(*policy, Ask("acme/a", "", 5 * kGib))->gpus.front(), small.uuid);
  world.Hold(small, "globex");
  EXPECT_EQ(world.Place(*policy, Ask("initech", "", 5 * kGib))->gpus.front(), "MIG-GPU-1-4");
  EXPECT_EQ(world.Place(*policy, Ask("acme/a", "", 5 * kGib))->gpus.front(), "GPU-2");
  EXPECT_EQ(world.Place(*policy, Ask("initech", "", 60 * kGib))->gpus.front(), "GPU-2");
  EXPECT_EQ(world.Place(*policy, Ask("initech", "", 90 * kGib)).error().code,
            Code::kInvalidArgument);
}

TEST(SlicePlacementTest, WhatNobodyHasIsToldApart) {
  const auto policy = With({});
  World world;
  world.AddNode("n1");
  world.AddGpu("n1", "GPU-1", model::GpuState::kFree);
  EXPECT_EQ(world.Place(*policy, Ask("acme", "9g.1gb")).error().code, Code::kInvalidArgument);
  const auto none = world.Place(*policy, Ask("acme", "1g.18gb"));
  EXPECT_EQ(none.error().code, Code::kUnavailable) << "somebody may cut one";
  EXPECT_EQ(none.error().message, "no GPU has a slice 1g.18gb; no GPU is cut into slices");
}

TEST(SlicePlacementTest, ASliceCountsAsItsPartOfTheMemory) {
  World world;
  world.fleet.gpus.reserve(4);
  world.AddGpu("n1", "GPU-1", model::GpuState::kCut);
  const model::Gpu& small = world.AddSlice("n1", "GPU-1", 0);
  EXPECT_EQ(MillisOf(small, world.fleet.gpus), 125U);
  EXPECT_EQ(MillisOf(world.fleet.gpus[0], world.fleet.gpus), 1000U);
  EXPECT_EQ(LeastMillis(Ask("acme", "1g.18gb"), world.fleet.gpus), 125U);
  EXPECT_EQ(FormatMillis(1125), "1.125");
  EXPECT_EQ(FormatMillis(500), "0.5");
  EXPECT_EQ(FormatMillis(20), "0.02");
  EXPECT_EQ(FormatMillis(3000), "3");
  model::Lease lease;
  lease.gpus = {small.uuid};
  lease.slice = {"GPU-1", "1g.18gb", small.memory_bytes, 125};
  EXPECT_EQ(MillisOf(lease), 125U);
}

}  // namespace
}  // namespace ringfence::lease
