#include "fleet/node_state.h"

#include <algorithm>
#include <limits>
#include <set>

#include "gpu/limits.h"
#include "gpu/mig_board.h"

namespace ringfence::fleet {
namespace {

constexpr std::int64_t kBytesMax = std::int64_t{1} << 53U;

// "233510de" as the boards' table has it: "0x233510DE".
std::string BoardId(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return "0x" + text;
}

Status ReadSlice(JsonReader& from, model::Gpu& gpu) {
  constexpr std::int64_t kInstancesMax = 255;
  RINGFENCE_ASSIGN(const Json* json, from.Any("slice"));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(*json, "gpus.slice"));
  RINGFENCE_ASSIGN(gpu.parent, reader.String("parent", 80));
  RINGFENCE_ASSIGN(gpu.profile, reader.String("profile", 32));
  if (!gpu.parent.starts_with("GPU-") || gpu.profile.empty()) {
    return Error{
        Code::kInvalidArgument, "gpus.slice.parent must begin with GPU-", {}, "gpus.slice.parent"};
  }
  RINGFENCE_ASSIGN(const std::int64_t instance, reader.Int("gpu_instance", 0, kInstancesMax));
  gpu.gpu_instance = static_cast<std::uint32_t>(instance);
  RINGFENCE_ASSIGN(const std::int64_t compute, reader.Int("compute_instance", 0, kInstancesMax));
  gpu.compute_instance = static_cast<std::uint32_t>(compute);
  if (reader.Has("start")) {
    RINGFENCE_ASSIGN(const std::int64_t start, reader.Int("start", 0, kInstancesMax));
    gpu.start = static_cast<std::uint32_t>(start);
  }
  return reader.Finish();
}

Result<model::Gpu> GpuOf(const Json& json, const std::string& node, bool simulated) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "gpus"));
  constexpr std::int64_t kU32Max = std::numeric_limits<std::uint32_t>::max();
  model::Gpu gpu;
  gpu.node = node;
  gpu.simulated = simulated;
  RINGFENCE_ASSIGN(gpu.uuid, reader.String("uuid", 80));
  const bool is_slice = reader.Has("slice");
  if (is_slice) {
    RINGFENCE_TRY(ReadSlice(reader, gpu));
  }
  if (!gpu.uuid.starts_with(is_slice ? "MIG-" : "GPU-")) {
    return Error{Code::kInvalidArgument,
                 "gpus.uuid must begin with GPU-, and with MIG- of a slice",
                 {},
                 "gpus.uuid"};
  }
  RINGFENCE_ASSIGN(gpu.model, reader.String("model", 128));
  RINGFENCE_ASSIGN(gpu.vendor, reader.StringOr("vendor", "nvidia", 16));
  if (gpu.vendor != "nvidia" && gpu.vendor != "amd") {
    return Error{Code::kInvalidArgument, "gpus.vendor must be nvidia or amd", {}, "gpus.vendor"};
  }
  RINGFENCE_ASSIGN(gpu.compute_partition, reader.StringOr("compute_partition", "", 16));
  RINGFENCE_ASSIGN(gpu.memory_partition, reader.StringOr("memory_partition", "", 16));
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
  RINGFENCE_ASSIGN(const std::string pci_id, reader.StringOr("pci_device_id", "", 16));
  if (gpu.mig != "unknown" && !is_slice) {
    const gpu::MigBoard* board = gpu::MigBoardOfPci(BoardId(pci_id));
    gpu.board = board == nullptr ? "" : board->name;
  }
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
  if (reader.Has("scrub_on_free")) {
    RINGFENCE_ASSIGN(inventory.scrub_on_free, reader.Bool("scrub_on_free"));
  }
  RINGFENCE_ASSIGN(const auto gpus, reader.Array("gpus", gpu::kUnitsMax));
  std::set<std::string> seen;
  for (const Json* json : gpus) {
    RINGFENCE_ASSIGN(model::Gpu gpu, GpuOf(*json, node, inventory.simulated));
    if (!seen.insert(gpu.uuid).second) {
      return Error{Code::kInvalidArgument, "inventory names " + gpu.uuid + " twice"};
    }
    if (gpu.is_slice() && !seen.contains(gpu.parent)) {
      return Error{Code::kInvalidArgument,
                   "inventory has no GPU " + gpu.parent + ", of which " + gpu.uuid + " is a slice"};
    }
    inventory.gpus.push_back(std::move(gpu));
  }
  return inventory;
}

