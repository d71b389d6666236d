#pragma once

// What of a driver must be inside a box for some of its GPUs to work there, and no other.
// Pure files: opens no vendor library, so that the jailer may ask.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::gpu {

struct DeviceNode {
  std::string path;  // in the box: "/dev/nvidia0"
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
};

struct DriverMount {
  std::string host_path;  // a file or folder
  std::string box_path;
  bool writable = false;
  bool give_to_box = false;  // simulated memory: owned by the box's user as long as it runs
  bool shared = false;       // of several boxes at once: then everybody's until it is scrubbed
};

struct DriverFiles {
  std::vector<DeviceNode> nodes;
  std::vector<DriverMount> mounts;
  std::vector<std::string> library_folders;  // in the box, for LD_LIBRARY_PATH
};

// Where a driver lies in the box, whatever its root on the host.
inline constexpr const char* kBoxDriverRoot = "/run/ringfence/driver";

// AMD's cards go by the minor of their render node, and those begin here; NVIDIA's end long before.
inline constexpr std::uint32_t kRenderMinorFirst = 128;
constexpr bool IsRenderMinor(std::uint32_t minor) { return minor >= kRenderMinorFirst; }

// `minors` are the GPUs' device minors, by Gpu::minor, with their UUIDs.
struct WantedGpu {
  std::string uuid;
  std::uint32_t minor = 0;  // of a slice: its GPU's
  struct Slice {
    std::string parent;  // UUID of that GPU
    std::uint32_t gpu_instance = 0;
    std::uint32_t compute_instance = 0;
    bool operator==(const Slice&) const = default;
  };
  std::optional<Slice> slice = {};
};
// The major that the kernel gave a driver, by its name in /proc/devices.
Result<std::uint32_t> DriverMajor(const std::string& driver_root, std::string_view driver);
// The nodes of whole GPUs and of those that every use of the driver needs.
Result<std::vector<DeviceNode>> NodesOf(const std::string& driver_root,
                                        const std::vector<std::uint32_t>& minors);
// The minor of a capability of MIG: "config", "gpu0/gi7/access", "gpu0/gi7/ci0/access".
Result<std::uint32_t> CapMinor(const std::string& driver_root, const std::string& capability);
// The node of that capability.
Result<DeviceNode> CapNode(const std::string& driver_root, const std::string& capability);
// Puts those libraries of a folder into the box whose names are wanted.
Status MountLibraries(DriverFiles& files, const std::string& folder,
                      bool (*wanted)(std::string_view name));
// A GPU's node and those that every use of the driver needs; for a slice also its two capabilities,
// and no other's.
Result<DriverFiles> FilesFor(const std::string& driver_root, const std::vector<WantedGpu>& gpus);

}  // namespace ringfence::gpu
