// Goal: placement never crosses a boundary, never gives anything twice, never says "impossible"
// where there is a place, and says why where there is none.
// Method: thousands of random small fleets with random leases and boundaries; every decision is
// compared with a search that tries every GPU of every node on books of its own. Then single cases
// for the words of refusals.

#include "place/placer.h"

#include <gtest/gtest.h>

#include <random>

namespace ringfence::place {
namespace {

using model::IsolationClass;
using model::TenantPath;

TenantPath Tenant(std::string_view text) { return TenantPath::Create(text).value(); }

const gpu::MigBoard* A30() { return gpu::FindMigBoard("A30-24").value(); }
const gpu::MigBoard* H200() { return gpu::FindMigBoard("H200-141").value(); }

// The reference: what is held, as plain rows, and the rules written out once more.
struct Row {
  std::string lease, node;
  std::uint32_t gpu = 0;
  TenantPath tenant = TenantPath::Root();
  IsolationClass least = IsolationClass::kMps;
  std::uint32_t milli = 0;    // of a share or a whole GPU
  std::size_t profile = 999;  // of a MIG instance
  std::uint32_t start = 0;
  bool on_gpu = true;  // false: CPU and memory only
  std::uint32_t cpu = 0, memory = 0;
};
using Least = std::map<std::pair<std::string, std::string>, IsolationClass>;

class Reference {
 public:
  Reference(const std::vector<NodeFacts>& nodes, const Least& least)
      : nodes_(nodes), least_(least) {}

  std::vector<Row> rows;

  std::size_t NodesThatCan(const Request& request) const {
    std::size_t can = 0;
    for (const NodeFacts& node : nodes_) {
      can += Can(request, node) ? 1 : 0;
    }
    return can;
  }

  // Whether `part` breaks a rule beside what is there.
  std::string Judge(const Request& request, const Part& part) const {
    for (const NodeFacts& node : nodes_) {
      if (node.name == part.node) {
        if (!NodeTakes(request, node)) {
          return "node";
        }
        if (part.gpus.size() != (request.demand.what == What::kNoGpu   ? 0
                                 : request.demand.what == What::kWhole ? request.demand.gpus
                                                                       : 1)) {
          return "count";
        }
        for (const std::uint32_t gpu : part.gpus) {
          const bool mig = part.form.kind == Form::Kind::kMig;
          const std::uint32_t milli =
              part.form.kind == Form::Kind::kWhole ? 1000U : part.form.milli;
          if (!GpuTakes(request, node, gpu, mig ? part.form.profile : 999, part.start,
                        mig ? 0 : milli) ||
              !Enough(request, node, mig ? part.form.profile : 999, milli)) {
            return "gpu";
          }
        }
        return {};
      }
    }
    return "no such node";
  }

 private:
  IsolationClass Between(const TenantPath& a, const TenantPath& b) const {
    return least_.at({a.text(), b.text()});
  }

  bool NodeTakes(const Request& request, const NodeFacts& node) const {
    if (!node.ready) {
      return false;
    }
    std::uint32_t cpu = request.demand.cpu_milli;
    std::uint32_t memory = request.demand.memory_mib;
    std::set<std::string> counted;
    for (const Row& row : rows) {
      if (row.node != node.name) {
        continue;
      }
      if (counted.insert(row.lease).second) {
        cpu += row.cpu;
        memory += row.memory;
      }
      const bool other = row.tenant != request.tenant;
      if (Between(request.tenant, row.tenant) == IsolationClass::kNode ||
          (other &&
           (row.least == IsolationClass::kNode || request.demand.least == IsolationClass::kNode))) {
        return false;
      }
    }
    return cpu <= node.kind.cpu_milli && memory <= node.kind.memory_mib;
  }

