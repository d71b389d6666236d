#include "place/replay.h"

#include <algorithm>
#include <bit>
#include <random>

#include "base/check.h"

namespace ringfence::place {
namespace {

// Counts again what was given, by GPU and node, without the index's own arithmetic.
class Auditor {
 public:
  explicit Auditor(const TraceNodes& nodes) : nodes_(nodes) {
    for (const std::uint16_t kind : nodes.nodes) {
      const NodeKind& of = nodes.kinds[kind];
      books_.push_back({0, 0, std::vector<Gpu>(of.gpus)});
    }
  }

  void Note(const Demand& demand, const Choice& choice) {
    const NodeKind& kind = nodes_.kinds[nodes_.nodes[choice.node]];
    Book& book = books_[choice.node];
    book.cpu += demand.cpu_milli;
    book.memory += demand.memory_mib;
    bool good = book.cpu <= kind.cpu_milli && book.memory <= kind.memory_mib;
    const bool of_model = demand.what == What::kNoGpu || demand.models.empty() ||
                          std::count(demand.models.begin(), demand.models.end(), kind.model) > 0;
    good = good && of_model;
    const std::uint32_t gpus = demand.what == What::kNoGpu   ? 0
                               : demand.what == What::kWhole ? demand.gpus
                                                             : 1;
    good = good && choice.form.gpus == gpus;
    for (std::uint32_t i = 0; i < gpus && i < choice.form.gpus; ++i) {
      Gpu& gpu = book.gpus.at(choice.gpus[i]);
      if (demand.what == What::kProfile) {
        const std::size_t profile = kind.board->Find(demand.profile);
        gpu.instances.push_back({profile, choice.start});
        good = good && gpu.milli == 0 &&
               gpu::CheckMigInstances(*kind.board, gpu.instances).has_value();
      } else {
        gpu.milli += demand.what == What::kWhole ? kIdle : demand.milli;
        good = good && gpu.milli <= kIdle && gpu.instances.empty();
      }
    }
    violations_ += good ? 0 : 1;
  }
  std::uint64_t violations() const { return violations_; }

 private:
  struct Gpu {
    std::uint64_t milli = 0;
    std::vector<gpu::MigInstance> instances;
  };
  struct Book {
    std::uint64_t cpu = 0, memory = 0;
    std::vector<Gpu> gpus;
  };
  const TraceNodes& nodes_;
  std::vector<Book> books_;
  std::uint64_t violations_ = 0;
};

void CountLeft(const NodeIndex& index, ReplayReport& report) {
  double idle = 0;
  double fragments = 0;
  for (std::uint32_t node = 0; node < index.nodes(); ++node) {
    const NodeKind& kind = index.kinds()[index.KindOf(node)];
    for (std::uint32_t gpu = 0; gpu < kind.gpus; ++gpu) {
      const GpuCode code = index.Codes(node)[gpu];
      const std::uint32_t free = FreeMilli(kind, code);
      (free == kIdle ? idle : fragments) += free;
    }
  }
  const double all = static_cast<double>(report.gpus) * kIdle;
  report.idle = idle / all;
  report.fragments = fragments / all;
}

std::uint16_t CommonestKind(const TraceNodes& nodes) {
  std::vector<std::uint64_t> gpus(nodes.kinds.size(), 0);
  for (const std::uint16_t kind : nodes.nodes) {
    gpus[kind] += nodes.kinds[kind].gpus;
  }
  return static_cast<std::uint16_t>(std::max_element(gpus.begin(), gpus.end()) - gpus.begin());
}

}  // namespace

ReplayReport Replay(const TraceNodes& nodes, const std::vector<TracePod>& pods,
                    const ReplayOptions& options, const std::function<double()>& now_us) {
  Workload workload(TypicalOf(pods), nodes.kinds, options.weights);
  NodeIndex index(workload, options.method, options.seed);
  for (const std::uint16_t kind : nodes.nodes) {
    index.AddNode(kind);
  }
  for (const TypicalTask& task : workload.tasks()) {
    index.DemandNumber(task.demand);  // known beforehand, as to a fleet that has run a while
  }
  ReplayReport report;
  report.nodes = nodes.nodes.size();
  report.gpus = nodes.gpus();
  report.filling_bound = workload.FillingBound(CommonestKind(nodes));
  const double capacity = static_cast<double>(report.gpus) * kIdle;
  const double until = capacity * options.arrival_percent / 100;
  Auditor auditor(nodes);
  std::mt19937_64 dice(options.seed);
  double arrived = 0;
  double allocated = 0;
  double next_point = 0.8;
  const bool inflate = options.experiment == Experiment::kInflate;
  for (std::size_t i = 0; inflate ? arrived < until && i < kTraceRowsMax : i < pods.size(); ++i) {
    const Demand& demand = pods[inflate ? dice() % pods.size() : i].demand;
    const auto milli = static_cast<double>(MilliOf(demand, nodes.kinds));
    const double begun = now_us();
    const auto choice = index.Choose(index.DemandNumber(demand));
    if (choice) {
      index.Apply(*choice);
    }
    report.decision_us.push_back(now_us() - begun);
    ++report.pods;
    report.gpu_pods += milli > 0 ? 1 : 0;
    arrived += milli;
    if (choice) {
      auditor.Note(demand, *choice);
      ++report.placed;
      report.gpu_pods_placed += milli > 0 ? 1 : 0;
      allocated += milli;
    }
    if (inflate && capacity > 0 && arrived >= next_point * capacity - 0.5) {
      report.points.push_back({next_point, allocated / capacity});
      next_point += 0.1;
    }
  }
  report.demanded = capacity > 0 ? arrived / capacity : 0;
  report.allocated = capacity > 0 ? allocated / capacity : 0;
  report.violations = auditor.violations();
  report.states = index.states();
  CountLeft(index, report);
  std::sort(report.decision_us.begin(), report.decision_us.end());
  return report;
}

double Percentile(const std::vector<double>& ascending, double percent) {
  if (ascending.empty()) {
    return 0;
  }
  const auto at = static_cast<std::size_t>(percent / 100 * static_cast<double>(ascending.size()));
  return ascending[std::min(at, ascending.size() - 1)];
}

}  // namespace ringfence::place
