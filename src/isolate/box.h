#pragma once

// A box's life on the node, from plan to nothing left. Called by the jailer only, which has one
// thread and owns all of it.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device_files.h"
#include "isolate/box_config.h"
#include "isolate/box_image.h"
#include "isolate/grant.h"
#include "isolate/walls_away.h"
#include "os/unique_fd.h"

namespace ringfence::isolate {

// Where boxes are built on this machine.
struct BoxPlace {
  std::string runtime;     // runc
  std::string init;        // the ringfence-init binary
  std::string probe;       // the ringfence-probe binary
  std::string run_folder;  // a tmpfs of the jailer's own
  std::string host_root = "/";
  std::string node;
  unsigned uid_base = 0;
};

struct BoxPlan {
  Grant grant;
  unsigned slot = 0;  // which range of user ids
  gpu::DriverFiles files;
  std::optional<BoxImage> image;
  std::vector<NamedMount> mounts;
  std::optional<WallsAway> walls_away;
  // Capability nodes of the node's slices: what a box without kDeviceNodes finds in its /dev.
  std::vector<gpu::DeviceNode> foreign_slices;
  std::optional<HostAccess> access;  // of a grant with an exception; without it no box is built
  // Of a box that runs a probe: its signed result, from how the box ended. Else none.
  std::function<std::string(const std::string& ending)> prove;
};

// Makes the folders that boxes lie in. Once, at the jailer's start.
Status PrepareBoxPlace(const BoxPlace& place);

// Of the box's own root, on the host; kBoxUidCount follow.
unsigned FirstUid(const BoxPlace& place, const BoxPlan& plan);
std::string BoxCgroup(const BoxPlace& place, const std::string& lease);
// Where this lease's bundle lies.
std::string BundleFolder(const BoxPlace& place, const std::string& lease);

// Builds bundle, device nodes and configuration. On an error everything made is gone again.
Result<BoxSpec> BuildBox(const BoxPlace& place, const BoxPlan& plan);

// The runtime's process is under way; when it has ended well the box runs.
struct LaunchedBox {
  int runtime_pid = 0;
  os::UniqueFd out;  // read ends
  os::UniqueFd err;
  os::UniqueFd status;  // ringfence-init's line; closing it ends the box
};
Result<LaunchedBox> LaunchBox(const BoxPlace& place, const BoxPlan& plan);
// After the runtime has ended with 0: the box's process 1, as seen here.
Result<int> BoxPid(const BoxPlace& place, const std::string& lease);
// After it has ended otherwise: its own words.
std::string RuntimeComplaint(const BoxPlace& place, const std::string& lease);

// Ends what still runs and removes cgroup, mounts, nodes, bundle, and gives simulated memory back
// to root. Fine to call at any point of a box's life, also for one of an earlier jailer.
// OK means: nothing of the box is left.
Status TakeDownBox(const BoxPlace& place, const std::string& lease, const gpu::DriverFiles& files);

}  // namespace ringfence::isolate
