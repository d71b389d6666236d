#pragma once

// Nodes and their GPUs as the server keeps them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace ringfence::model {

// A node's name: a host name of at most 63 bytes, [a-z0-9.-].
Status CheckNodeName(std::string_view name);

struct NodeImage {  // that boxes there can be made of
  std::string digest;
  std::vector<std::string> names;
  bool operator==(const NodeImage&) const = default;
};

struct Node {
  std::string name;
  Timestamp joined;
  Timestamp last_seen;
  bool heard = true;  // by the running server, since it started; not stored
  std::string version;
  std::vector<std::string> missing;  // why it cannot run boxes; empty: it can
  bool simulated = false;
  std::string driver_version;
  std::string kernel_driver;
  std::string library_digest;
  std::optional<bool> scrub_on_free;  // its driver clears memory that is given back; none: unknown
  std::string certificate_fingerprint;  // of the newest certificate
  std::string certificate_previous;  // the one before, good until it expires: an answer may be lost
  Timestamp certificate_expires;
  std::string receipt_key;   // base64: verifies the receipts of its jailer
  std::string witness_vkey;  // verifies its cosignatures
  std::uint64_t witnessed_size = 0;
  std::vector<NodeImage> images;
  std::string witness_refusal;  // not empty: it saw a log that contradicts an earlier one
};

enum class GpuState {
  kFree,         // scrubbed, with a receipt; may be leased
  kLeased,       // belongs to a lease that is not over
  kDirty,        // not known to be clean; to be scrubbed
  kQuarantined,  // scrubbing failed; an operator must act
  kLost,         // the node no longer reports it
  kCut,          // in MIG mode: its slices are leased, never the GPU
  kShared,       // leases have shares of it: which ones, the open leases say
};
std::string_view Name(GpuState state);
Result<GpuState> ParseGpuState(std::string_view text);

// What a lease can hold: a whole GPU, or a slice of one that is cut.
struct Gpu {
  std::string uuid;  // "GPU-..."; "MIG-..." of a slice
  std::string node;
  GpuState state = GpuState::kDirty;
  std::string lease;   // while leased, and while quarantined by it
  std::string tenant;  // of that lease
  std::string last_receipt;
  std::string reason;     // why it is not free
  std::string fault;      // not empty: it is not leased before an operator lets it back
  Timestamp dirty_since;  // a receipt older than this says nothing
  // From the node's inventory:
  std::uint32_t index = 0;
  std::uint32_t minor = 0;
  std::string model;
  std::uint64_t memory_bytes = 0;
  std::string pci_address;
  std::string vbios;
  std::string gsp_firmware;
  std::string ecc = "unknown";
  std::string mig = "unknown";
  std::string board;  // "H200-141", where it is one that can be cut (gpu/mig_board.h)
  std::string confidential_computing = "unknown";
  std::uint32_t processes = 0;
  bool simulated = false;
  std::string vendor = "nvidia";  // or "amd"
  std::string compute_partition;  // of AMD's: "SPX"
  std::string memory_partition;   // of AMD's: "NPS1"
  // Of a slice, whose memory_bytes are its own and whose index and minor are its GPU's:
  std::string parent;   // UUID of the GPU that it is cut from; empty: a whole GPU
  std::string profile;  // "1g.18gb"
  std::uint32_t gpu_instance = 0;
  std::uint32_t compute_instance = 0;
  std::optional<std::uint32_t> start;  // first memory slice, where the driver says it

  // What is done with AMD's has only ever been tried on simulated ones.
  bool never_run_on_hardware() const { return vendor == "amd"; }
  bool is_slice() const { return !parent.empty(); }
};

}  // namespace ringfence::model
