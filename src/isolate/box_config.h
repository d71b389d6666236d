#pragma once

// The OCI configuration of a box. There is no way to say "privileged", "host network" or "host
// PIDs" here: such a box cannot be expressed, but for our own probe (isolate/walls_away.h).

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "gpu/device_files.h"
#include "isolate/exception.h"
#include "isolate/grant.h"
#include "isolate/walls_away.h"

namespace ringfence::isolate {

inline constexpr unsigned kBoxUidCount = 65536;  // of each box's user namespace
inline constexpr unsigned kJobUid = 1000;        // the job's user, as the box sees it
inline constexpr const char* kBoxInitPath = "/run/ringfence/init";

struct BoxNode {
  std::string host_path;  // a node that the jailer made, owned by the box's mapped user
  gpu::DeviceNode node;
};

struct BoxFile {  // read-only, from the host
  std::string host_path;
  std::string box_path;
};

struct NamedMount {  // what the node's settings call by a name, and where a box has it
  std::string host_path;
  std::string box_path;
  bool writable = false;
};

struct BoxSpec {
  Grant grant;
  std::string cgroup;  // "/ringfence/NODE/LEASE"
  std::string root_folder;
  std::string init_host_path;
  std::uint64_t open_files_max = 1024;
  unsigned first_uid = 0;             // on the host, of the box's root; kBoxUidCount follow
  std::vector<BoxFile> system_files;  // /usr and what of /etc comes from the host
  std::vector<BoxNode> nodes;
  std::vector<gpu::DriverMount> driver_mounts;
  std::vector<std::string> library_folders;
  std::vector<NamedMount> named_mounts;
  std::vector<std::string> huge_page_sizes;  // "2MB": those whose use the kernel can limit
  // Of a box with an image: its variables, and where it wants to start.
  bool has_image = false;
  std::vector<std::pair<std::string, std::string>> image_environment;
  std::string working_folder = "/home/job";
  // Bound at kBoxProbePath when that is the grant's command, and with walls away only then.
  std::string probe_host_path;
  std::optional<WallsAway> walls_away;
  std::optional<HostAccess> access;         // the only way to the host's network and processes
  std::vector<BoxNode> foreign_nodes;       // without kDeviceNodes
  std::string shared_folder;                // without kOwnFiles: has tmp and shm
  std::string mps_folder;                   // without kGpuContext: the pipes of an MPS daemon
  std::vector<std::string> host_variables;  // without kEnvironment: names
};

// Whether the box stands without this wall: never, unless it runs our probe.
bool Without(const BoxSpec& spec, Wall wall);

// Whether it shares the host's: by an exception made for this very lease.
bool SharesNetwork(const BoxSpec& spec);
bool SharesPids(const BoxSpec& spec);

Json BoxConfig(const BoxSpec& spec);
// What of the box's files the job may use and how, as ringfence-init's options.
std::vector<std::string> LandlockOptions(const BoxSpec& spec);

}  // namespace ringfence::isolate
