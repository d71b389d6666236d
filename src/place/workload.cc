#include "place/workload.h"

#include <cmath>
#include <numeric>
#include <set>

#include "base/check.h"
#include "place/filling.h"

namespace ringfence::place {
namespace {

constexpr std::size_t kMigCodes = 0x200;
constexpr double kLossReach = 8;  // deviations either side; beyond, the loss function is a line
constexpr double kLossSteps = 64;
constexpr std::size_t kRootStep = 10;

std::uint16_t Rank(const std::vector<std::uint32_t>& steps, std::uint32_t value) {
  return static_cast<std::uint16_t>(std::upper_bound(steps.begin(), steps.end(), value) -
                                    steps.begin());
}

std::vector<std::uint32_t> Sorted(std::set<std::uint32_t> values) {
  return {values.begin(), values.end()};
}

std::uint32_t Size(const NodeKind& kind, const Form& form) {
  if (form.kind != Form::Kind::kMig) {
    return form.milli;
  }
  return kind.board->profiles[form.profile].slices * kIdle / kind.board->slices;
}

// The best filling of every amount of free room, at given prices.
struct Fillings {
  std::vector<double> share = std::vector<double>(kIdle + 1, 0);
  std::vector<int> share_item = std::vector<int>(kIdle + 1, -1);
  std::vector<double> mig;
  std::vector<std::pair<int, std::uint32_t>> mig_item;  // and where it begins
};

class Filler {
 public:
  Filler(const NodeKind& kind, std::vector<Form> items) : kind_(kind), items_(std::move(items)) {
    for (const Form& item : items_) {
      any_mig_ = any_mig_ || item.kind == Form::Kind::kMig;
    }
  }

  Fillings At(const std::vector<double>& prices) const {
    Fillings best;
    for (std::size_t free = 1; free <= kIdle; ++free) {
      best.share[free] = best.share[free - 1];
      for (std::size_t i = 0; i < items_.size(); ++i) {
        const std::size_t size = items_[i].milli;
        if (items_[i].kind != Form::Kind::kMig && size <= free &&
            best.share[free - size] + prices[i] > best.share[free] + 1e-12) {
          best.share[free] = best.share[free - size] + prices[i];
          best.share_item[free] = static_cast<int>(i);
        }
      }
    }
    if (any_mig_) {
      best.mig.assign(kMigCodes, 0);
      best.mig_item.assign(kMigCodes, {-1, 0});
      for (std::size_t code = kMigCodes; code-- > 0;) {  // more taken has a larger code
        Cut(static_cast<GpuCode>(code | kMigFlag), prices, best);
      }
    }
    return best;
  }

  BestPattern Best(const std::vector<double>& prices) const {
    const Fillings best = At(prices);
    BestPattern found{Pattern(items_.size(), 0), best.share[kIdle]};
    if (any_mig_ && best.mig[0] > found.worth) {
      found.worth = best.mig[0];
      for (GpuCode code = kMigFlag; best.mig_item[code & 0x1FFU].first >= 0;) {
        const auto [item, start] = best.mig_item[code & 0x1FFU];
        found.pattern[static_cast<std::size_t>(item)] += 1;
        code = Take(kind_, items_[static_cast<std::size_t>(item)], code, start);
      }
      return found;
    }
    for (std::size_t free = kIdle; free > 0;) {
      const int item = best.share_item[free];
      if (item < 0) {
        --free;
        continue;
      }
      found.pattern[static_cast<std::size_t>(item)] += 1;
      free -= items_[static_cast<std::size_t>(item)].milli;
    }
    return found;
  }

