// Why there is no place; Placer of place/placer.h.

#include <algorithm>
#include <set>

#include "place/placer.h"
#include "place/tenant_fence.h"

namespace ringfence::place {
namespace {

constexpr std::size_t kTenantsNamed = 3;

std::string Count(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

std::string Asked(const Demand& demand) {
  switch (demand.what) {
    case What::kNoGpu:
      return "no GPU";
    case What::kWhole:
      return Count(demand.gpus, "whole GPU");
    case What::kShare:
      return std::to_string(demand.milli) + " thousandths of a GPU";
    case What::kProfile:
      return "a MIG slice " + demand.profile;
    case What::kGpuMemory:
      return std::to_string(demand.gpu_memory_mib) + " MiB of a GPU's memory";
  }
  return {};
}

std::string Listed(const std::set<std::string>& names) {
  std::string text;
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (shown++ == kTenantsNamed) {
      return text + " and " + std::to_string(names.size() - kTenantsNamed) + " more";
    }
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

}  // namespace

Error Placer::Never(const Request& request) const {
  const Demand& demand = request.demand;
  std::size_t model = 0;
  std::size_t gpus = 0;
  std::size_t could = 0;
  std::uint32_t cpu = 0;
  std::uint32_t memory = 0;
  std::set<std::string> models;
  for (const NodeFacts& node : nodes_) {
    models.insert(node.kind.model);
    could += FormsOn(demand, node.kind).empty() ? 0 : 1;
    const bool of_model =
        demand.models.empty() ||
        std::count(demand.models.begin(), demand.models.end(), node.kind.model) > 0;
    if (of_model) {
      ++model;
      gpus = std::max<std::size_t>(gpus, node.kind.gpus);
      cpu = std::max(cpu, node.kind.cpu_milli);
      memory = std::max(memory, node.kind.memory_mib);
    }
  }
  std::string why;
  std::string field = "demand";
  if (could > 0) {
    why = "only " + Count(could, "node") + " could ever do it, and " +
          std::to_string(request.nodes) + " are asked for";
    field = "nodes";
  } else if (model == 0) {
    why = "no node has GPUs of that model; there are " + Listed(models);
    field = "models";
  } else if (demand.what == What::kWhole && demand.gpus > gpus) {
    why = "the largest node has " + std::to_string(gpus);
    field = "gpus";
  } else if (demand.cpu_milli > cpu || demand.memory_mib > memory) {
    why = "the largest node has " + std::to_string(cpu) + " thousandths of CPUs and " +
          std::to_string(memory) + " MiB of memory";
    field = demand.cpu_milli > cpu ? "cpu" : "memory";
  } else if (demand.what == What::kProfile) {
    why = "no node has a board with that profile";
    field = "profile";
  } else {
    why = "no node has GPUs that can give it with class " + std::string(Name(demand.least));
  }
  return Error{Code::kInvalidArgument, "no node could ever give " + Asked(demand) + ": " + why,
               "ask for what a node of this fleet has", field};
}

// When enough leases will have ended, at the latest: releases them one by one, soonest first, and
// takes them back afterwards.
std::optional<Timestamp> Placer::EarliestRelease(const Request& request) {
  std::vector<Lease> ending;
  for (const auto& [id, lease] : leases_) {
    if (lease.ends) {
      ending.push_back(lease);
    }
  }
  std::stable_sort(ending.begin(), ending.end(),
                   [](const Lease& a, const Lease& b) { return *a.ends < *b.ends; });
  std::optional<Timestamp> when;
  std::size_t released = 0;
  while (released < ending.size() && !when) {
    const Timestamp moment = *ending[released].ends;
    while (released < ending.size() && *ending[released].ends == moment) {
      (void)Release(ending[released++].id);  // it is held: it was found among the held
    }
    if (Find(request)) {
      when = moment;
    }
  }
  for (std::size_t i = 0; i < released; ++i) {
    (void)Hold(ending[i]);  // what it had is free: it was given back above
  }
  return when;
}

Error Placer::NotNow(const Request& request) {
  const TenantFence fence(*this, request);
  const Demand& demand = request.demand;
  std::size_t free = 0;     // GPUs that would do, were nobody there
  std::size_t fenced = 0;   // of these, behind a boundary
  std::size_t unready = 0;  // nodes
  std::size_t starved = 0;  // nodes with a GPU that would do, short of CPU or memory
  std::size_t unusable = 0;
  std::set<std::string> tenants;
  std::string reason;
  std::string why_unready;
  std::string why_unusable;
  for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
    const NodeFacts& node = nodes_[number];
    const std::vector<Form> forms = FormsOn(demand, node.kind);
    if (forms.empty()) {
      continue;
    }
    if (!node.ready) {
      ++unready;
      why_unready = node.name + (node.why.empty() ? "" : ": " + node.why);
      continue;
    }
    const TenantFence::Closed closed = fence.NodeClosed(number);
    bool would = false;
    for (std::uint32_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
      if (!node.gpus[gpu].usable) {
        ++unusable;
        why_unusable = node.gpus[gpu].uuid + ": " + node.gpus[gpu].why;
        continue;
      }
      bool fits = false;
      TenantFence::Closed by = closed;
      for (const Form& form : forms) {
        for (const std::uint32_t start : StartsOf(node.kind, form)) {
          if (form.gpus > 0 &&
              Fits(node.kind, form, index_->Codes(number)[gpu], start, demand.reshape)) {
            fits = true;
            by = by.by == nullptr ? fence.GpuClosed(number, gpu, form) : by;
          }
        }
      }
      free += fits ? 1 : 0;
      would = would || fits;
      if (fits && by.by != nullptr) {
        ++fenced;
        tenants.insert(by.by->tenant.text());
        reason = by.reason;
      }
    }
    if (would && (index_->FreeCpu(number) < demand.cpu_milli ||
                  index_->FreeMemory(number) < demand.memory_mib)) {
      ++starved;
    }
  }
  std::string message = "no place now for " + Asked(demand) +
                        (request.nodes > 1 ? " on " + Count(request.nodes, "node") + " each" : "") +
                        ": " + Count(free, "GPU") + (free == 1 ? " has" : " have") + " room";
  if (fenced > 0) {
    message += fenced == free ? (free == 1 ? ", but it has" : ", but each has")
                              : ", but " + std::to_string(fenced) + " of them have";
    message += " a neighbour of " + Listed(tenants) + " (" + reason + ")";
  } else if (demand.what == What::kWhole && demand.gpus > 1 && free >= demand.gpus) {
    message += ", but not " + std::to_string(demand.gpus) + " on one node";
  }
  if (starved > 0) {
    message += "; " + Count(starved, "node") + " with room on a GPU " +
               (starved == 1 ? "lacks" : "lack") + " CPU or memory";
  }
  if (unusable > 0) {
    message += "; " + Count(unusable, "GPU") + " may not be used (" + why_unusable + ")";
  }
  if (unready > 0) {
    message += "; " + Count(unready, "node") + (unready == 1 ? " is" : " are") + " not ready (" +
               why_unready + ")";
  }
  const auto when = EarliestRelease(request);
  message += when ? "; earliest release " + FormatTime(*when)
                  : "; no lease that is to end would make room";
  return Error{Code::kUnavailable, message, "wait for that, or ask for less"};
}

}  // namespace ringfence::place
