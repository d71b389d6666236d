// Goal: the trace is read whole and strictly, no method over-commits, ours is the best of them, and
// the index decides as one that looks at everything anew.
// Method: a made-up cluster in tests/vectors/gpu-trace; every wrong line with its place; placements
// and releases at random, with the best loss found by hand each time.

#include "place/replay.h"

#include <gtest/gtest.h>

#include "os/file.h"
#include "place/mix.h"

namespace ringfence::place {
namespace {

const std::string kFolder = RINGFENCE_SOURCE_DIR "/tests/vectors/gpu-trace/";

std::string Read(const std::string& name) {
  const auto text = os::ReadText(kFolder + name, kTraceBytesMax);
  EXPECT_TRUE(text.has_value()) << name;
  return *text;
}

std::string NodesError(std::string_view text) {
  const auto nodes = ParseTraceNodes(text, "n.csv");
  return nodes.has_value() ? "read" : nodes.error().message;
}
std::string PodsError(std::string_view text) {
  const auto pods = ParseTracePods(text, "p.csv");
  return pods.has_value() ? "read" : pods.error().message;
}

TEST(Trace, ErrorsNameLineAndColumn) {
  EXPECT_EQ(NodesError(""), "n.csv:1:1: the file is empty");
  EXPECT_EQ(NodesError("sn,cpu_milli,memory_mib,gpu\n"), "n.csv:1:1: no column \"model\"");
  const std::string head = "sn,cpu_milli,memory_mib,gpu,model\n";
  EXPECT_EQ(NodesError(head), "n.csv:1:1: no node below the first line");
  EXPECT_EQ(NodesError(head + "a,1000,1024,2,T4\r\n\nb,64000.0,262144,8,G2\n"), "read");
  EXPECT_EQ(NodesError(head + "a,1000,1024,2,T4\nb,x,1024,2,T4\n"),
            "n.csv:3:2: cpu_milli: \"x\" is no whole number from 0 to 2147483647");
  EXPECT_EQ(NodesError(head + "a,1000,1024,17,T4\n"),
            "n.csv:2:4: gpu: \"17\" is no whole number from 0 to 16");
  EXPECT_EQ(NodesError(head + "a,1000,1024\n"), "n.csv:2:3: 3 fields, and the first line names 5");
  const std::string pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time\n";
  EXPECT_EQ(PodsError(pods + "a,1,1,1,470,,0\n"), "read");
  EXPECT_EQ(PodsError(pods + "a,1,1,2,470,,0\n"),
            "p.csv:2:5: gpu_milli: several GPUs are whole ones: 1000");
  EXPECT_EQ(PodsError(pods + "a,1,1,1,0,,0\n"),
            "p.csv:2:5: gpu_milli: one GPU, and none of it: from 1 to 1000");
  EXPECT_EQ(PodsError(pods + "a,1,1,1,470,,-3\n"),
            "p.csv:2:7: creation_time: \"-3\" is no whole number from 0 to 1152921504606846976");
}

TEST(Trace, ReadsModelsAndOrder) {
  const auto pods = ParseTracePods(
      "creation_time,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
      "9,1,2,1,1000,V100M32|V100M16\n3,1,2,0,0,T4\n3,4,5,1,500,\n",
      "p");
  ASSERT_TRUE(pods.has_value());
  EXPECT_EQ((*pods)[0].demand.what, What::kNoGpu);
  EXPECT_TRUE((*pods)[0].demand.models.empty());
  EXPECT_EQ((*pods)[1].demand.milli, 500U);
  EXPECT_EQ((*pods)[2].demand.models, (std::vector<std::string>{"V100M16", "V100M32"}));
  EXPECT_EQ((*pods)[2].demand.what, What::kWhole);
}

double NoClock() { return 0; }

TEST(Replay, NoMethodOverCommitsAndOursIsBest) {
  const auto nodes = ParseTraceNodes(Read("nodes.csv"), "nodes.csv");
  const auto pods = ParseTracePods(Read("pods.csv"), "pods.csv");
  ASSERT_TRUE(nodes.has_value() && pods.has_value());
  for (const Experiment experiment : {Experiment::kTrace, Experiment::kInflate}) {
    std::map<Method, double> allocated;
    for (const Method method : kMethods) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const ReplayReport report =
            Replay(*nodes, *pods, {method, experiment, seed, 130, {}}, NoClock);
        EXPECT_EQ(report.violations, 0U) << Name(method);
        EXPECT_LE(report.allocated, 1.0);
        EXPECT_NEAR(report.allocated + report.idle + report.fragments, 1, 1e-9) << Name(method);
        EXPECT_EQ(report.decision_us.size(), report.pods);
        allocated[method] += report.allocated;
      }
    }
    for (const Method method : kMethods) {
      EXPECT_GE(allocated[Method::kRingfence] + 1e-9, allocated[method]) << Name(method);
    }
  }
}

TEST(Replay, MigMixOverCommitsNothing) {
  const Mix mix = MakeMigMix(1, 40);
  for (const Method method : kMethods) {
    const ReplayReport report =
        Replay(mix.nodes, mix.pods, {method, Experiment::kTrace, 1, 130, {}}, NoClock);
    EXPECT_EQ(report.violations, 0U) << Name(method);
    EXPECT_GT(report.allocated, 0.7) << Name(method);
  }
}

