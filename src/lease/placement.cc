#include "lease/placement.h"

#include <algorithm>
#include <map>

#include "fleet/node_state.h"
#include "policy/boundary.h"

namespace ringfence::lease {
namespace {

constexpr std::uint64_t kWholeMillis = 1000;

std::string Count(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

struct Room {
  const model::Node* node = nullptr;
  std::vector<const model::Gpu*> free;
  std::size_t total = 0;  // all that are not lost
};

Error WhyNot(std::uint32_t wanted, const std::vector<Room>& rooms, const Fleet& fleet) {
  std::size_t largest = 0;
  std::map<std::string, std::size_t> states;
  std::size_t free_on_ready = 0;
  for (const Room& room : rooms) {
    largest = std::max(largest, room.total);
    free_on_ready = std::max(free_on_ready, room.free.size());
  }
  if (wanted > largest) {
    return Error{Code::kInvalidArgument,
                 "gpus: asks for " + std::to_string(wanted) + ", but the largest node has " +
                     std::to_string(largest),
                 "ask for at most " + std::to_string(largest), "gpus"};
  }
  std::string stand;
  for (const model::Gpu& gpu : fleet.gpus) {
    if (!gpu.is_slice()) {
      ++states[std::string(Name(gpu.state))];
    }
  }
  for (const auto& [state, count] : states) {
    stand += (stand.empty() ? "" : ", ") + std::to_string(count) + " " + state;
  }
  std::string unfit = WhyNodes(fleet, Counted::kGpus);
  if (fleet.earliest_release.has_value()) {
    unfit += "; earliest release by " + FormatTime(*fleet.earliest_release);
  }
  return Error{Code::kUnavailable,
               "no node has " + Count(wanted, "free GPU") + " now (at most " +
                   std::to_string(free_on_ready) + "; of all: " + stand + ")" + unfit,
               "try again when a lease has ended; `ringfence gpu list` shows who holds what"};
}

}  // namespace

std::string WhyNodes(const Fleet& fleet, Counted what) {
  std::string unfit;
  for (const model::Node& node : fleet.nodes) {
    const fleet::NodeState state = fleet::StateOf(node, fleet.now);
    if (state != fleet::NodeState::kReady) {
      unfit += "; node " + node.name + " is " + std::string(fleet::Name(state));
      if (!node.missing.empty()) {
        unfit += " (" + node.missing.front() + ")";
      }
    }
  }
  std::map<std::string, std::string> barred = fleet.barred;
  if (what == Counted::kGpus) {
    barred.insert(fleet.kept_nodes.begin(), fleet.kept_nodes.end());
  }
  for (const auto& [node, why] : barred) {
    const auto free = static_cast<std::size_t>(
        std::count_if(fleet.gpus.begin(), fleet.gpus.end(), [&, &name = node](const auto& gpu) {
          return gpu.node == name && gpu.state == model::GpuState::kFree &&
                 gpu.is_slice() == (what == Counted::kSlices);
        }));
    unfit += "; node " + node + " may not be shared now" +
             (free == 0 ? ""
                        : ", though " + Count(free, what == Counted::kGpus ? "GPU" : "slice") +
                              " there " + (free == 1 ? "is" : "are") + " free") +
             ": " + why;
  }
  for (const std::string& node : fleet.lacking) {
    unfit += "; node " + node + " does not have the image";
  }
  return unfit;
}

Result<Placement> Place(std::uint32_t gpus, const Fleet& fleet) {
  if (fleet.nodes.empty()) {
    return Error{
        Code::kUnavailable, "no node has joined",
        "start one: `ringfence node token create NAME`, then `ringfence agent --join` there"};
  }
  std::vector<Room> rooms;
  for (const model::Node& node : fleet.nodes) {
    Room room{&node, {}, 0};
    const bool ready = fleet::StateOf(node, fleet.now) == fleet::NodeState::kReady &&
                       !fleet.barred.contains(node.name) && !fleet.kept_nodes.contains(node.name) &&
                       !fleet.lacking.contains(node.name);
    for (const model::Gpu& gpu : fleet.gpus) {
      if (gpu.node != node.name || gpu.is_slice() || gpu.state == model::GpuState::kLost ||
          gpu.state == model::GpuState::kCut) {
        continue;
      }
      ++room.total;
      if (ready && gpu.state == model::GpuState::kFree) {
        room.free.push_back(&gpu);
      }
    }
    rooms.push_back(std::move(room));
  }
  Room* best = nullptr;
  for (Room& room : rooms) {
    const bool fits = room.free.size() >= gpus && !fleet.barred.contains(room.node->name) &&
                      !fleet.kept_nodes.contains(room.node->name) &&
                      !fleet.lacking.contains(room.node->name) &&
                      fleet::StateOf(*room.node, fleet.now) == fleet::NodeState::kReady;
    if (fits && (best == nullptr || room.free.size() < best->free.size())) {
      best = &room;
    }
  }
  if (best == nullptr) {
    return WhyNot(gpus, rooms, fleet);
  }
  std::sort(best->free.begin(), best->free.end(),
            [](const model::Gpu* a, const model::Gpu* b) { return a->index < b->index; });
  Placement placement{best->node->name, {}, best->node->simulated};
  for (std::uint32_t i = 0; i < gpus; ++i) {
    placement.gpus.push_back(best->free[i]->uuid);
  }
  return placement;
}

std::map<std::string, std::string> BarredNodes(const policy::Policy& policy,
                                               const model::TenantPath& tenant,
                                               const std::vector<model::Lease>& open) {
  std::map<std::string, std::string> barred;
  for (const model::Lease& lease : open) {
    const policy::IsolationDemand demand =
        policy::LeastBetween(policy, tenant, lease.request.tenant);
    if (demand.least == model::IsolationClass::kNode && !lease.node.empty()) {
      barred.emplace(lease.node, demand.reason);
    }
  }
  return barred;
}

std::map<std::string, std::string> LeakingNodes(const std::vector<store::LeakingNode>& leaks,
                                                const model::TenantPath& tenant,
                                                const std::vector<model::Lease>& open) {
  std::map<std::string, std::string> barred;
  for (const store::LeakingNode& leak : leaks) {
    for (const model::Lease& lease : open) {
      if (lease.node == leak.node && lease.request.tenant != tenant &&
          !lease.request.probe.has_value()) {
        barred.emplace(leak.node, "`ringfence prove` found on " + FormatTime(leak.time) + " that " +
                                      leak.probe +
                                      " gets through there, so it serves "
                                      "one tenant at a time");
      }
    }
  }
  return barred;
}

std::uint64_t MillisOf(const model::Lease& lease) {
  return lease.slice.has_value() ? lease.slice->gpu_millis : lease.gpus.size() * kWholeMillis;
}

std::string FormatMillis(std::uint64_t millis) {
  std::string text = std::to_string(millis / kWholeMillis);
  if (const std::uint64_t rest = millis % kWholeMillis; rest != 0) {
    const std::string digits = std::to_string(rest);
    text += "." + std::string(3 - digits.size(), '0') + digits;
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text;
}

std::uint64_t MillisHeld(const model::TenantPath& tenant, const std::vector<model::Lease>& open) {
  std::uint64_t held = 0;
  for (const model::Lease& lease : open) {
    if (!lease.ended.has_value() && tenant.Contains(lease.request.tenant)) {
      held += MillisOf(lease);
    }
  }
  return held;
}

Status CheckQuotas(const policy::Policy& policy, const model::TenantPath& tenant,
                   std::uint64_t gpu_millis, const std::vector<model::Lease>& open) {
  for (const policy::Quota& quota : policy.QuotasOver(tenant)) {
    const std::uint64_t held = MillisHeld(quota.tenant, open);
    if (held + gpu_millis > std::uint64_t{quota.gpus_max} * kWholeMillis) {
      return Error{Code::kExhausted,
                   "quota of " + quota.tenant.text() + ": " + FormatMillis(held) + " of " +
                       std::to_string(quota.gpus_max) + " GPUs are held, " +
                       FormatMillis(gpu_millis) + " more would break it (" + quota.source.file +
                       ":" + std::to_string(quota.source.line) + ")",
                   "end a lease of " + quota.tenant.text() + ", or have the quota raised", "gpus"};
    }
  }
  return {};
}

}  // namespace ringfence::lease
