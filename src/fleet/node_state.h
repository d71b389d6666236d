#pragma once

// How a node is, and what its inventory means for the GPUs we know.

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "model/node.h"

namespace ringfence::fleet {

// A node reports at least every few seconds; after this it counts as silent.
inline constexpr Milliseconds kSilentAfter = std::chrono::seconds(20);

enum class NodeState { kReady, kSilent, kIncapable };
std::string_view Name(NodeState state);
NodeState StateOf(const model::Node& node, Timestamp now);

// The part of a node's report that describes its GPUs, as the inventory worker printed it.
struct NodeInventory {
  bool simulated = false;
  std::string driver_version;
  std::string kernel_driver;
  std::optional<bool> scrub_on_free;
  std::string library_digest;
  std::vector<model::Gpu> gpus;  // only what an inventory says: no state, no lease
};
Result<NodeInventory> InventoryOf(const Json& worker_json, const std::string& node);

struct GpuChange {
  model::Gpu gpu;        // as it is to be stored
  std::string what;      // for the audit log; empty: nothing that matters changed
  bool dropped = false;  // a slice that nobody had, and that is no more
};
// What an inventory changes. A GPU never seen before is dirty until its first receipt; one that is
// gone is lost, whatever it was; one that came back is dirty, unless a lease still holds it. A GPU
// known on another node stays what and where it is: a claim is no more than something to record.
// A GPU in MIG mode is cut: never leased, never scrubbed as a whole; once out of that mode it is
// dirty, as its memory holds what its slices left. A slice is a GPU like any other; one that is
// another than before under the same UUID is dirty.
Result<std::vector<GpuChange>> Reconcile(const std::vector<model::Gpu>& known,
                                         const NodeInventory& inventory, const std::string& node,
                                         Timestamp now);

}  // namespace ringfence::fleet
