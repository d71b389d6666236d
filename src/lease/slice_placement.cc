#include "lease/slice_placement.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "fleet/node_state.h"
#include "gpu/mig_board.h"
#include "lease/neighbours.h"
#include "policy/boundary.h"

namespace ringfence::lease {
namespace {

using model::GpuState;

constexpr std::uint32_t kWholeMillis = 1000;
constexpr std::size_t kReasonsShown = 3;

const model::Gpu* FindGpu(const std::vector<model::Gpu>& gpus, const std::string& uuid) {
  const auto found = std::find_if(gpus.begin(), gpus.end(),
                                  [&](const model::Gpu& gpu) { return gpu.uuid == uuid; });
  return found == gpus.end() ? nullptr : &*found;
}

std::string Asked(const model::LeaseRequest& request) {
  return request.profile.empty()
             ? "a slice with " + std::to_string(request.gpu_memory_bytes >> 20U) + " MiB of memory"
             : "a slice " + request.profile;
}

std::string Slices(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " slice" : " slices");
}

// What stands between a slice and the request; the first that holds.
enum class InTheWay : std::uint8_t { kNothing, kNode, kGpu, kState, kKept, kBoundary };

class Searcher {
 public:
  explicit Searcher(const SliceSearch& search)
      : search_(search),
        closed_(ClosedGpus(search.policy, search.request.tenant, search.open, search.fleet.gpus)) {
    for (const model::Node& node : search.fleet.nodes) {
      if (fleet::StateOf(node, search.fleet.now) == fleet::NodeState::kReady &&
          !search.fleet.barred.contains(node.name) && !search.fleet.lacking.contains(node.name)) {
        ready_.emplace(node.name, &node);
      }
    }
    for (const model::Lease& lease : search.open) {
      if (lease.request.tenant == search.request.tenant) {
        own_.insert(lease.gpus.begin(), lease.gpus.end());
      }
    }
    for (const model::Gpu& gpu : search.fleet.gpus) {
      if (!gpu.is_slice()) {
        continue;
      }
      free_on_[gpu.parent] += gpu.state == GpuState::kFree ? 1 : 0;
      if (own_.contains(gpu.uuid)) {
        home_.insert(gpu.parent);
      }
      if (gpu.state != GpuState::kLost && IsWanted(search.request, gpu)) {
        wanted_.push_back(&gpu);
      }
    }
  }

  const std::vector<const model::Gpu*>& wanted() const { return wanted_; }

  InTheWay Obstacle(const model::Gpu& slice) const {
    const model::Gpu* const parent = FindGpu(search_.fleet.gpus, slice.parent);
    if (!ready_.contains(slice.node)) {
      return InTheWay::kNode;
    }
    if (parent == nullptr || parent->state != GpuState::kCut || !parent->fault.empty()) {
      return InTheWay::kGpu;
    }
    if (slice.state != GpuState::kFree) {
      return InTheWay::kState;
    }
    if (search_.fleet.kept.contains(slice.uuid)) {
      return InTheWay::kKept;
    }
    return closed_.contains(slice.parent) ? InTheWay::kBoundary : InTheWay::kNothing;
  }

  std::optional<Placement> Find() const {
    const model::Gpu* best = nullptr;
    for (const model::Gpu* slice : wanted_) {
      if (Obstacle(*slice) == InTheWay::kNothing &&
          (best == nullptr || Rank(*slice) < Rank(*best))) {
        best = slice;
      }
    }
    if (best == nullptr) {
      return std::nullopt;
    }
    return Placement{best->node, {best->uuid}, ready_.at(best->node)->simulated};
  }

  const std::map<std::string, std::string>& closed() const { return closed_; }

 private:
  std::tuple<std::uint64_t, bool, std::size_t, std::string, std::uint32_t, std::uint32_t,
             std::string>
  Rank(const model::Gpu& slice) const {
    return {slice.memory_bytes,
            !home_.contains(slice.parent),
            free_on_.at(slice.parent),
            slice.node,
            slice.index,
            slice.start.value_or(0),
            slice.uuid};
  }

