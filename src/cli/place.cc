// `ringfence place ...`: placement on traces. Works offline.

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "os/file.h"
#include "place/mix.h"
#include "place/replay.h"

namespace ringfence::cli {
namespace {

constexpr std::int64_t kRunsMax = 1000;

double NowMicroseconds() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string Percent(double part, int digits = 2) {
  const std::string text = std::to_string(part * 100 + 0.5 * std::pow(10, -digits));
  return text.substr(0, text.find('.') + 1 + static_cast<std::size_t>(digits)) + " %";
}

std::string Micros(double us) {
  const std::string text = std::to_string(us);
  return text.substr(0, text.find('.') + 2) + " us";
}

// The numbers of several runs, one a seed.
struct Runs {
  std::vector<place::ReplayReport> reports;
  double Mean(double place::ReplayReport::* field) const {
    double sum = 0;
    for (const place::ReplayReport& report : reports) {
      sum += report.*field;
    }
    return sum / static_cast<double>(reports.size());
  }
  std::uint64_t Sum(std::uint64_t place::ReplayReport::* field) const {
    std::uint64_t sum = 0;
    for (const place::ReplayReport& report : reports) {
      sum += report.*field;
    }
    return sum;
  }
  // The mean allocation when so much had been asked for; below 0 when it never was.
  double MeanAt(double arrived) const {
    double sum = 0;
    for (const place::ReplayReport& report : reports) {
      double found = -1e9;
      for (const place::ReplayPoint& point : report.points) {
        if (point.arrived > arrived - 0.01 && point.arrived < arrived + 0.01) {
          found = point.allocated;
        }
      }
      sum += found;
    }
    return sum / static_cast<double>(reports.size());
  }
  std::vector<double> Times() const {
    std::vector<double> all;
    for (const place::ReplayReport& report : reports) {
      all.insert(all.end(), report.decision_us.begin(), report.decision_us.end());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
};

Json ToJson(place::Method method, std::uint64_t seed, const Runs& runs) {
  const place::ReplayReport& first = runs.reports.front();
  JsonArray points;
  for (const place::ReplayPoint& point : first.points) {
    points.push_back(
        JsonObject{{"arrived", point.arrived}, {"allocated", runs.MeanAt(point.arrived)}});
  }
  const std::vector<double> times = runs.Times();
  return JsonObject{{"method", place::Name(method)},
                    {"seed", seed},
                    {"runs", runs.reports.size()},
                    {"nodes", first.nodes},
                    {"gpus", first.gpus},
                    {"demanded", runs.Mean(&place::ReplayReport::demanded)},
                    {"allocated", runs.Mean(&place::ReplayReport::allocated)},
                    {"idle", runs.Mean(&place::ReplayReport::idle)},
                    {"fragments", runs.Mean(&place::ReplayReport::fragments)},
                    {"pods", runs.Sum(&place::ReplayReport::pods)},
                    {"placed", runs.Sum(&place::ReplayReport::placed)},
                    {"gpu_pods", runs.Sum(&place::ReplayReport::gpu_pods)},
                    {"gpu_pods_placed", runs.Sum(&place::ReplayReport::gpu_pods_placed)},
                    {"violations", runs.Sum(&place::ReplayReport::violations)},
                    {"filling_bound", first.filling_bound},
                    {"node_states", first.states},
                    {"points", std::move(points)},
                    {"decision_us", JsonObject{{"p50", place::Percentile(times, 50)},
                                               {"p99", place::Percentile(times, 99)},
                                               {"max", place::Percentile(times, 100)}}}};
}

struct Plan {
  place::Mix input;
  place::ReplayOptions options;
  std::vector<place::Method> methods;
  std::uint64_t runs = 1;
  bool mig = false;
  std::uint32_t mig_nodes = 200;
};

Result<std::uint64_t> NumberOr(const Parsed& parsed, std::string_view name, std::uint64_t fallback,
                               std::int64_t least, std::int64_t most) {
  const auto text = parsed.Value(name);
  if (!text) {
    return fallback;
  }
  const auto number = ParseCount(*text, least, most);
  if (!number.has_value()) {
    return Prefix("--" + std::string(name), number.error());
  }
  return static_cast<std::uint64_t>(*number);
}

Status ReadInput(const Parsed& parsed, Plan& plan) {
  const auto nodes = parsed.Value("nodes");
  const auto pods = parsed.Value("pods");
  if (plan.mig) {
    if (nodes || pods) {
      return Error{Code::kInvalidArgument, "--experiment mig makes its own nodes and pods",
                   "leave out --nodes and --pods"};
    }
    return {};
  }
  if (!nodes || !pods) {
    return Error{Code::kInvalidArgument, std::string(nodes ? "--pods" : "--nodes") + " is missing",
                 "give the two CSV files of a trace, or --experiment mig"};
  }
  RINGFENCE_ASSIGN(const std::string node_text, os::ReadText(*nodes, place::kTraceBytesMax));
  RINGFENCE_ASSIGN(plan.input.nodes, place::ParseTraceNodes(node_text, *nodes));
  RINGFENCE_ASSIGN(const std::string pod_text, os::ReadText(*pods, place::kTraceBytesMax));
  RINGFENCE_ASSIGN(plan.input.pods, place::ParseTracePods(pod_text, *pods));
  return {};
}

Result<Plan> PlanOf(const Parsed& parsed) {
  Plan plan;
  const std::string experiment = parsed.Value("experiment").value_or("trace");
  plan.mig = experiment == "mig";
  if (experiment == "inflate") {
    plan.options.experiment = place::Experiment::kInflate;
  } else if (experiment != "trace" && !plan.mig) {
    return Error{Code::kInvalidArgument, "no experiment \"" + experiment + "\"",
                 "there are trace, inflate and mig", "experiment"};
  }
  const std::string method = parsed.Value("method").value_or("ringfence");
  if (method == "all") {
    plan.methods.assign(std::begin(place::kMethods), std::end(place::kMethods));
  } else {
    RINGFENCE_ASSIGN(const place::Method one, place::ParseMethod(method));
    plan.methods = {one};
  }
  RINGFENCE_ASSIGN(plan.options.seed, NumberOr(parsed, "seed", 1, 0, 1'000'000'000));
  RINGFENCE_ASSIGN(plan.runs, NumberOr(parsed, "runs", 1, 1, kRunsMax));
  RINGFENCE_ASSIGN(const std::uint64_t mig_nodes, NumberOr(parsed, "mig-nodes", 200, 1, 10'000));
  plan.mig_nodes = static_cast<std::uint32_t>(mig_nodes);
  RINGFENCE_TRY(ReadInput(parsed, plan));
  return plan;
}

Result<int> Replay(Invocation& invocation) {
  RINGFENCE_ASSIGN(Plan plan, PlanOf(invocation.parsed));
  Console& console = invocation.console;
  JsonArray rows;
  Table table({"METHOD", "ALLOCATED", "AT 100 %", "PODS PLACED", "IDLE", "FRAGMENTS", "VIOLATIONS",
               "P50", "P99"});
  std::uint64_t violations = 0;
  for (const place::Method method : plan.methods) {
    Runs runs;
    place::ReplayOptions options = plan.options;
    options.method = method;
    for (std::uint64_t i = 0; i < plan.runs; ++i) {
      options.seed = plan.options.seed + i;
      if (plan.mig) {
        plan.input = place::MakeMigMix(options.seed, plan.mig_nodes);
      }
      runs.reports.push_back(
          place::Replay(plan.input.nodes, plan.input.pods, options, NowMicroseconds));
      console.Progress(std::string(place::Name(method)) + " seed " + std::to_string(options.seed));
    }
    violations += runs.Sum(&place::ReplayReport::violations);
    const std::vector<double> times = runs.Times();
    const double at_100 = runs.MeanAt(1.0);
    table.Add({std::string(place::Name(method)),
               Percent(runs.Mean(&place::ReplayReport::allocated)),
               at_100 < 0 ? "" : Percent(at_100),
               std::to_string(runs.Sum(&place::ReplayReport::placed)) + " of " +
                   std::to_string(runs.Sum(&place::ReplayReport::pods)),
               Percent(runs.Mean(&place::ReplayReport::idle)),
               Percent(runs.Mean(&place::ReplayReport::fragments)),
               std::to_string(runs.Sum(&place::ReplayReport::violations)),
               Micros(place::Percentile(times, 50)), Micros(place::Percentile(times, 99))});
    rows.push_back(ToJson(method, plan.options.seed, runs));
  }
  if (console.table()) {
    table.Print(console);
  } else if (rows.size() == 1) {
    console.Show(rows.front());
  } else {
    console.Show(rows);
  }
  return violations == 0 ? 0 : 1;
}

}  // namespace

CommandTable PlaceCommands() {
  return {{
      .path = "place replay",
      .group = Group::kCluster,
      .summary = "Place the pods of a trace on its nodes, and say how much of the GPUs was used.",
      .details =
          "Offline. Reads CSV in the form of the GPU-sharing trace of 2023 (columns sn, "
          "cpu_milli,\n"
          "memory_mib, gpu, model; and name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec,\n"
          "creation_time). Experiments: trace places the pods in their order, none leaving;\n"
          "inflate draws pods at random from them until they ask for 130 % of the GPUs; mig makes\n"
          "a cluster and a mix of MIG slices of its own. docs/placement.md has the methods.",
      .options =
          {{.name = "nodes", .value = "FILE", .help = "the nodes", .completes = Completes::kFile},
           {.name = "pods", .value = "FILE", .help = "the pods", .completes = Completes::kFile},
           {.name = "method",
            .value = "NAME",
            .help = "how to choose (default ringfence); all compares",
            .completes = Completes::kWords,
            .words = "all ringfence fgd first-fit best-fit random dot-product packing "
                     "clustering"},
           {.name = "experiment",
            .value = "NAME",
            .help = "trace (default), inflate or mig",
            .completes = Completes::kWords,
            .words = "trace inflate mig"},
           {.name = "seed", .value = "N", .help = "of the first run's dice (default 1)"},
           {.name = "runs", .value = "N", .help = "so many, each with the next seed"},
           {.name = "mig-nodes", .value = "N", .help = "size of mig's cluster (default 200)"}},
      .examples = {{"ringfence place replay --nodes nodes.csv --pods pods.csv",
                    "the trace as it is"},
                   {"ringfence place replay --nodes nodes.csv --pods pods.csv --method all "
                    "--experiment inflate --runs 10",
                    "compare the methods"},
                   {"ringfence place replay --experiment mig --method fgd -o json", "MIG slices"}},
      .exit_codes = "0 nothing was given twice, 1 something was",
      .handler = Replay,
  }};
}

}  // namespace ringfence::cli
