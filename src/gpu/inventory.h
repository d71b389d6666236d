#pragma once

// What GPUs a driver shows. The only NVML there is in the house is behind this.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace ringfence::gpu {

struct GpuProcess {
  std::uint32_t pid = 0;  // the host's
  std::uint64_t memory_bytes = 0;
};

// What makes a GPU a slice: an instance of another one.
struct GpuSlice {
  std::string parent;   // UUID of the GPU that it is cut from
  std::string profile;  // "1g.18gb"
  std::uint32_t gpu_instance = 0;
  std::uint32_t compute_instance = 0;
  std::optional<std::uint32_t> start;  // first memory slice, where the driver says it
  bool operator==(const GpuSlice&) const = default;
};

struct Gpu {
  std::string uuid;           // "GPU-8-4-4-4-12"; "MIG-..." of a slice
  std::string model;          // "NVIDIA H200"
  std::uint32_t index = 0;    // NVML's
  std::uint32_t minor = 0;    // /dev/nvidia<minor>
  std::string serial;         // may be empty
  std::string pci_address;    // "00000000:00:06.0"
  std::string pci_device_id;  // "233510de"
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_used_bytes = 0;
  std::string vbios;
  std::string gsp_firmware;         // empty where there is none
  std::optional<bool> ecc_enabled;  // nullopt: the card does not say
  std::optional<bool> mig_enabled;
  std::string confidential_computing;  // "off", "on", "devtools", "unknown"
  std::vector<GpuProcess> processes;
  std::optional<GpuSlice> slice;
};

struct Inventory {
  bool simulated = false;
  std::string driver_version;
  std::string cuda_version;  // "13.0"
  std::string nvml_version;
  std::string kernel_driver;          // first line of <driver_root>/proc/driver/nvidia/version
  std::optional<bool> scrub_on_free;  // the driver clears memory that is given back; none: unknown
  std::string library_path;
  std::string library_digest;  // "sha256:..." of libnvidia-ml.so.1 as opened
  std::vector<Gpu> gpus;       // a GPU that is cut, then its slices
};

// Opens libnvidia-ml.so.1 by its own name beneath `driver_root` ("/" for a real driver) and reads
// everything once. kNotFound: no driver there. A single failing card is an error naming the card
// and NVML's own words: an inventory is whole or not at all.
Result<Inventory> ReadInventory(const std::string& driver_root);

Json InventoryToJson(const Inventory& inventory);
Result<Inventory> InventoryFromJson(const Json& json);

}  // namespace ringfence::gpu
