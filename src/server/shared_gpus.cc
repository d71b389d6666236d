#include "server/shared_gpus.h"

#include <algorithm>
#include <map>

#include "lease/life.h"
#include "lease/sharing.h"

namespace ringfence::server {
namespace {

std::string Mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20U) + " MiB"; }

}  // namespace

Status HoldGpus(store::Connection& db, const model::Lease& lease) {
  for (const std::string& uuid : lease.gpus) {
    RINGFENCE_ASSIGN(model::Gpu gpu, store::GetGpu(db, uuid));
    if (lease.request.share.has_value()) {
      lease::Share(gpu);
    } else {
      lease::Hold(gpu, lease);
    }
    RINGFENCE_TRY(store::PutGpu(db, gpu));
  }
  return {};
}

Result<std::vector<model::Lease>> NeighboursOf(store::Connection& db, const model::Lease& lease) {
  std::vector<model::Lease> neighbours;
  if (!lease.request.share.has_value() || lease.gpus.empty()) {
    return neighbours;
  }
  RINGFENCE_ASSIGN(const auto open, store::OpenLeasesOf(db, lease.node));
  for (const model::Lease* one : lease::SharersOf(lease.gpus.front(), open, lease::Sharers::kAll)) {
    if (one->id != lease.id && one->state != model::LeaseState::kQuarantined) {
      neighbours.push_back(*one);
    }
  }
  return neighbours;
}

Status ReleaseUntouched(store::Connection& db, const model::Lease& lease) {
  RINGFENCE_ASSIGN(const auto neighbours, NeighboursOf(db, lease));
  if (!neighbours.empty()) {
    return {};  // theirs
  }
  for (const std::string& uuid : lease.gpus) {
    RINGFENCE_ASSIGN(model::Gpu gpu, store::GetGpu(db, uuid));
    lease::Free(gpu, gpu.last_receipt);
    RINGFENCE_TRY(store::PutGpu(db, gpu));
  }
  return {};
}

Status AwaitScrub(store::Connection& db, const model::Lease& lease, Timestamp now) {
  RINGFENCE_ASSIGN(const auto neighbours, NeighboursOf(db, lease));
  const bool others = std::any_of(neighbours.begin(), neighbours.end(),
                                  [](const auto& one) { return !one.ended.has_value(); });
  for (const std::string& uuid : lease.gpus) {
    RINGFENCE_ASSIGN(model::Gpu gpu, store::GetGpu(db, uuid));
    gpu.dirty_since = now;
    gpu.reason = others ? "" : "to be scrubbed";
    RINGFENCE_TRY(store::PutGpu(db, gpu));
  }
  return {};
}

Status LeaveShared(store::Connection& db, const model::Lease& lease,
                   const isolate::Receipt& receipt, Timestamp now) {
  RINGFENCE_ASSIGN(model::Gpu gpu, store::GetGpu(db, lease.gpus.front()));
  RINGFENCE_ASSIGN(const auto neighbours, NeighboursOf(db, lease));
  const bool scrubbed = receipt.share->neighbours == 0;
  if (scrubbed) {
    gpu.last_receipt = receipt.id;
  }
  if (gpu.state == model::GpuState::kShared && neighbours.empty()) {
    if (scrubbed) {
      lease::Free(gpu, receipt.id);
    } else {  // the node knows of one that we do not: nobody has it before it is scrubbed
      lease::Dirty(gpu, now, "shares of it have ended: not scrubbed yet");
    }
  } else if (gpu.state == model::GpuState::kQuarantined && gpu.lease == lease.id && scrubbed) {
    lease::Free(gpu, receipt.id);
  }
  return store::PutGpu(db, gpu);
}

Result<std::vector<Breach>> BreachesOf(store::Connection& db, const std::string& node,
                                       const std::vector<gpu::Reading>& readings) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> used;  // by GPU and lease
  for (const gpu::Reading& reading : readings) {
    for (const gpu::ProcessReading& process : reading.processes) {
      if (!process.lease.empty()) {
        used[{reading.uuid, process.lease}] += process.memory_bytes;
      }
    }
  }
  std::vector<Breach> breaches;
  if (used.empty()) {
    return breaches;
  }
  RINGFENCE_ASSIGN(const auto open, store::OpenLeasesOf(db, node));
  for (const model::Lease& lease : open) {
    if (!lease.request.share.has_value() || lease.end_requested || lease.ended.has_value()) {
      continue;
    }
    const auto found = used.find({lease.gpus.front(), lease.id});
    const std::uint64_t cap = lease.request.share->memory_bytes;
    if (found != used.end() && found->second > cap) {
      breaches.push_back({lease, "over its memory share: its processes have " +
                                     Mebibytes(found->second) + " of " + lease.gpus.front() +
                                     ", and it may have " + Mebibytes(cap)});
    }
  }
  return breaches;
}

JsonArray SharesToJson(const std::vector<const model::Lease*>& sharers) {
  JsonArray shares;
  for (const model::Lease* lease : sharers) {
    shares.push_back(JsonObject{
        {"lease", lease->id},
        {"tenant", lease->request.tenant.text()},
        {"class", std::string(Name(lease->request.share->isolation))},
        {"memory_bytes", static_cast<std::int64_t>(lease->request.share->memory_bytes)}});
  }
  return shares;
}

}  // namespace ringfence::server