// The index against all options of all nodes, worked out anew at each step.
TEST(NodeIndex, ChoosesWhatCostsLeast) {
  const auto nodes = ParseTraceNodes(Read("nodes.csv"), "nodes.csv");
  const auto pods = ParseTracePods(Read("pods.csv"), "pods.csv");
  ASSERT_TRUE(nodes.has_value() && pods.has_value());
  for (const Method method : {Method::kFgd, Method::kRingfence, Method::kBestFit}) {
    Workload workload(TypicalOf(*pods), nodes->kinds);
    NodeIndex index(workload, method);
    Losses losses(workload, method);
    for (std::size_t i = 0; i < 30; ++i) {
      index.AddNode(nodes->nodes[i]);
    }
    std::mt19937_64 dice(7);
    std::vector<Choice> held;
    for (int step = 0; step < 1500; ++step) {
      if (!held.empty() && dice() % 5 < 2) {
        const std::size_t at = dice() % held.size();
        index.Release(held[at]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      }
      Forms forms{(*pods)[dice() % pods->size()].demand, {}};
      for (const NodeKind& kind : nodes->kinds) {
        forms.on.push_back(FormsOn(forms.demand, kind));
      }
      std::optional<double> least;
      std::vector<double> of_node(index.nodes(), 1e300);
      for (std::uint32_t node = 0; node < index.nodes(); ++node) {
        NodeState state{index.KindOf(node),
                        static_cast<std::uint8_t>(index.kinds()[index.KindOf(node)].gpus),
                        0,
                        index.FreeCpu(node),
                        index.FreeMemory(node),
                        index.Codes(node)};
        state.Sort();
        Option best;
        if (losses.Best(state, losses.MeasureOf(state), forms, best)) {
          of_node[node] = best.loss;
          least = std::min(best.loss, least.value_or(1e300));
        }
      }
      const auto choice = index.Choose(index.DemandNumber(forms.demand));
      ASSERT_EQ(choice.has_value(), least.has_value()) << step;
      if (choice) {
        ASSERT_DOUBLE_EQ(of_node[choice->node], *least) << step;
        index.Apply(*choice);
        held.push_back(*choice);
      }
    }
    EXPECT_LE(index.states(), index.nodes());
  }
}

// Fragmentation as its definition says it, task by task.
TEST(Workload, UsableIsTheExpectationOverTasks) {
  const std::vector<NodeKind> kinds = {{"G2", 96000, 393216, 4, 0, nullptr},
                                       {"T4", 32000, 65536, 4, 0, nullptr}};
  const std::vector<TypicalTask> tasks = {
      {Demand{.what = What::kNoGpu, .cpu_milli = 4000}, 10},
      {Demand{.what = What::kShare, .milli = 470, .cpu_milli = 6000, .memory_mib = 1000}, 20},
      {Demand{.what = What::kWhole, .gpus = 1, .cpu_milli = 12000, .models = {"T4"}}, 30},
      {Demand{.what = What::kWhole, .gpus = 2, .cpu_milli = 20000}, 40}};
  Workload workload(tasks, kinds);
  std::mt19937_64 dice(3);
  for (int i = 0; i < 2000; ++i) {
    NodeState state{
        static_cast<std::uint16_t>(dice() % 2),    4, 0, static_cast<std::uint32_t>(dice() % 30000),
        static_cast<std::uint32_t>(dice() % 2000), {}};
    for (std::size_t gpu = 0; gpu < 4; ++gpu) {
      state.codes[gpu] = static_cast<GpuCode>(dice() % 2 == 0 ? 1000 : dice() % 1000);
    }
    state.Sort();
    double expected = 0;
    for (const TypicalTask& task : tasks) {
      const Demand& demand = task.demand;
      const std::uint32_t milli = demand.what == What::kShare ? demand.milli : 1000;
      const std::size_t count = demand.what == What::kWhole ? demand.gpus : 1;
      double free = 0;
      std::size_t good = 0;
      for (std::size_t gpu = 0; gpu < 4; ++gpu) {
        if (state.codes[gpu] >= milli) {
          free += state.codes[gpu];
          ++good;
        }
      }
      const bool runs = demand.what != What::kNoGpu && good >= count &&
                        demand.cpu_milli <= state.cpu_milli &&
                        demand.memory_mib <= state.memory_mib &&
                        (demand.models.empty() || kinds[state.kind].model == "T4");
      expected += runs ? task.weight / 100 * free : 0;
    }
    ASSERT_NEAR(workload.Usable(state), expected, 1e-9) << i;
  }
}

TEST(Workload, PricesAreThoseOfTheBestFilling) {
  // Two of 500 fill a GPU, one of 700 wastes 300 unless one of 300 comes along.
  const std::vector<NodeKind> kinds = {{"T4", 32000, 65536, 4, 0, nullptr}};
  Workload workload({{Demand{.what = What::kShare, .milli = 500}, 2},
                     {Demand{.what = What::kShare, .milli = 700}, 1},
                     {Demand{.what = What::kShare, .milli = 300}, 1}},
                    kinds);
  EXPECT_NEAR(workload.FillingBound(0), 1.0, 1e-9);
  EXPECT_NEAR(workload.Filling(0, 1000), 1.0, 1e-6);
  EXPECT_NEAR(workload.Filling(0, 500), 0.5, 1e-6);
  EXPECT_NEAR(workload.Filling(0, 299), 0.0, 1e-6);
  Workload wasteful({{Demand{.what = What::kShare, .milli = 800}, 1}}, kinds);
  EXPECT_NEAR(wasteful.FillingBound(0), 0.8, 1e-9);
  EXPECT_NEAR(wasteful.Filling(0, 799), 0.0, 1e-6);
}

}  // namespace
}  // namespace ringfence::place