 private:
  void Cut(GpuCode code, const std::vector<double>& prices, Fillings& best) const {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].kind != Form::Kind::kMig) {
        continue;
      }
      for (const std::uint32_t start : StartsOf(kind_, items_[i])) {
        if (!Fits(kind_, items_[i], code, start, false)) {
          continue;
        }
        const double worth = prices[i] + best.mig[Take(kind_, items_[i], code, start) & 0x1FFU];
        if (worth > best.mig[code & 0x1FFU] + 1e-12) {
          best.mig[code & 0x1FFU] = worth;
          best.mig_item[code & 0x1FFU] = {static_cast<int>(i), start};
        }
      }
    }
  }

  const NodeKind& kind_;
  std::vector<Form> items_;
  bool any_mig_ = false;
};

}  // namespace

Workload::Workload(std::vector<TypicalTask> tasks, std::vector<NodeKind> kinds,
                   WorthWeights weights)
    : tasks_(std::move(tasks)), kinds_(std::move(kinds)), weights_(weights) {
  RINGFENCE_CHECK(kinds_.size() <= kKindsMax);
  double sum = 0;
  for (const TypicalTask& task : tasks_) {
    sum += task.weight;
  }
  std::set<std::uint32_t> cpus;
  std::set<std::uint32_t> memories;
  std::set<std::uint32_t> shares = {kIdle};
  for (TypicalTask& task : tasks_) {
    task.weight /= sum;
    cpus.insert(task.demand.cpu_milli);
    memories.insert(task.demand.memory_mib);
  }
  std::map<std::vector<std::pair<std::uint64_t, double>>, std::shared_ptr<const Prices>> known;
  double gpus = 0;
  std::vector<bool> counted(tasks_.size(), false);
  for (const NodeKind& kind : kinds_) {
    std::map<std::uint64_t, Item> items;  // one for each size, in one order for all kinds
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      const std::vector<Form> forms = FormsOn(tasks_[t].demand, kind);
      const Form* least = nullptr;
      for (const Form& form : forms) {
        if (form.kind == Form::Kind::kShare) {
          shares.insert(form.milli);
        }
        if (least == nullptr || Size(kind, form) < Size(kind, *least)) {
          least = &form;
        }
      }
      if (least == nullptr || least->kind == Form::Kind::kNoGpu) {
        continue;
      }
      const double weight = tasks_[t].weight * least->gpus;
      if (!counted[t]) {
        counted[t] = true;
        gpus += weight * Size(kind, *least) / kIdle;
        cpu_per_gpu_ += tasks_[t].weight * tasks_[t].demand.cpu_milli;
        memory_per_gpu_ += tasks_[t].weight * tasks_[t].demand.memory_mib;
      }
      // A price for each of many sizes would cost much and say little: then they are rounded up.
      Form one = *least;
      one.gpus = 1;
      if (tasks_.size() > kItemsMax && one.kind == Form::Kind::kShare) {
        one.milli = static_cast<std::uint16_t>((one.milli + 9) / 10 * 10);
      }
      const std::uint64_t key = one.kind == Form::Kind::kMig ? 0x10000U + one.profile : one.milli;
      items.try_emplace(key, Item{one, 0}).first->second.demand += weight;
    }
    std::vector<Item> list;
    std::vector<std::pair<std::uint64_t, double>> signature = {
        {reinterpret_cast<std::uintptr_t>(kind.board), 0}};
    for (const auto& [key, item] : items) {
      list.push_back(item);
      signature.emplace_back(key, item.demand);
    }
    auto& prices = known[signature];
    if (prices == nullptr) {
      prices = Price(kind, list);
    }
    prices_.push_back(prices);
  }
  cpu_per_gpu_ = gpus > 0 ? cpu_per_gpu_ / gpus : 0;
  memory_per_gpu_ = gpus > 0 ? memory_per_gpu_ / gpus : 0;
  cpu_steps_ = Sorted(std::move(cpus));
  memory_steps_ = Sorted(std::move(memories));
  share_steps_ = Sorted(std::move(shares));
  for (std::uint32_t milli = 0; milli <= kIdle; ++milli) {
    share_rank_.push_back(Rank(share_steps_, milli));
  }
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    auto& hosts = hosts_.emplace_back();
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      hosts.push_back(
          HostsOf(kinds_[kind], tasks_[t].demand, FormsOn(tasks_[t].demand, kinds_[kind])));
    }
  }
  rows_.resize(kinds_.size());
  for (auto& rows : rows_) {
    rows.resize((cpu_steps_.size() + 1) * (memory_steps_.size() + 1));
  }
  for (int step = 0; step <= 2 * kLossReach * kLossSteps; ++step) {
    const double z = step / kLossSteps - kLossReach;
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * 3.14159265358979323846);
    loss_.push_back(static_cast<float>(density - z * std::erfc(z / std::sqrt(2.0)) / 2));
  }
  for (std::size_t free = 0; free <= kGpusPerNodeMax * kIdle; free += kRootStep) {
    root_.push_back(static_cast<float>(std::sqrt(static_cast<double>(free) / kIdle)));
  }
}

