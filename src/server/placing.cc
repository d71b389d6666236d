#include "server/placing.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "image/reference.h"
#include "lease/life.h"
#include "lease/neighbours.h"
#include "lease/sharing.h"
#include "lease/slice_placement.h"
#include "server/proven.h"
#include "server/shared_gpus.h"
#include "store/mig_orders.h"
#include "store/proofs.h"

namespace ringfence::server {
namespace {

// The digest of the image that is asked for, found once: from here on the lease means these bytes.
Result<std::string> ResolveImage(const std::vector<model::Node>& nodes,
                                 const image::Reference& reference) {
  if (reference.pinned()) {
    return reference.digest;
  }
  std::set<std::string> digests;
  for (const model::Node& node : nodes) {
    for (const model::NodeImage& one : node.images) {
      for (const std::string& name : {reference.name, reference.name + ":latest"}) {
        if (std::find(one.names.begin(), one.names.end(), name) != one.names.end()) {
          digests.insert(one.digest);
        }
      }
    }
  }
  if (digests.empty()) {
    return Error{Code::kNotFound, "no node has an image named \"" + reference.name + "\"",
                 "on the node, as root: `ringfence image import REF --name " + reference.name + "`",
                 "image"};
  }
  if (digests.size() > 1) {
    return Error{Code::kConflict,
                 "nodes have different images named \"" + reference.name +
                     "\": " + *digests.begin() + " and " + *std::next(digests.begin()),
                 "name it by digest: --image " + reference.name + "@" + *digests.begin(), "image"};
  }
  return *digests.begin();
}

// Fills `digest` and who of the fleet lacks it.
Status FindImage(const Core& core, const model::LeaseRequest& request, lease::Fleet& fleet,
                 std::string& digest) {
  const std::string& wanted = request.box.image;
  image::Reference reference;
  if (!wanted.empty()) {
    RINGFENCE_ASSIGN(reference, image::ParseReference(wanted));
  }
  RINGFENCE_TRY(policy::CheckBox(*core.policy(), request.tenant, request.box, reference.pinned()));
  if (!request.box.exception.empty()) {
    RINGFENCE_TRY(
        policy::FindException(*core.policy(), request.tenant, request.box.exception, core.Now()));
  }
  if (wanted.empty()) {
    return {};
  }
  RINGFENCE_ASSIGN(digest, ResolveImage(fleet.nodes, reference));
  for (const model::Node& node : fleet.nodes) {
    const bool has = std::any_of(node.images.begin(), node.images.end(),
                                 [&](const auto& one) { return one.digest == digest; });
    if (!has) {
      fleet.lacking.insert(node.name);
    }
  }
  if (fleet.lacking.size() == fleet.nodes.size() && !fleet.nodes.empty()) {
    return Error{Code::kFailedPrecondition, "no node has the image " + digest,
                 "on the node, as root: `ringfence image import REF`; it is there some seconds "
                 "later",
                 "image"};
  }
  return {};
}

// Nodes where a boundary that is more than an isolation class stands in the way.
Status BarByNeighbours(Core& core, store::Connection& db, const model::TenantPath& tenant,
                       const std::vector<model::Lease>& open, lease::Fleet& fleet) {
  const auto policy = core.policy();
  lease::ProvenTimes proven;
  if (lease::DemandsProof(*policy)) {
    for (const model::Node& node : fleet.nodes) {
      RINGFENCE_ASSIGN(const JsonObject document, store::GetProofs(db, node.name));
      if (const Proven result = ProvenOf(document); result.time.has_value()) {
        proven.emplace(node.name, *result.time);
      }
    }
  }
  const lease::Neighbourhood around{fleet.nodes, open, proven, core.Now()};
  fleet.barred.merge(lease::LinkedNodes(*policy, tenant, around));
  fleet.barred.merge(lease::UnprovenNodes(*policy, tenant, around));
  return {};
}

// Nodes that somebody who waits longer could be placed on, once there is room: were they given to
// whoever comes later, a large request would wait for ever. One that waits for its own quota keeps
// nobody from anything.
// Likewise slices, and whole GPUs and slices do not stand in each other's way.
void KeepForOthers(const policy::Policy& policy, const std::vector<model::Lease>& open,
                   const std::string& before, lease::Fleet& fleet) {
  for (const model::Lease& waiting : open) {
    if (waiting.id == before) {
      break;  // the others came later
    }
    if (waiting.state != model::LeaseState::kQueued ||
        !lease::CheckQuotas(policy, waiting.request.tenant,
                            lease::LeastMillis(waiting.request, fleet.gpus), open)
             .has_value()) {
      continue;
    }
    const std::string why = "it is kept for lease " + waiting.id + ", which waits longer";
    for (const model::Node& node : fleet.nodes) {
      const auto gpus =
          std::count_if(fleet.gpus.begin(), fleet.gpus.end(), [&](const model::Gpu& gpu) {
            return gpu.node == node.name && !gpu.is_slice() &&
                   gpu.state != model::GpuState::kLost && gpu.state != model::GpuState::kCut;
          });
      const bool has_image =
          waiting.image.empty() ||
          std::any_of(node.images.begin(), node.images.end(),
                      [&](const auto& one) { return one.digest == waiting.image; });
      if (!has_image) {
        continue;
      }
      if (!lease::WantsSlice(waiting.request)) {
        if (gpus >= static_cast<std::ptrdiff_t>(waiting.request.gpus)) {
          fleet.kept_nodes.emplace(node.name, why);
        }
        continue;
      }
      for (const model::Gpu& gpu : fleet.gpus) {
        if (gpu.node == node.name && lease::IsWanted(waiting.request, gpu)) {
          fleet.kept.emplace(gpu.uuid, why);
        }
      }
    }
  }
}

// Until an order for its MIG is done, a GPU and its slices are as little free as one that is dirty.
Status LeaveOutCut(store::Connection& db, lease::Fleet& fleet) {
  RINGFENCE_ASSIGN(const auto orders, store::OpenMigOrders(db));
  for (const store::MigOrder& order : orders) {
    for (model::Gpu& gpu : fleet.gpus) {
      if ((gpu.uuid == order.gpu || gpu.parent == order.gpu) &&
          gpu.state == model::GpuState::kFree) {
        gpu.state = model::GpuState::kDirty;
      }
    }
  }
  return {};
}

// Nodes where `ringfence prove` saw what is between time slices leak, and when.
Result<std::map<std::string, std::string>> TimeLeaks(store::Connection& db,
                                                     const std::vector<model::Node>& nodes) {
  std::map<std::string, std::string> leaks;
  for (const model::Node& node : nodes) {
    RINGFENCE_ASSIGN(const JsonObject document, store::GetProofs(db, node.name));
    if (const std::string time = LeakTimeOf(document, model::IsolationClass::kTime);
        !time.empty()) {
      leaks.emplace(node.name, time);
    }
  }
  return leaks;
}

}  // namespace

Result<lease::Placement> PlaceInside(Core& core, store::Connection& db,
                                     const model::LeaseRequest& request, std::string& image,
                                     const std::string& waiting) {
  lease::Fleet fleet;
  RINGFENCE_ASSIGN(fleet.nodes, core.Nodes(db));
  RINGFENCE_ASSIGN(fleet.gpus, store::ListGpus(db));
  RINGFENCE_TRY(LeaveOutCut(db, fleet));
  fleet.now = core.Now();
  RINGFENCE_ASSIGN(const auto open, store::OpenLeases(db));
  const auto policy = core.policy();
  if (request.probe.has_value()) {
    RINGFENCE_ASSIGN(const model::Node node, store::GetNode(db, request.probe->node));
    std::erase_if(fleet.nodes, [&](const model::Node& one) { return one.name != node.name; });
  } else {
    RINGFENCE_TRY(FindImage(core, request, fleet, image));
    RINGFENCE_TRY(
        lease::CheckQuotas(*policy, request.tenant, lease::LeastMillis(request, fleet.gpus), open));
    RINGFENCE_ASSIGN(const auto leaks, store::LeakingNodes(db));
    fleet.barred = lease::LeakingNodes(leaks, request.tenant, open);
  }
  fleet.barred.merge(lease::BarredNodes(*policy, request.tenant, open));
  if (!request.probe.has_value()) {
    RINGFENCE_TRY(BarByNeighbours(core, db, request.tenant, open, fleet));
    if (request.gpus > 0) {
      KeepForOthers(*policy, open, waiting, fleet);
    }
  }
  fleet.earliest_release = lease::EarliestRelease(open);
  if (request.share.has_value()) {
    RINGFENCE_ASSIGN(const auto leaks, TimeLeaks(db, fleet.nodes));
    return lease::PlaceShare(request, fleet, {*policy, open, leaks});
  }
  if (!lease::WantsSlice(request)) {
    return lease::Place(request.gpus, fleet);
  }
  RINGFENCE_ASSIGN(lease::Placement placement, lease::PlaceSlice({request, *policy, open, fleet}));
  const auto gpu = std::find_if(fleet.gpus.begin(), fleet.gpus.end(), [&](const model::Gpu& one) {
    return one.uuid == placement.gpus.front();
  });
  RINGFENCE_TRY(
      lease::CheckQuotas(*policy, request.tenant, lease::MillisOf(*gpu, fleet.gpus), open));
  return placement;
}

Status HoldPlace(Core& core, store::Connection& db, model::Lease& lease,
                 const lease::Placement& placement) {
  const Timestamp now = core.Now();
  lease.node = placement.node;
  lease.gpus = placement.gpus;
  lease.simulated = placement.simulated;
  RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kPlaced, now, "on node " + lease.node));
  RINGFENCE_TRY(HoldGpus(db, lease));
  if (!lease.request.share.has_value() && !lease.gpus.empty()) {
    RINGFENCE_ASSIGN(const model::Gpu gpu, store::GetGpu(db, lease.gpus.front()));
    if (gpu.is_slice()) {
      RINGFENCE_ASSIGN(const auto gpus, store::GpusOf(db, gpu.node));
      lease.slice = {gpu.parent, gpu.profile, gpu.memory_bytes, lease::MillisOf(gpu, gpus)};
    }
  }
  audit::Entry placed = core.StepEntry({"ringfence", "system", "", ""}, "lease.place", lease);
  if (lease.slice.has_value()) {
    placed.detail["parent"] = lease.slice->parent;
    placed.detail["profile"] = lease.slice->profile;
    placed.detail["gpu_millis"] = lease.slice->gpu_millis;
  }
  placed.time = now;  // as in the lease: what it used is counted from here (lease/usage.h)
  return Core::Record(db, placed);
}

}  // namespace ringfence::server
