#pragma once

// What GPUs a driver shows. The only NVML and AMD SMI there is in the house is behind this.

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

inline constexpr const char* kNvidia = "nvidia";
inline constexpr const char* kAmd = "amd";

struct Gpu {
  std::string vendor = kNvidia;
  std::string uuid;           // "GPU-8-4-4-4-12"; "MIG-..." of a slice
  std::string model;          // "NVIDIA H200"
  std::uint32_t index = 0;    // NVML's; AMD's follow
  std::uint32_t minor = 0;    // /dev/nvidia<minor>; AMD's /dev/dri/renderD<minor>
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
  // Of AMD's, how the card is divided: "SPX", "NPS1"; empty where it cannot be.
  std::string compute_partition;
  std::string memory_partition;

  // Everything that is done with it has only ever been tried on a simulated one.
  bool never_run_on_hardware() const { return vendor == kAmd; }
};

struct AmdDriver {
  std::string version;  // of amdgpu
  std::string library_path;
  std::string library_digest;  // of libamd_smi.so as opened
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
  std::vector<Gpu> gpus;       // a GPU that is cut, then its slices; AMD's last
  // Where there are AMD's. On a node with no others the fields above say the same of this driver,
  // and have no version of CUDA and NVML.
  std::optional<AmdDriver> amd = {};
};

// Opens libnvidia-ml.so.1 and libamd_smi.so, those that are there, by their own names beneath
// `driver_root` ("/" for a real driver) and reads everything once. kNotFound: no driver there. A
// single failing card is an error naming the card and the library's own words: an inventory is
// whole or not at all. Where both libraries are and the kernel has only one vendor's driver, the
// other's library is left alone.
Result<Inventory> ReadInventory(const std::string& driver_root);

Json InventoryToJson(const Inventory& inventory);
Result<Inventory> InventoryFromJson(const Json& json);

}  // namespace ringfence::gpu
