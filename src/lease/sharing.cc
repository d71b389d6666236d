#include "lease/sharing.h"

#include <algorithm>
#include <optional>

#include "fleet/node_state.h"
#include "policy/boundary.h"

namespace ringfence::lease {
namespace {

using model::IsolationClass;

constexpr std::size_t kReasonsShownMax = 4;
constexpr bool kMpsOffered = false;  // no daemon would hold it to its limits (docs/decisions/0022)

std::string Mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20U) + " MiB"; }

// Why a node's GPUs are not shared in this class; empty where they are.
std::string WhyNotHere(const model::Node& node, IsolationClass isolation) {
  if (!node.scrub_on_free.value_or(false)) {
    return "node " + node.name + "'s driver " +
           (node.scrub_on_free.has_value() ? "does not scrub freed memory (RMDisableScrubOnFree)"
                                           : "does not tell whether it scrubs freed memory");
  }
  if (isolation == IsolationClass::kMps && !kMpsOffered) {
    return "node " + node.name + " runs no MPS daemon for leases: such shares are not offered yet";
  }
  return {};
}

// Why the two may not have shares of one GPU; empty where they may.
std::string WhyApart(const model::LeaseRequest& request, const model::Lease& other,
                     const std::string& node, const ShareSurroundings& around) {
  const IsolationClass isolation = request.share->isolation;
  const model::TenantPath& neighbour = other.request.tenant;
  const std::string who = neighbour.text() + " (lease " + other.id + ")";
  if (other.request.share->isolation != isolation) {
    return "shared by " + who + " in the class " +
           std::string(Name(other.request.share->isolation));
  }
  if (neighbour == request.tenant) {
    return {};
  }
  if (isolation == IsolationClass::kMps) {
    return "shared by " + who + ", and MPS is for one tenant alone";
  }
  for (const auto& [a, b] :
       {std::pair(request.tenant, neighbour), std::pair(neighbour, request.tenant)}) {
    const policy::IsolationDemand demand = policy::LeastBetween(around.policy, a, b);
    if (demand.least > isolation) {
      return "shared by " + who + ", and " + demand.reason + " wants " +
             std::string(Name(demand.least)) + " between you";
    }
  }
  const auto leak = around.time_leaks.find(node);
  return leak == around.time_leaks.end()
             ? ""
             : "shared by " + who + ", and `ringfence prove` found at " + leak->second +
                   " that time slices leak on node " + node;
}

struct Offer {
  const model::Gpu* gpu = nullptr;
  const model::Node* node = nullptr;
  bool shared = false;
  std::uint64_t left = 0;      // bytes, once this share is there
  std::size_t free_there = 0;  // GPUs of its node that are free
};

// Shared ones first, then the fullest; of free ones, a node that has few.
bool IsBetter(const Offer& a, const Offer& b) {
  if (a.shared != b.shared) {
    return a.shared;
  }
  if (!a.shared && a.free_there != b.free_there) {
    return a.free_there < b.free_there;
  }
  return std::tie(a.left, a.node->name, a.gpu->index) <
         std::tie(b.left, b.node->name, b.gpu->index);
}

class Search {
 public:
  Search(const model::LeaseRequest& request, const Fleet& fleet, const ShareSurroundings& around)
      : request_(request), fleet_(fleet), around_(around) {}

  Result<Placement> Run() {
    for (const model::Node& node : fleet_.nodes) {
      LookAtNode(node);
    }
    if (best_.has_value()) {
      return Placement{best_->node->name, {best_->gpu->uuid}, best_->node->simulated};
    }
    return WhyNot();
  }

 private:
  void LookAtNode(const model::Node& node) {
    const std::string unfit = WhyNotHere(node, request_.share->isolation);
    const auto barred = fleet_.barred.find(node.name);
    const bool ready = fleet::StateOf(node, fleet_.now) == fleet::NodeState::kReady;
    if (!unfit.empty()) {
      reasons_.push_back(unfit);
    } else {
      ++sharing_nodes_;
      if (!ready) {
        reasons_.push_back("node " + node.name + " is " +
                           std::string(fleet::Name(fleet::StateOf(node, fleet_.now))));
      } else if (barred != fleet_.barred.end()) {
        reasons_.push_back("node " + node.name + " may not be shared now: " + barred->second);
      } else if (fleet_.lacking.contains(node.name)) {
        reasons_.push_back("node " + node.name + " does not have the image");
      }
    }
    const bool usable = unfit.empty() && ready && barred == fleet_.barred.end() &&
                        !fleet_.lacking.contains(node.name);
    const auto free = static_cast<std::size_t>(
        std::count_if(fleet_.gpus.begin(), fleet_.gpus.end(), [&](const model::Gpu& gpu) {
          return gpu.node == node.name && gpu.state == model::GpuState::kFree;
        }));
    for (const model::Gpu& gpu : fleet_.gpus) {
      if (gpu.node == node.name && !gpu.is_slice() && gpu.state != model::GpuState::kLost &&
          gpu.mig != "on") {
        largest_ = std::max(largest_, ShareableBytes(gpu));
        if (usable) {
          LookAtGpu(node, gpu, free);
        }
      }
    }
  }