  // Whether this much satisfies what was asked.
  static bool Enough(const Request& request, const NodeFacts& node, std::size_t profile,
                     std::uint32_t milli) {
    const Demand& demand = request.demand;
    const bool mig = profile != 999;
    const IsolationClass has = mig              ? IsolationClass::kMig
                               : milli == 1000U ? IsolationClass::kGpu
                                                : IsolationClass::kTime;
    const IsolationClass need = std::min(demand.least, IsolationClass::kGpu);
    switch (demand.what) {
      case What::kNoGpu:
        return true;
      case What::kWhole:
        return milli == 1000;
      case What::kShare:
        return demand.least <= IsolationClass::kTime
                   ? milli == demand.milli
                   : has >= need && (mig ? node.kind.board->profiles[profile].slices * 1000 >=
                                               demand.milli * node.kind.board->slices
                                         : milli == 1000);
      case What::kProfile:
        return mig && node.kind.board->profiles[profile].name == demand.profile;
      case What::kGpuMemory:
        return has >= need &&
               (mig ? node.kind.board->profiles[profile].memory_mib >= demand.gpu_memory_mib
                    : std::uint64_t{milli} * node.kind.gpu_memory_mib >=
                          std::uint64_t{demand.gpu_memory_mib} * 1000);
    }
    return false;
  }

  bool GpuTakes(const Request& request, const NodeFacts& node, std::uint32_t gpu,
                std::size_t profile, std::uint32_t start, std::uint32_t milli) const {
    if (!node.gpus[gpu].usable) {
      return false;
    }
    const bool mig = profile != 999;
    std::uint32_t used = milli;
    std::vector<gpu::MigInstance> instances;
    bool empty = true;
    for (const Row& row : rows) {
      if (row.node != node.name || row.gpu != gpu || !row.on_gpu) {
        continue;
      }
      empty = false;
      used += row.milli;
      if ((row.profile != 999) != mig) {
        return false;
      }
      if (row.profile != 999) {
        instances.push_back({row.profile, row.start});
      }
      if (Between(request.tenant, row.tenant) >
          (mig ? IsolationClass::kMig : IsolationClass::kTime)) {
        return false;
      }
    }
    if (mig) {
      instances.push_back({profile, start});
      if (!CheckMigInstances(*node.kind.board, instances).has_value()) {
        return false;
      }
    }
    if (empty && !request.demand.reshape && cut.contains({node.name, gpu}) != mig) {
      return false;
    }
    return used <= 1000;
  }

  bool Can(const Request& request, const NodeFacts& node) const {
    const Demand& demand = request.demand;
    if (!NodeTakes(request, node)) {
      return false;
    }
    if (demand.what == What::kNoGpu) {
      return true;
    }
    if (!demand.models.empty() && demand.models.front() != node.kind.model) {
      return false;
    }
    std::size_t good = 0;
    for (std::uint32_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
      std::uint32_t milli = 1;  // the least that is enough: where that does not fit, more does not
      while (milli <= 1000 && !Enough(request, node, 999, milli)) {
        ++milli;
      }
      bool any = milli <= 1000 && GpuTakes(request, node, gpu, 999, 0, milli);
      for (std::size_t p = 0; node.kind.board != nullptr && p < node.kind.board->profiles.size();
           ++p) {
        const bool media = node.kind.board->profiles[p].media && demand.what != What::kProfile;
        const bool may = demand.what == What::kProfile || demand.least == IsolationClass::kMig;
        for (std::uint32_t start = 0; may && !media && start < 8 && !any; ++start) {
          any = Enough(request, node, p, 0) && GpuTakes(request, node, gpu, p, start, 0);
        }
      }
      good += any ? 1 : 0;
    }
    return good >= (demand.what == What::kWhole ? demand.gpus : 1);
  }

  const std::vector<NodeFacts>& nodes_;
  const Least& least_;

