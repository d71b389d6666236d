#pragma once

// What a container asks for in the way of GPUs, by its OCI configuration, and whether leases cover
// it. Pure: texts in, verdict out. The texts come from a runtime, but what is in them was chosen by
// whoever starts the container and whoever made its image.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "isolate/held.h"

namespace ringfence::isolate {

inline constexpr std::size_t kContainerStateBytesMax = 256 * 1024;
inline constexpr std::size_t kContainerConfigBytesMax = 8 * 1024 * 1024;

// What a runtime writes to a hook's standard input.
struct ContainerState {
  std::string id;
  int pid = 0;
  std::string bundle;
};
Result<ContainerState> ReadContainerState(std::string_view text);

struct AskedDevice {
  std::uint32_t major = 0;
  std::optional<std::uint32_t> minor;  // absent: all of the major
  bool everything = false;             // all devices there are
  std::string where;                   // "linux.devices: /dev/nvidia0"
};

struct ContainerConfig {
  std::string root;  // of its file system; as written, so perhaps relative to the bundle
  std::vector<AskedDevice> asked;
  std::set<std::string> leases;  // that our own hook, put there by our CDI document, names
};
// `majors` are those of GPUs. `hook` is our own program's path.
Result<ContainerConfig> ReadContainerConfig(std::string_view text,
                                            const std::set<std::uint32_t>& majors,
                                            std::string_view hook);

// The majors of GPU drivers, by the text of /proc/devices, and those that are always theirs.
std::set<std::uint32_t> GpuMajors(std::string_view proc_devices);

// kPermissionDenied, saying what is asked for and what to do, unless every device is one of these
// leases'.
Status CheckCovered(const std::vector<AskedDevice>& asked, const std::vector<HeldLease>& leases);

// The cgroups that are the container's own, of the text of /proc/PID/cgroup: those with its id in
// their name. None: it shares one with others, and could not be ended without them.
std::vector<std::string> OwnCgroups(std::string_view proc_cgroup, std::string_view container);

// The mounts of /proc/PID/mountinfo beneath `root` on which device nodes work.
struct ContainerMount {
  std::string path;      // relative to `root`; "." for the root itself
  bool devices = false;  // a file system of the kernel's device nodes
};
Result<std::vector<ContainerMount>> MountsBeneath(std::string_view mountinfo,
                                                  std::string_view root);

}  // namespace ringfence::isolate
