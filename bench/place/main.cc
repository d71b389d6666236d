// How long a placement takes as the fleet grows. For each size: a fleet of nodes with eight GPUs is
// filled to nine tenths with a mix of 144 demands, then leases come and go at random; each decision
// is timed with the change it makes. One thread. A run is the same each time, so it is done several
// times, and of each decision the least time counts: what else the machine did is not in it.
//
//   place [--nodes N,N,...] [--decisions N] [--repeat N] [--method NAME]       prints JSON

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "place/replay.h"

namespace place = ringfence::place;

namespace {

double Wall() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Time on the core: what else the machine does is not counted.
double Cpu() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// Demands as a shared cluster sees them: no GPU, shares, one, two, four, eight GPUs, each with some
// amounts of CPU and memory.
std::vector<place::TypicalTask> Tasks() {
  struct Size {
    place::What what;
    std::uint32_t gpus, milli;
    double weight;
  };
  const std::vector<Size> sizes = {
      {place::What::kNoGpu, 0, 0, 12},  {place::What::kShare, 0, 100, 4},
      {place::What::kShare, 0, 200, 6}, {place::What::kShare, 0, 250, 6},
      {place::What::kShare, 0, 330, 6}, {place::What::kShare, 0, 470, 9},
      {place::What::kShare, 0, 500, 6}, {place::What::kShare, 0, 650, 3},
      {place::What::kShare, 0, 810, 6}, {place::What::kWhole, 1, 0, 36},
      {place::What::kWhole, 2, 0, 3},   {place::What::kWhole, 8, 0, 1},
  };
  std::vector<place::TypicalTask> tasks;
  for (const Size& size : sizes) {
    const std::uint32_t gpus = size.gpus > 0 ? size.gpus : 1;
    for (const std::uint32_t cpus : {2U, 4U, 8U, 11U}) {
      for (const std::uint32_t gib : {2U, 4U, 6U}) {
        place::Demand demand{.what = size.what, .gpus = size.gpus, .milli = size.milli};
        demand.cpu_milli = cpus * 1000 * gpus;
        demand.memory_mib = gib * 1024 * cpus * gpus;
        tasks.push_back({demand, size.weight});
      }
    }
  }
  return tasks;
}

struct Run {
  place::NodeIndex index;
  const std::vector<place::TypicalTask>& tasks;
  std::discrete_distribution<std::size_t> draw;
  std::mt19937_64 dice{1};
  struct Held {
    place::Choice choice;
    std::uint64_t milli;
  };
  std::vector<Held> held = {};
  std::uint64_t used = 0;