  const SliceSearch& search_;
  std::map<std::string, std::string> closed_;
  std::map<std::string, const model::Node*> ready_;
  std::set<std::string> own_;   // what this tenant holds
  std::set<std::string> home_;  // GPUs that it has a slice of
  std::map<std::string, std::size_t> free_on_;
  std::vector<const model::Gpu*> wanted_;
};

// When leases have ended, soonest first, until there is a place; none: that is not enough.
std::optional<Timestamp> WhenFree(const SliceSearch& search) {
  std::vector<model::Lease> left = search.open;
  Fleet fleet = search.fleet;
  const auto barred_now = BarredNodes(search.policy, search.request.tenant, search.open);
  const auto end_of = [&](const model::Lease& lease) {
    return lease.ended.value_or(lease.started.value_or(lease.updated) + lease.request.timeout);
  };
  std::erase_if(left, [](const model::Lease& lease) { return lease.gpus.empty(); });
  std::stable_sort(left.begin(), left.end(), [&](const model::Lease& a, const model::Lease& b) {
    return end_of(a) < end_of(b);
  });
  while (!left.empty()) {
    const model::Lease over = left.front();
    left.erase(left.begin());
    for (model::Gpu& gpu : fleet.gpus) {
      if (std::find(over.gpus.begin(), over.gpus.end(), gpu.uuid) != over.gpus.end() &&
          gpu.state == GpuState::kLeased) {
        gpu.state = GpuState::kFree;
      }
    }
    const auto barred_then = BarredNodes(search.policy, search.request.tenant, left);
    for (const auto& [node, why] : barred_now) {
      if (!barred_then.contains(node) && fleet.barred[node] == why) {
        fleet.barred.erase(node);
      }
    }
    if (Searcher({search.request, search.policy, left, fleet}).Find().has_value()) {
      return end_of(over);
    }
  }
  return std::nullopt;
}

// "1g.18gb (7), 3g.71gb (2)".
std::string ProfilesThere(const std::vector<model::Gpu>& gpus) {
  std::map<std::string, std::size_t> counts;
  for (const model::Gpu& gpu : gpus) {
    if (gpu.is_slice() && gpu.state != GpuState::kLost) {
      ++counts[gpu.profile];
    }
  }
  std::string text;
  for (const auto& [profile, count] : counts) {
    text += (text.empty() ? "" : ", ") + profile + " (" + std::to_string(count) + ")";
  }
  return text.empty() ? "no GPU is cut into slices" : "there are " + text;
}

bool IsOfSomeBoard(const std::string& profile) {
  const auto boards = gpu::MigBoards();
  return std::any_of(boards.begin(), boards.end(), [&](const gpu::MigBoard& board) {
    return board.Find(profile) != gpu::MigBoard::npos;
  });
}

// Nothing of that shape is there at all.
Error NoneCut(const SliceSearch& search) {
  const model::LeaseRequest& request = search.request;
  if (!request.profile.empty() && !IsOfSomeBoard(request.profile)) {
    return Error{Code::kInvalidArgument,
                 "profile: no board has a MIG profile \"" + request.profile + "\"; " +
                     ProfilesThere(search.fleet.gpus),
                 "`ringfence mig boards` lists the profiles of each board", "profile"};
  }
  return Error{Code::kUnavailable,
               "no GPU has " + Asked(request) + "; " + ProfilesThere(search.fleet.gpus),
               "ask for one that is there; `ringfence gpu list` shows them"};
}

Error NotNow(const SliceSearch& search, const Searcher& searcher) {
  std::map<InTheWay, std::size_t> counts;
  std::map<std::string, std::size_t> states;
  std::set<std::string> boundaries;
  std::string kept;
  std::string bad;
  for (const model::Gpu* slice : searcher.wanted()) {
    const InTheWay what = searcher.Obstacle(*slice);
    ++counts[what];
    if (what == InTheWay::kState) {
      ++states[std::string(Name(slice->state))];
    } else if (what == InTheWay::kBoundary) {
      boundaries.insert(searcher.closed().at(slice->parent));
    } else if (what == InTheWay::kKept) {
      kept = search.fleet.kept.at(slice->uuid);
    } else if (what == InTheWay::kGpu) {
      const model::Gpu* const parent = FindGpu(search.fleet.gpus, slice->parent);
      bad = slice->parent + " is " +
            (parent == nullptr ? std::string("not known") : std::string(Name(parent->state)));
    }
  }
  std::string why;
  const auto add = [&](const std::string& text) { why += (why.empty() ? "" : "; ") + text; };
  if (const std::size_t count = counts[InTheWay::kBoundary]; count > 0) {
    std::string reasons;
    std::size_t shown = 0;
    for (const std::string& reason : boundaries) {
      if (shown++ < kReasonsShown) {
        reasons += (reasons.empty() ? "" : "; and ") + reason;
      }
    }
    add(Slices(count) + (count == 1 ? " is free but has" : " are free but each has") +
        " a neighbour on its GPU: " + reasons);
  }
  if (const std::size_t count = counts[InTheWay::kKept]; count > 0) {
    add(Slices(count) + (count == 1 ? " is" : " are") + " free, but " + kept);
  }
  for (const auto& [state, count] : states) {
    add(Slices(count) + (count == 1 ? " is " : " are ") + state);
  }
  if (const std::size_t count = counts[InTheWay::kGpu]; count > 0) {
    add(Slices(count) + (count == 1 ? " is" : " are") + " of no use: " + bad);
  }
  why += WhyNodes(search.fleet, Counted::kSlices);
  if (const auto when = WhenFree(search)) {
    why += *when <= search.fleet.now ? "; one is being scrubbed now"
                                     : "; earliest release by " + FormatTime(*when);
  }
  return Error{Code::kUnavailable, "no place now for " + Asked(search.request) + ": " + why,
               "try again when a lease has ended; `ringfence gpu list` shows who holds what"};
}

}  // namespace

