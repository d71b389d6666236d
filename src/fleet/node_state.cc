#include "fleet/node_state.h"

#include <algorithm>
#include <limits>
#include <set>

namespace ringfence::fleet {
namespace {

constexpr std::int64_t kBytesMax = std::int64_t{1} << 53U;
constexpr std::size_t kGpusPerNodeMax = 64;

Result<model::Gpu> GpuOf(const Json& json, const std::string& node, bool simulated) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "gpus"));
  constexpr std::int64_t kU32Max = std::numeric_limits<std::uint32_t>::max();
  model::Gpu gpu;
  gpu.node = node;
  gpu.simulated = simulated;
  RINGFENCE_ASSIGN(gpu.uuid, reader.String("uuid", 80));
  if (!gpu.uuid.starts_with("GPU-")) {
    return Error{Code::kInvalidArgument, "gpus.uuid must begin with GPU-", {}, "gpus.uuid"};
  }
  RINGFENCE_ASSIGN(gpu.model, reader.String("model", 128));
  RINGFENCE_ASSIGN(const std::int64_t index, reader.Int("index", 0, kU32Max));
  gpu.index = static_cast<std::uint32_t>(index);
  RINGFENCE_ASSIGN(const std::int64_t device_minor, reader.Int("minor", 0, kU32Max));
  gpu.minor = static_cast<std::uint32_t>(device_minor);
  RINGFENCE_ASSIGN(const std::int64_t memory, reader.Int("memory_bytes", 0, kBytesMax));
  gpu.memory_bytes = static_cast<std::uint64_t>(memory);
  RINGFENCE_ASSIGN(gpu.pci_address, reader.StringOr("pci_address", "", 64));
  RINGFENCE_ASSIGN(gpu.vbios, reader.StringOr("vbios", "", 64));
  RINGFENCE_ASSIGN(gpu.gsp_firmware, reader.StringOr("gsp_firmware", "", 64));
  const auto on_off = [&](std::string_view name) -> Result<std::string> {
    if (!reader.Has(name)) {
      return std::string("unknown");
    }
    RINGFENCE_ASSIGN(const bool on, reader.Bool(name));
    return std::string(on ? "on" : "off");
  };
  RINGFENCE_ASSIGN(gpu.ecc, on_off("ecc_enabled"));
  RINGFENCE_ASSIGN(gpu.mig, on_off("mig_enabled"));
  RINGFENCE_ASSIGN(gpu.confidential_computing,
                   reader.StringOr("confidential_computing", "unknown", 32));
  RINGFENCE_ASSIGN(const auto processes, reader.Array("processes"));
  gpu.processes = static_cast<std::uint32_t>(processes.size());
  return gpu;
}

}  // namespace

std::string_view Name(NodeState state) {
  switch (state) {
    case NodeState::kReady:
      return "ready";
    case NodeState::kSilent:
      return "silent";
    case NodeState::kIncapable:
      return "incapable";
  }
  return "?";
}

NodeState StateOf(const model::Node& node, Timestamp now) {
  if (!node.heard || now - node.last_seen > kSilentAfter) {
    return NodeState::kSilent;
  }
  return node.missing.empty() ? NodeState::kReady : NodeState::kIncapable;
}

Result<NodeInventory> InventoryOf(const Json& worker_json, const std::string& node) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(worker_json, "inventory"));
  NodeInventory inventory;
  RINGFENCE_ASSIGN(inventory.simulated, reader.Bool("simulated"));
  RINGFENCE_ASSIGN(inventory.driver_version, reader.String("driver_version", 128));
  RINGFENCE_ASSIGN(inventory.kernel_driver, reader.StringOr("kernel_driver", "", 256));
  RINGFENCE_ASSIGN(inventory.library_digest, reader.String("library_digest", 128));
  RINGFENCE_ASSIGN(const auto gpus, reader.Array("gpus", kGpusPerNodeMax));
  std::set<std::string> seen;
  for (const Json* json : gpus) {
    RINGFENCE_ASSIGN(model::Gpu gpu, GpuOf(*json, node, inventory.simulated));
    if (!seen.insert(gpu.uuid).second) {
      return Error{Code::kInvalidArgument, "inventory names " + gpu.uuid + " twice"};
    }
    inventory.gpus.push_back(std::move(gpu));
  }
  return inventory;
}

Result<std::vector<GpuChange>> Reconcile(const std::vector<model::Gpu>& known,
                                         const NodeInventory& inventory, const std::string& node,
                                         Timestamp now) {
  std::vector<GpuChange> changes;
  for (const model::Gpu& seen : inventory.gpus) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const model::Gpu& gpu) { return gpu.uuid == seen.uuid; });
    GpuChange change{seen, {}};
    if (found == known.end()) {
      change.gpu.state = model::GpuState::kDirty;
      change.gpu.reason = "new: not scrubbed yet";
      change.gpu.dirty_since = now;
      change.what = "new GPU";
    } else {
      if (found->node != node) {
        // One of the two is wrong; what is known stays, and the claim is on record.
        changes.push_back({*found, "claimed by node " + node + " but known on " + found->node});
        continue;
      }
      change.gpu.state = found->state;
      change.gpu.lease = found->lease;
      change.gpu.tenant = found->tenant;
      change.gpu.last_receipt = found->last_receipt;
      change.gpu.reason = found->reason;
      change.gpu.fault = found->fault;
      change.gpu.dirty_since = found->dirty_since;
      if (found->state == model::GpuState::kLost) {
        change.gpu.state =
            found->lease.empty() ? model::GpuState::kDirty : model::GpuState::kLeased;
        change.gpu.reason = "came back: not scrubbed yet";
        change.gpu.dirty_since = now;
        if (!found->fault.empty() && found->lease.empty()) {
          change.gpu.state = model::GpuState::kQuarantined;
          change.gpu.reason = found->fault;
        }
        change.what = "GPU came back";
      } else if (found->vbios != seen.vbios) {
        change.what = "VBIOS changed from " + found->vbios + " to " + seen.vbios;
      }
    }
    changes.push_back(std::move(change));
  }
  for (const model::Gpu& gpu : known) {
    const bool gone = gpu.node == node && gpu.state != model::GpuState::kLost &&
                      std::none_of(inventory.gpus.begin(), inventory.gpus.end(),
                                   [&](const model::Gpu& seen) { return seen.uuid == gpu.uuid; });
    if (gone) {
      GpuChange change{gpu, "GPU lost"};
      change.gpu.state = model::GpuState::kLost;
      change.gpu.reason = "the node no longer reports it";
      changes.push_back(std::move(change));
    }
  }
  return changes;
}

}  // namespace ringfence::fleet