std::shared_ptr<const Workload::Prices> Workload::Price(const NodeKind& kind,
                                                        const std::vector<Item>& items) const {
  std::vector<Form> forms;
  std::vector<double> demands;
  std::vector<double> alone;
  double volume = 0;
  for (const Item& item : items) {
    forms.push_back(item.form);
    demands.push_back(item.demand);
    alone.push_back(item.form.kind == Form::Kind::kMig
                        ? kind.board->profiles[item.form.profile].count_max
                        : kIdle / item.form.milli);
    volume += item.demand * Size(kind, item.form) / kIdle;
  }
  auto prices = std::make_shared<Prices>();
  if (items.empty()) {
    prices->share.assign(kIdle + 1, 0);
    return prices;
  }
  const Filler filler(kind, forms);
  const Packing packing =
      PackItems(demands, alone, [&](const std::vector<double>& at) { return filler.Best(at); });
  const Fillings best = filler.At(packing.prices);
  prices->share.assign(best.share.begin(), best.share.end());
  prices->mig.assign(best.mig.begin(), best.mig.end());
  prices->bound = packing.bins > 0 ? volume / packing.bins : 1;
  if (!prices->mig.empty()) {  // an idle GPU can be either
    const float idle = std::max(prices->share[kIdle], prices->mig[0]);
    prices->share[kIdle] = idle;
    prices->mig[0] = idle;
  }
  return prices;
}

FitRow Workload::MakeRow(std::uint16_t kind, std::uint32_t cpu_milli,
                         std::uint32_t memory_mib) const {
  FitRow row;
  row.share.assign(share_steps_.size() + 1, 0);
  const auto any_mig = [](const Hosts& hosts) { return !hosts.mig.empty(); };
  if (std::any_of(hosts_[kind].begin(), hosts_[kind].end(), any_mig)) {
    row.mig.assign(kMigCodes, 0);
  }
  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    const auto& [demand, weight] = tasks_[t];
    if (demand.cpu_milli > cpu_milli || demand.memory_mib > memory_mib) {
      continue;
    }
    const Hosts& hosts = hosts_[kind][t];
    const double added = weight;
    if (hosts.several > 0) {
      row.several[hosts.several] += added;
    }
    if (hosts.share_rank > 0) {
      row.share[hosts.share_rank] += added;
    }
    for (const std::uint16_t code : hosts.mig) {
      row.mig[code] += added;
    }
  }
  std::partial_sum(row.several.begin(), row.several.end(), row.several.begin());
  std::partial_sum(row.share.begin(), row.share.end(), row.share.begin());
  return row;
}