 public:
  std::set<std::pair<std::string, std::uint32_t>> cut;  // GPUs with MIG on
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::uint32_t Below(std::uint32_t n) { return static_cast<std::uint32_t>(engine_() % n); }
  bool OneIn(std::uint32_t n) { return Below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

std::vector<NodeFacts> RandomNodes(Dice& dice) {
  std::vector<NodeFacts> nodes;
  const std::uint32_t count = 1 + dice.Below(4);
  for (std::uint32_t i = 0; i < count; ++i) {
    NodeFacts node;
    node.name = "n" + std::to_string(i);
    const std::uint32_t sort = dice.Below(3);
    node.kind = {sort == 0   ? "T4"
                 : sort == 1 ? "A30"
                             : "H200",
                 4000 + 4000 * dice.Below(3),
                 8192 * (1 + dice.Below(2)),
                 1 + dice.Below(3),
                 sort == 0   ? 16384U
                 : sort == 1 ? 24064U
                             : 143360U,
                 sort == 0   ? nullptr
                 : sort == 1 ? A30()
                             : H200()};
    for (std::uint32_t gpu = 0; gpu < node.kind.gpus; ++gpu) {
      const bool mig = sort != 0 && dice.OneIn(3);
      node.gpus.push_back({node.name + "-" + std::to_string(gpu), !dice.OneIn(8), "dirty", mig});
    }
    node.ready = !dice.OneIn(10);
    nodes.push_back(node);
  }
  return nodes;
}

Request RandomRequest(Dice& dice, const std::vector<TenantPath>& tenants) {
  Request request;
  request.tenant = tenants[dice.Below(static_cast<std::uint32_t>(tenants.size()))];
  Demand& demand = request.demand;
  demand.least = static_cast<IsolationClass>(dice.Below(5));
  demand.cpu_milli = 1000 * dice.Below(3);
  demand.memory_mib = 1024 * dice.Below(3);
  demand.reshape = !dice.OneIn(3);
  demand.spread = dice.OneIn(3);
  if (dice.OneIn(5)) {
    demand.models = {dice.OneIn(2) ? "A30" : "H200"};
  }
  switch (dice.Below(6)) {
    case 0:
      demand.what = What::kNoGpu;
      demand.models.clear();
      break;
    case 1:
      demand.what = What::kWhole;
      demand.gpus = 1 + dice.Below(3);
      break;
    case 2:
    case 3:
      demand.what = What::kShare;
      demand.milli = 50 * (1 + dice.Below(20));
      break;
    case 4:
      demand.what = What::kProfile;
      demand.least = std::min(demand.least, IsolationClass::kMig);
      demand.profile = std::vector<std::string>{"1g.6gb",  "2g.12gb", "1g.6gb+me",
                                                "1g.18gb", "3g.71gb", "4g.71gb"}[dice.Below(6)];
      break;
    default:
      demand.what = What::kGpuMemory;
      demand.gpu_memory_mib = 1000 + dice.Below(30000);
      break;
  }
  request.nodes = dice.OneIn(5) ? 2 : 1;
  return request;
}

void CheckFleet(std::uint64_t seed, Method method, std::size_t& placed, std::size_t& refused) {
  Dice dice(seed);
  const std::vector<NodeFacts> nodes = RandomNodes(dice);
  const std::vector<TenantPath> tenants = {Tenant("acme/a/x"), Tenant("acme/a/y"),
                                           Tenant("globex")};
  Least least;
  for (const TenantPath& a : tenants) {
    for (const TenantPath& b : tenants) {
      const auto drawn = a == b ? IsolationClass::kMps : static_cast<IsolationClass>(dice.Below(5));
      least.try_emplace({a.text(), b.text()}, drawn);
      least.try_emplace({b.text(), a.text()}, drawn);
    }
  }
  const std::vector<TypicalTask> typical = {
      {Demand{.what = What::kWhole, .gpus = 1, .cpu_milli = 1000}, 2},
      {Demand{.what = What::kShare, .milli = 300, .cpu_milli = 1000}, 2},
      {Demand{.what = What::kProfile, .profile = "1g.18gb"}, 1},
      {Demand{.what = What::kNoGpu, .cpu_milli = 1000}, 1}};
  auto made = Placer::Create(
      nodes, typical,
      [&](const TenantPath& a, const TenantPath& b) {
        return policy::IsolationDemand{least.at({a.text(), b.text()}), "test"};
      },
      method);
  ASSERT_TRUE(made.has_value());
  Placer& placer = *made;
  Reference reference(nodes, least);
  for (const NodeFacts& node : nodes) {
    for (std::uint32_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
      if (node.gpus[gpu].mig) {
        reference.cut.insert({node.name, gpu});
      }
    }
  }
  for (int step = 0; step < 14; ++step) {
    if (!placer.leases().empty() && dice.OneIn(4)) {
      auto it = placer.leases().begin();
      std::advance(it, dice.Below(static_cast<std::uint32_t>(placer.leases().size())));
      const std::string id = it->first;
      ASSERT_TRUE(placer.Release(id).has_value());
      std::erase_if(reference.rows, [&](const Row& row) { return row.lease == id; });
    }
    const Request request = RandomRequest(dice, tenants);
    const auto decision = placer.Decide(request);
    const bool possible = reference.NodesThatCan(request) >= request.nodes;
    ASSERT_EQ(decision.has_value(), possible)
        << "seed " << seed << " step " << step << ": "
        << (decision.has_value() ? "placed" : decision.error().message);
    if (!decision.has_value()) {
      ++refused;
      continue;
    }
    ++placed;
    std::set<std::string> used;
    for (const Part& part : *decision) {
      ASSERT_TRUE(used.insert(part.node).second) << "one node twice";
      ASSERT_EQ(reference.Judge(request, part), "") << "seed " << seed << " step " << step;
    }
    const std::string id = "l" + std::to_string(step);
    const Lease lease{id, request.tenant, request.demand.least, *decision,
                      Timestamp(Milliseconds(1000 * (1 + dice.Below(100))))};
    ASSERT_TRUE(placer.Hold(lease).has_value());
    for (const Part& part : *decision) {
      const bool mig = part.form.kind == Form::Kind::kMig;
      Row row{id,  part.node,  0,     request.tenant,           request.demand.least,     0,
              999, part.start, false, request.demand.cpu_milli, request.demand.memory_mib};
      for (const std::uint32_t gpu : part.gpus) {
        row.gpu = gpu;
        row.on_gpu = true;
        row.milli = mig ? 0 : part.form.kind == Form::Kind::kWhole ? 1000 : part.form.milli;
        row.profile = mig ? part.form.profile : 999;
        reference.rows.push_back(row);
        if (mig) {
          reference.cut.insert({part.node, gpu});
        } else {
          reference.cut.erase({part.node, gpu});
        }
      }
      if (part.gpus.empty()) {
        reference.rows.push_back(row);
      }
    }
  }
}

TEST(Placer, AgreesWithTryingEverything) {
  std::size_t placed = 0;
  std::size_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    CheckFleet(seed, seed % 4 == 0 ? kMethods[seed / 4 % std::size(kMethods)] : Method::kRingfence,
               placed, refused);
    if (HasFatalFailure()) {
      return;
    }
  }
  EXPECT_GT(placed, 5000U);
  EXPECT_GT(refused, 5000U);
}

NodeFacts Node(const std::string& name, std::uint32_t gpus) {
  NodeFacts node{name, {"H200", 64000, 524288, gpus, 143360, H200()}, {}, true, {}};
  for (std::uint32_t i = 0; i < gpus; ++i) {
    node.gpus.push_back({name + "-" + std::to_string(i), true, {}, false});
  }
  return node;
}

Placer Make(std::vector<NodeFacts> nodes, IsolationClass between) {
  return std::move(Placer::Create(std::move(nodes), {},
                                  [between](const TenantPath& a, const TenantPath& b) {
                                    return policy::IsolationDemand{
                                        a == b ? IsolationClass::kMps : between,
                                        "boundary between " + a.text() + " and " + b.text() +
                                            " (boundaries.yaml:6)"};
                                  }))
      .value();
}

TEST(Placer, SaysWhoStandsInTheWayAndUntilWhen) {
  Placer placer = Make({Node("n0", 4)}, IsolationClass::kNode);
  Request request{Tenant("acme/finance"), Demand{.what = What::kWhole, .gpus = 1}, 1};
  const auto first = placer.Decide(request);
  ASSERT_TRUE(first.has_value());
  ASSERT_TRUE(placer
                  .Hold({"l1", request.tenant, IsolationClass::kMps, *first,
                         ParseTime("2026-11-16T14:05:00Z").value()})
                  .has_value());
  request.tenant = Tenant("acme/research");
  const auto refused = placer.Decide(request);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_EQ(refused.error().message,
            "no place now for 1 whole GPU: 3 GPUs have room, but each has a neighbour of "
            "acme/finance (boundary between acme/research and acme/finance (boundaries.yaml:6)); "
            "earliest release 2026-11-16T14:05:00.000Z");
  // Asking changed nothing.
  EXPECT_EQ(placer.leases().size(), 1U);
  EXPECT_EQ(placer.Decide(request).error().message, refused.error().message);
  ASSERT_TRUE(placer.Release("l1").has_value());
  EXPECT_TRUE(placer.Decide(request).has_value());
}

TEST(Placer, SaysWhatCouldNeverBe) {
  Placer placer = Make({Node("n0", 4), Node("n1", 2)}, IsolationClass::kMig);
  const auto why = [&](Demand demand, std::uint32_t nodes = 1) {
    const auto decision = placer.Decide({Tenant("acme"), std::move(demand), nodes});
    EXPECT_FALSE(decision.has_value());
    EXPECT_EQ(decision.error().code, Code::kInvalidArgument);
    return decision.error().message;
  };
  EXPECT_EQ(why({.what = What::kWhole, .gpus = 8}),
            "no node could ever give 8 whole GPUs: the largest node has 4");
  EXPECT_EQ(why({.what = What::kProfile, .profile = "1g.10gb"}),
            "no node could ever give a MIG slice 1g.10gb: no node has a board with that profile");
  EXPECT_EQ(why({.what = What::kWhole, .gpus = 1, .models = {"B200"}}),
            "no node could ever give 1 whole GPU: no node has GPUs of that model; there are H200");
  EXPECT_EQ(why({.what = What::kWhole, .gpus = 3}, 2),
            "no node could ever give 3 whole GPUs: only 1 node could ever do it, and 2 are asked "
            "for");
  EXPECT_EQ(why({.what = What::kProfile, .profile = "1g.18gb", .least = IsolationClass::kGpu}),
            "profile: a MIG slice has class mig, and gpu is asked for");
  EXPECT_FALSE(placer.Decide({Tenant("acme"), Demand{.what = What::kWhole}, 1}).has_value());
}

TEST(Placer, PacksAndSpreads) {
  Placer placer = Make({Node("n0", 4), Node("n1", 4)}, IsolationClass::kMig);
  Request request{Tenant("acme"), Demand{.what = What::kWhole, .gpus = 1}, 1};
  const auto first = placer.Decide(request);
  ASSERT_TRUE(placer.Hold({"l1", request.tenant, IsolationClass::kMps, *first, {}}).has_value());
  EXPECT_EQ(placer.Decide(request)->front().node, first->front().node);
  request.demand.spread = true;
  EXPECT_NE(placer.Decide(request)->front().node, first->front().node);
}

TEST(Placer, MemoryWithClassMigGetsTheSliceThatWastesLeast) {
  Placer placer = Make({Node("n0", 2)}, IsolationClass::kMig);
  const Request request{
      Tenant("acme"),
      Demand{.what = What::kGpuMemory, .gpu_memory_mib = 30000, .least = IsolationClass::kMig}, 1};
  const auto decision = placer.Decide(request);
  ASSERT_TRUE(decision.has_value());
  EXPECT_EQ(decision->front().form.kind, Form::Kind::kMig);
  EXPECT_TRUE(decision->front().reshapes);
}

TEST(Placer, RefusesToHoldWhatIsNotFree) {
  Placer placer = Make({Node("n0", 2)}, IsolationClass::kMig);
  const Request request{Tenant("acme"), Demand{.what = What::kWhole, .gpus = 2}, 1};
  const auto all = placer.Decide(request);
  ASSERT_TRUE(placer.Hold({"l1", request.tenant, IsolationClass::kMps, *all, {}}).has_value());
  EXPECT_EQ(placer.Hold({"l1", request.tenant, IsolationClass::kMps, {}, {}}).error().code,
            Code::kConflict);
  EXPECT_EQ(placer.Hold({"l2", request.tenant, IsolationClass::kMps, *all, {}}).error().code,
            Code::kConflict);
  EXPECT_EQ(placer.leases().size(), 1U);
  EXPECT_EQ(placer.Release("l2").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace ringfence::place