  bool Place(std::vector<double>* wall, std::vector<double>* cpu) {
    const place::Demand& demand = tasks[draw(dice)].demand;
    const std::uint32_t number = index.DemandNumber(demand);
    const double wall_begun = Wall();
    const double cpu_begun = Cpu();
    const auto choice = index.Choose(number);
    if (choice) {
      index.Apply(*choice);
    }
    const double cpu_done = Cpu();
    if (wall != nullptr) {
      wall->push_back(Wall() - wall_begun);
      cpu->push_back(cpu_done - cpu_begun);
    }
    if (choice) {
      held.push_back({*choice, place::MilliOf(demand, {})});
      used += held.back().milli;
    }
    return choice.has_value();
  }
  void ReleaseOne() {
    std::swap(held[dice() % held.size()], held.back());
    index.Release(held.back().choice);
    used -= held.back().milli;
    held.pop_back();
  }
};

struct Times {
  std::vector<double> wall, cpu;  // of each decision, microseconds
  std::size_t states = 0;
  std::uint32_t placed = 0;
  double allocated = 0;
};

Times OneRun(std::uint32_t nodes, std::uint32_t decisions, place::Method method) {
  const std::vector<place::TypicalTask> tasks = Tasks();
  const std::vector<place::NodeKind> kinds = {{"A", 96000, 393216, 8, 0, nullptr},
                                              {"B", 128000, 786432, 8, 0, nullptr},
                                              {"C", 64000, 262144, 8, 0, nullptr},
                                              {"D", 192000, 1048576, 8, 0, nullptr}};
  std::vector<double> weights;
  for (const place::TypicalTask& task : tasks) {
    weights.push_back(task.weight);
  }
  place::Workload workload(tasks, kinds);
  Run run{place::NodeIndex(workload, method), tasks,
          std::discrete_distribution<std::size_t>(weights.begin(), weights.end())};
  for (std::uint32_t i = 0; i < nodes; ++i) {
    run.index.AddNode(static_cast<std::uint16_t>(i % kinds.size()));
  }
  for (const place::TypicalTask& task : tasks) {
    run.index.DemandNumber(task.demand);
  }
  const std::uint64_t enough = std::uint64_t{nodes} * 8 * 1000 * 9 / 10;
  while (run.used < enough) {
    run.Place(nullptr, nullptr);
  }
  Times times;
  for (std::uint32_t i = 0; i < decisions; ++i) {
    while (run.used > enough) {
      run.ReleaseOne();
    }
    times.placed += run.Place(&times.wall, &times.cpu) ? 1 : 0;
  }
  times.states = run.index.states();
  times.allocated = static_cast<double>(run.used) / (nodes * 8000.0);
  return times;
}

void Measure(std::uint32_t nodes, std::uint32_t decisions, std::uint32_t repeat,
             place::Method method, bool last) {
  Times best = OneRun(nodes, decisions, method);
  for (std::uint32_t i = 1; i < repeat; ++i) {
    const Times again = OneRun(nodes, decisions, method);
    for (std::size_t k = 0; k < best.cpu.size(); ++k) {
      best.cpu[k] = std::min(best.cpu[k], again.cpu[k]);
      best.wall[k] = std::min(best.wall[k], again.wall[k]);
    }
  }
  std::sort(best.wall.begin(), best.wall.end());
  std::sort(best.cpu.begin(), best.cpu.end());
  std::printf(
      "  {\"nodes\": %u, \"gpus\": %u, \"states\": %zu, \"allocated\": %.4f, "
      "\"decisions\": %u, \"placed\": %u, \"repeat\": %u, "
      "\"cpu_us\": {\"p50\": %.2f, \"p99\": %.2f, \"p999\": %.2f}, "
      "\"wall_us\": {\"p50\": %.2f, \"p99\": %.2f, \"p999\": %.2f}}%s\n",
      nodes, nodes * 8, best.states, best.allocated, decisions, best.placed, repeat,
      place::Percentile(best.cpu, 50), place::Percentile(best.cpu, 99),
      place::Percentile(best.cpu, 99.9), place::Percentile(best.wall, 50),
      place::Percentile(best.wall, 99), place::Percentile(best.wall, 99.9), last ? "" : ",");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::uint32_t> sizes = {100, 1000, 10000, 100000};
  std::uint32_t decisions = 20000;
  std::uint32_t repeat = 3;
  place::Method method = place::Method::kRingfence;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--nodes") {
      sizes.clear();
      for (const char* at = argv[i + 1]; *at != '\0';) {
        char* end = nullptr;
        sizes.push_back(static_cast<std::uint32_t>(std::strtoul(at, &end, 10)));
        at = *end == ',' ? end + 1 : end;
        if (sizes.back() == 0 || (*end != ',' && *end != '\0')) {
          std::fprintf(stderr, "place: --nodes takes numbers with commas between\n");
          return 2;
        }
      }
    } else if (name == "--decisions") {
      decisions = static_cast<std::uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
    } else if (name == "--repeat") {
      repeat = static_cast<std::uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
    } else if (const auto parsed = place::ParseMethod(argv[i + 1]);
               name == "--method" && parsed.has_value()) {
      method = *parsed;
    } else {
      std::fprintf(stderr,
                   "usage: place [--nodes N,N] [--decisions N] [--repeat N] [--method NAME]\n");
      return 2;
    }
  }
  std::printf("[\n");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Measure(sizes[i], decisions, repeat, method, i + 1 == sizes.size());
  }
  std::printf("]\n");
  return 0;
}