Workload::Hosts Workload::HostsOf(const NodeKind& kind, const Demand& demand,
                                  const std::vector<Form>& forms) const {
  Hosts hosts;
  if (forms.empty() || forms.front().kind == Form::Kind::kNoGpu) {
    return hosts;
  }
  if (forms.front().gpus > 1) {
    hosts.several = forms.front().gpus;
    return hosts;
  }
  const auto takes = [&](GpuCode code) {
    return std::any_of(forms.begin(), forms.end(), [&](const Form& form) {
      const auto& starts = StartsOf(kind, form);
      return std::any_of(starts.begin(), starts.end(), [&](std::uint32_t start) {
        return Fits(kind, form, code, start, demand.reshape);
      });
    });
  };
  for (std::uint16_t rank = 1; rank <= share_steps_.size() && hosts.share_rank == 0; ++rank) {
    if (takes(static_cast<GpuCode>(share_steps_[rank - 1]))) {
      hosts.share_rank = rank;  // and so does every GPU with more
    }
  }
  for (std::uint16_t code = 0; kind.board != nullptr && code < kMigCodes; ++code) {
    if (takes(static_cast<GpuCode>(code | kMigFlag))) {
      hosts.mig.push_back(code);
    }
  }
  return hosts;
}

const FitRow& Workload::Row(std::uint16_t kind, std::uint32_t cpu_milli, std::uint32_t memory_mib) {
  const std::size_t cpu = Rank(cpu_steps_, cpu_milli);
  const std::size_t memory = Rank(memory_steps_, memory_mib);
  std::unique_ptr<FitRow>& row = rows_[kind][cpu * (memory_steps_.size() + 1) + memory];
  if (row == nullptr) {
    row = std::make_unique<FitRow>(MakeRow(kind, cpu_milli, memory_mib));
  }
  return *row;
}

// The part of what will be needed that will likely be missing: what free GPUs need is taken as
// normal, with a mean and a deviation in proportion to the workload's own.
double Workload::Shortfall(double have, double per_gpu, double free_gpus, double root) const {
  const double need = weights_.need * per_gpu * free_gpus;
  const double deviation = weights_.doubt * per_gpu * root;
  if (need <= 0) {
    return 0;
  }
  if (deviation <= 0) {
    return std::max(0.0, 1 - have / need);
  }
  const double z = (have - need) / deviation;
  if (z >= kLossReach) {
    return 0;
  }
  const double loss =
      z <= -kLossReach ? -z : loss_[static_cast<std::size_t>((z + kLossReach) * kLossSteps + 0.5)];
  return std::min(1.0, deviation * loss / need);
}

double Workload::Sufficiency(std::uint32_t free_milli, std::uint32_t cpu_milli,
                             std::uint32_t memory_mib) const {
  if (free_milli == 0) {
    return 1;
  }
  const double gpus = static_cast<double>(free_milli) / kIdle;
  const double root = root_[free_milli / kRootStep];
  return 1 - std::max(Shortfall(cpu_milli, cpu_per_gpu_, gpus, root),
                      Shortfall(memory_mib, memory_per_gpu_, gpus, root));
}

double Workload::Usable(const NodeState& state) {
  const FitRow& row = Row(state.kind, state.cpu_milli, state.memory_mib);
  double usable = 0;
  std::size_t idle = 0;
  for (std::size_t i = 0; i < state.gpus; ++i) {
    usable += static_cast<double>(FreeMilli(kinds_[state.kind], state.codes[i])) *
              UsableShare(row, state.codes[i]);
    idle += state.codes[i] == kIdle || state.codes[i] == kMigFlag ? 1 : 0;
  }
  return usable + static_cast<double>(idle) * kIdle * row.several[idle];
}

double Workload::Worth(const NodeState& state) {
  double filling = 0;
  std::uint32_t free = 0;
  for (std::size_t i = 0; i < state.gpus; ++i) {
    filling += Filling(state.kind, state.codes[i]);
    free += FreeMilli(kinds_[state.kind], state.codes[i]);
  }
  return (weights_.filling * kIdle * filling + (1 - weights_.filling) * Usable(state)) *
         Sufficiency(free, state.cpu_milli, state.memory_mib);
}

}  // namespace ringfence::place