bool IsWanted(const model::LeaseRequest& request, const model::Gpu& slice) {
  return slice.is_slice() &&
         (request.profile.empty() ? slice.memory_bytes >= request.gpu_memory_bytes
                                  : slice.profile == request.profile);
}

std::map<std::string, std::string> ClosedGpus(const policy::Policy& policy,
                                              const model::TenantPath& tenant,
                                              const std::vector<model::Lease>& open,
                                              const std::vector<model::Gpu>& gpus) {
  std::map<std::string, std::string> closed;
  for (const model::Lease& lease : open) {
    for (const std::string& uuid : lease.gpus) {
      const model::Gpu* const held = FindGpu(gpus, uuid);
      if (held == nullptr || !held->is_slice()) {
        continue;
      }
      const auto demand = policy::LeastBetween(policy, tenant, lease.request.tenant);
      if (demand.least > model::IsolationClass::kMig) {
        closed.emplace(held->parent, lease.request.tenant.text() + " has a slice of " +
                                         held->parent + ", and " + demand.reason + " wants " +
                                         std::string(Name(demand.least)));
      }
    }
  }
  return closed;
}

Result<Placement> PlaceSlice(const SliceSearch& search) {
  const model::LeaseRequest& request = search.request;
  const Fleet& fleet = search.fleet;
  const Searcher searcher(search);
  if (const auto found = searcher.Find()) {
    return *found;
  }
  // Slices that this tenant can get once they are free.
  const bool worth_waiting =
      std::any_of(searcher.wanted().begin(), searcher.wanted().end(), [&](const model::Gpu* slice) {
        const InTheWay what = searcher.Obstacle(*slice);
        return (what == InTheWay::kState || what == InTheWay::kKept) &&
               !searcher.closed().contains(slice->parent);
      });
  if (request.profile.empty() && !worth_waiting) {
    Fleet large = fleet;
    std::erase_if(large.gpus, [&](const model::Gpu& gpu) {
      return gpu.memory_bytes < request.gpu_memory_bytes;
    });
    const bool some = std::any_of(large.gpus.begin(), large.gpus.end(), [](const model::Gpu& gpu) {
      return !gpu.is_slice() && gpu.state != GpuState::kCut && gpu.state != GpuState::kLost;
    });
    if (!some && searcher.wanted().empty() && !fleet.nodes.empty()) {
      return Error{Code::kInvalidArgument,
                   "gpu_memory: no slice and no whole GPU has " +
                       std::to_string(request.gpu_memory_bytes >> 20U) + " MiB; " +
                       ProfilesThere(fleet.gpus),
                   "ask for less; `ringfence gpu list` shows what there is", "gpu_memory"};
    }
    auto whole = Place(1, large);
    if (whole.has_value() || searcher.wanted().empty()) {
      return whole;
    }
  }
  if (fleet.nodes.empty()) {
    return Place(1, fleet).error();
  }
  return searcher.wanted().empty() ? NoneCut(search) : NotNow(search, searcher);
}

std::uint32_t MillisOf(const model::Gpu& gpu, const std::vector<model::Gpu>& gpus) {
  if (!gpu.is_slice()) {
    return kWholeMillis;
  }
  const model::Gpu* const parent = FindGpu(gpus, gpu.parent);
  if (parent == nullptr || parent->memory_bytes <= gpu.memory_bytes) {
    return kWholeMillis;  // more than it is, rather than less
  }
  const std::uint64_t whole_mib = std::max<std::uint64_t>(parent->memory_bytes >> 20U, 1);
  const std::uint64_t share =
      ((gpu.memory_bytes >> 20U) * kWholeMillis + whole_mib / 2) / whole_mib;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(share, 1));
}

std::uint64_t LeastMillis(const model::LeaseRequest& request, const std::vector<model::Gpu>& gpus) {
  if (!WantsSlice(request)) {
    return std::uint64_t{request.gpus} * kWholeMillis;
  }
  std::uint64_t least = kWholeMillis;
  for (const model::Gpu& gpu : gpus) {
    if (gpu.state != GpuState::kLost && IsWanted(request, gpu)) {
      least = std::min<std::uint64_t>(least, MillisOf(gpu, gpus));
    }
  }
  return least;
}

}  // namespace ringfence::lease