  void LookAtGpu(const model::Node& node, const model::Gpu& gpu, std::size_t free_there) {
    const std::uint64_t wanted = request_.share->memory_bytes;
    Offer offer{&gpu, &node, gpu.state == model::GpuState::kShared, 0, free_there};
    if (!offer.shared && gpu.state != model::GpuState::kFree) {
      ++taken_;
      return;
    }
    std::uint64_t promised = 0;
    const auto sharers = SharersOf(gpu.uuid, around_.open, Sharers::kRunning);
    if (offer.shared && (sharers.empty() || !gpu.fault.empty())) {
      ++taken_;  // its last job has ended: it is scrubbed before anybody comes
      return;
    }
    for (const model::Lease* sharer : sharers) {
      promised += sharer->request.share->memory_bytes;
      if (const std::string why = WhyApart(request_, *sharer, node.name, around_); !why.empty()) {
        reasons_.push_back(gpu.uuid + " is " + why);
        return;
      }
    }
    if (promised + wanted > ShareableBytes(gpu)) {
      if (wanted <= ShareableBytes(gpu)) {
        reasons_.push_back(
            gpu.uuid + " has " +
            Mebibytes(ShareableBytes(gpu) - std::min(promised, ShareableBytes(gpu))) +
            " left for shares");
      }
      return;
    }
    offer.left = ShareableBytes(gpu) - promised - wanted;
    if (!best_.has_value() || IsBetter(offer, *best_)) {
      best_ = offer;
    }
  }

  Error WhyNot() const {
    const model::ShareRequest& share = *request_.share;
    std::string why;
    for (std::size_t i = 0; i < std::min(reasons_.size(), kReasonsShownMax); ++i) {
      why += "; " + reasons_[i];
    }
    if (reasons_.size() > kReasonsShownMax) {
      why += "; and " + std::to_string(reasons_.size() - kReasonsShownMax) + " more reasons";
    }
    const std::string what =
        std::string(Name(share.isolation)) + " share of " + Mebibytes(share.memory_bytes);
    if (sharing_nodes_ == 0) {
      return Error{Code::kFailedPrecondition, "no node can give a " + what + why,
                   "ask for a whole GPU: leave out --share", "share"};
    }
    if (largest_ < share.memory_bytes) {
      return Error{Code::kInvalidArgument,
                   "no GPU has room for a " + what + ": the largest gives shares " +
                       Mebibytes(largest_) + " in all",
                   "ask for at most " + Mebibytes(largest_), "share.memory_bytes"};
    }
    if (taken_ > 0) {
      why += "; " + std::to_string(taken_) + (taken_ == 1 ? " GPU is" : " GPUs are") +
             " leased whole, being scrubbed or out of use";
    }
    if (fleet_.earliest_release.has_value()) {
      why += "; earliest release by " + FormatTime(*fleet_.earliest_release);
    }
    return Error{Code::kUnavailable, "no GPU has room for a " + what + " now" + why,
                 "try again when a lease has ended; `ringfence gpu list` shows who holds what"};
  }

  const model::LeaseRequest& request_;
  const Fleet& fleet_;
  const ShareSurroundings& around_;
  std::optional<Offer> best_;
  std::vector<std::string> reasons_;
  std::size_t sharing_nodes_ = 0;
  std::size_t taken_ = 0;
  std::uint64_t largest_ = 0;
};

}  // namespace

std::vector<const model::Lease*> SharersOf(const std::string& uuid,
                                           const std::vector<model::Lease>& open, Sharers which) {
  std::vector<const model::Lease*> sharers;
  for (const model::Lease& lease : open) {
    const bool has = lease.request.share.has_value() && !lease.gpus.empty() &&
                     lease.gpus.front() == uuid && lease.state != model::LeaseState::kClosed;
    if (has && (which == Sharers::kAll || !lease.ended.has_value())) {
      sharers.push_back(&lease);
    }
  }
  return sharers;
}

Result<Placement> PlaceShare(const model::LeaseRequest& request, const Fleet& fleet,
                             const ShareSurroundings& around) {
  if (fleet.nodes.empty()) {
    return Error{
        Code::kUnavailable, "no node has joined",
        "start one: `ringfence node token create NAME`, then `ringfence agent --join` there"};
  }
  return Search(request, fleet, around).Run();
}

}  // namespace ringfence::lease