namespace {

bool IsCut(const model::Gpu& gpu) { return !gpu.is_slice() && gpu.mig == "on"; }

bool SameSlice(const model::Gpu& a, const model::Gpu& b) {
  return a.parent == b.parent && a.profile == b.profile && a.start == b.start &&
         a.gpu_instance == b.gpu_instance && a.compute_instance == b.compute_instance;
}

void MakeDirty(GpuChange& change, Timestamp now, const std::string& reason) {
  change.gpu.state = model::GpuState::kDirty;
  change.gpu.reason = reason;
  change.gpu.dirty_since = now;
}

// Into MIG mode and out of it, for a GPU that nobody has.
void FollowMig(GpuChange& change, Timestamp now) {
  const model::GpuState state = change.gpu.state;
  const bool idle = change.gpu.lease.empty() &&
                    (state == model::GpuState::kFree || state == model::GpuState::kDirty);
  if (IsCut(change.gpu) && idle) {
    change.gpu.state = model::GpuState::kCut;
    change.gpu.reason.clear();
    change.what += change.what.empty() ? "MIG mode on" : ", MIG mode on";
  } else if (!IsCut(change.gpu) && state == model::GpuState::kCut) {
    MakeDirty(change, now, "was cut into slices: not scrubbed yet");
    change.what = "MIG mode off";
  }
}

}  // namespace

Result<std::vector<GpuChange>> Reconcile(const std::vector<model::Gpu>& known,
                                         const NodeInventory& inventory, const std::string& node,
                                         Timestamp now) {
  std::vector<GpuChange> changes;
  for (const model::Gpu& seen : inventory.gpus) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const model::Gpu& gpu) { return gpu.uuid == seen.uuid; });
    GpuChange change{seen, {}, false};
    if (found == known.end()) {
      MakeDirty(change, now, "new: not scrubbed yet");
      change.what = seen.is_slice() ? "new slice of " + seen.parent : "new GPU";
    } else {
      if (found->node != node) {
        // One of the two is wrong; what is known stays, and the claim is on record.
        changes.push_back(
            {*found, "claimed by node " + node + " but known on " + found->node, false});
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
      } else if (!SameSlice(*found, seen) && found->state == model::GpuState::kFree) {
        MakeDirty(change, now, "another slice than before: not scrubbed yet");
        change.what = "slice changed";
      } else if (found->vbios != seen.vbios) {
        change.what = "VBIOS changed from " + found->vbios + " to " + seen.vbios;
      }
    }
    FollowMig(change, now);
    changes.push_back(std::move(change));
  }
  for (const model::Gpu& gpu : known) {
    const bool gone = gpu.node == node && gpu.state != model::GpuState::kLost &&
                      std::none_of(inventory.gpus.begin(), inventory.gpus.end(),
                                   [&](const model::Gpu& seen) { return seen.uuid == gpu.uuid; });
    if (gone) {
      if (gpu.is_slice() && gpu.lease.empty() && gpu.state != model::GpuState::kQuarantined) {
        changes.push_back({gpu, "slice gone", true});
        continue;
      }
      GpuChange change{gpu, "GPU lost", false};
      change.gpu.state = model::GpuState::kLost;
      change.gpu.reason = "the node no longer reports it";
      changes.push_back(std::move(change));
    }
  }
  return changes;
}

}  // namespace ringfence::fleet
