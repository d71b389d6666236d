#include "place/loss.h"

#include <algorithm>
#include <string>

namespace ringfence::place {
namespace {

constexpr std::string_view kNames[] = {"first-fit", "best-fit",   "random", "dot-product",
                                       "packing",   "clustering", "fgd",    "ringfence"};

constexpr double kTie = 1e-4;  // of a thousandth of a GPU: decides between equals only

bool IsIdle(GpuCode code) { return code == kIdle || code == kMigFlag; }

}  // namespace

std::string_view Name(Method method) { return kNames[static_cast<std::size_t>(method)]; }

Result<Method> ParseMethod(std::string_view text) {
  std::string all;
  for (const Method method : kMethods) {
    if (Name(method) == text) {
      return method;
    }
    all += (all.empty() ? "" : ", ") + std::string(Name(method));
  }
  return Error{Code::kInvalidArgument, "no method \"" + std::string(text) + "\"",
               "there are " + all, "method"};
}

std::uint8_t SortOf(const Form& form) {
  switch (form.kind) {
    case Form::Kind::kNoGpu:
      return 1;
    case Form::Kind::kShare:
      return 2;
    case Form::Kind::kMig:
      return 4;
    case Form::Kind::kWhole:
      return static_cast<std::uint8_t>(form.gpus == 1   ? 8
                                       : form.gpus == 2 ? 16
                                       : form.gpus <= 4 ? 32
                                                        : 64);
  }
  return 0;
}

struct Losses::Left {
  std::uint32_t cpu_milli = 0;
  std::uint32_t memory_mib = 0;
  double usable = 0;  // kFgd and kRingfence: without tasks of several GPUs
  const FitRow* row = nullptr;
  // Workload::Sufficiency of the last amount asked for: most options leave the same.
  std::uint32_t sufficiency_free = ~0U;
  double sufficiency = 0;
};

Losses::Losses(Workload& workload, Method method) : workload_(workload), method_(method) {
  for (const NodeKind& kind : workload.kinds()) {
    cpu_most_ = std::max(cpu_most_, static_cast<double>(kind.cpu_milli));
    memory_most_ = std::max(memory_most_, static_cast<double>(kind.memory_mib));
    gpus_most_ = std::max(gpus_most_, static_cast<double>(kind.gpus * kIdle));
  }
  cpu_tie_ = kTie / cpu_most_;
  gpu_tie_ = kTie / gpus_most_;
}

Measure Losses::MeasureOf(const NodeState& state) {
  Measure measure;
  const NodeKind& kind = workload_.kinds()[state.kind];
  for (std::size_t i = 0; i < state.gpus; ++i) {
    const GpuCode code = state.codes[i];
    measure.free_milli += FreeMilli(kind, code);
    measure.idle += IsIdle(code) ? 1 : 0;
    measure.filling += workload_.Filling(state.kind, code);
  }
  if (method_ == Method::kRingfence) {
    measure.potential = workload_.Worth(state);
  } else if (method_ == Method::kFgd) {
    measure.potential = workload_.Usable(state);
  }
  return measure;
}

double Losses::Loss(const NodeState& state, const Measure& measure, const Demand& demand,
                    const Form& form, Left& left, GpuCode before, GpuCode after) {
  const NodeKind& kind = workload_.kinds()[state.kind];
  const std::size_t count = form.gpus;
  const std::uint32_t had = FreeMilli(kind, before);
  const std::uint32_t has = FreeMilli(kind, after);
  const std::uint32_t free = measure.free_milli - static_cast<std::uint32_t>(count) * (had - has);
  if (demand.spread) {
    return -static_cast<double>(free) / gpus_most_ - left.cpu_milli / cpu_most_;
  }
  const std::size_t idle = measure.idle - (IsIdle(before) && count > 0 ? count : 0);
  switch (method_) {
    case Method::kFgd:
    case Method::kRingfence: {
      double usable = left.usable + static_cast<double>(idle) * kIdle * left.row->several[idle];
      double filling = measure.filling;
      if (count > 0) {
        usable += static_cast<double>(count) * (has * workload_.UsableShare(*left.row, after) -
                                                had * workload_.UsableShare(*left.row, before));
        filling += static_cast<double>(count) *
                   (workload_.Filling(state.kind, after) - workload_.Filling(state.kind, before));
      }
      // Of equals the node with least left, as in best-fit.
      const double tie = left.cpu_milli * cpu_tie_ + free * gpu_tie_;
      if (method_ == Method::kFgd) {
        return measure.potential - usable + tie;
      }
      if (left.sufficiency_free != free) {
        left.sufficiency_free = free;
        left.sufficiency = workload_.Sufficiency(free, left.cpu_milli, left.memory_mib);
      }
      const double weight = workload_.weights().filling;
      return measure.potential + tie -
             (weight * kIdle * filling + (1 - weight) * usable) * left.sufficiency;
    }
    case Method::kDotProduct:
      return (state.cpu_milli / cpu_most_) * (demand.cpu_milli / cpu_most_) +
             (state.memory_mib / memory_most_) * (demand.memory_mib / memory_most_) +
             (measure.free_milli / gpus_most_) *
                 (static_cast<double>(measure.free_milli - free) / gpus_most_) +
             1e-9 * has;
    case Method::kPacking: {
      const bool used = measure.idle < state.gpus || state.cpu_milli < kind.cpu_milli;
      const int tier = count > 0 && idle == measure.idle ? 0 : used ? 1 : 2;
      return tier * 100.0 + static_cast<double>(idle) + free / gpus_most_ + 1e-6 * has;
    }
    case Method::kClustering: {
      if (count == 0) {
        break;  // no GPU: nothing to cluster
      }
      const std::uint8_t own = SortOf(form);
      const int tier = state.sorts == own         ? 0
                       : (state.sorts & own) != 0 ? 1
                       : state.sorts == 0         ? 2
                                                  : 3;
      return tier * 100.0 + free / gpus_most_ + 1e-6 * has;
    }
    case Method::kBestFit:
    case Method::kFirstFit:
    case Method::kRandom:
      break;
  }
  return free / gpus_most_ + 0.1 * left.cpu_milli / cpu_most_ + 1e-6 * has;
}

template <typename Visit>
void Losses::ForEach(const NodeState& state, const Measure& measure, const Forms& forms,
                     Visit&& visit) {
  const Demand& demand = forms.demand;
  if (demand.cpu_milli > state.cpu_milli || demand.memory_mib > state.memory_mib ||
      forms.on[state.kind].empty()) {
    return;
  }
  const NodeKind& kind = workload_.kinds()[state.kind];
  const bool measured = method_ == Method::kFgd || method_ == Method::kRingfence;
  Left left{state.cpu_milli - demand.cpu_milli, state.memory_mib - demand.memory_mib};
  bool ready = false;
  const auto prepare = [&] {  // only once something fits: most nodes of a busy fleet are full
    ready = true;
    if (!measured) {
      return;
    }
    left.row = &workload_.Row(state.kind, left.cpu_milli, left.memory_mib);
    GpuCode last = 0;
    double of_last = 0;  // equal GPUs lie side by side
    for (std::size_t i = 0; i < state.gpus; ++i) {
      const GpuCode code = state.codes[i];
      if (i == 0 || code != last) {
        last = code;
        of_last = FreeMilli(kind, code) * workload_.UsableShare(*left.row, code);
      }
      left.usable += of_last;
    }
  };
  const auto offer = [&](const Form& form, GpuCode code, std::uint32_t start) {
    if (!ready) {
      prepare();
    }
    visit(Option{Loss(state, measure, demand, form, left, code, Take(kind, form, code, start)),
                 form, code, start});
  };
  for (const Form& form : forms.on[state.kind]) {
    if (form.kind == Form::Kind::kNoGpu) {
      offer(form, 0, 0);
      continue;
    }
    if (form.kind == Form::Kind::kWhole) {
      std::size_t fitting = 0;
      GpuCode code = 0;  // the last that fits: one that is not cut, where there is one
      for (std::size_t i = 0; i < state.gpus; ++i) {
        if (Fits(kind, form, state.codes[i], 0, demand.reshape)) {
          ++fitting;
          code = state.codes[i];
        }
      }
      if (fitting >= form.gpus) {
        offer(form, code, 0);
      }
      continue;
    }
    GpuCode last = 0;
    for (std::size_t i = 0; i < state.gpus; ++i) {
      const GpuCode code = state.codes[i];
      if ((i > 0 && code == last) || code == 0) {
        continue;
      }
      last = code;
      for (const std::uint32_t start : StartsOf(kind, form)) {
        if (Fits(kind, form, code, start, demand.reshape)) {
          offer(form, code, start);
        }
      }
    }
  }
}

bool Losses::Best(const NodeState& state, const Measure& measure, const Forms& forms,
                  Option& best) {
  bool found = false;
  ForEach(state, measure, forms, [&](const Option& option) {
    if (!found || option.loss < best.loss) {
      best = option;
      found = true;
    }
  });
  return found;
}

std::vector<Option> Losses::All(const NodeState& state, const Measure& measure,
                                const Forms& forms) {
  std::vector<Option> all;
  ForEach(state, measure, forms, [&](const Option& option) { all.push_back(option); });
  std::stable_sort(all.begin(), all.end(),
                   [](const Option& a, const Option& b) { return a.loss < b.loss; });
  return all;
}

}  // namespace ringfence::place
