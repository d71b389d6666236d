#include "isolate/walls_away.h"

#include <algorithm>

namespace ringfence::isolate {
namespace {

struct Row {
  Wall wall;
  std::string_view name;
  std::string_view without;
};

constexpr Row kWalls[] = {
    {Wall::kDeviceNodes, "device_nodes", "nodes of devices that are not its lease's are in /dev"},
    {Wall::kDeviceRules, "device_rules", "its cgroup allows every device"},
    {Wall::kSeccomp, "seccomp", "every system call reaches the kernel"},
    {Wall::kLandlock, "landlock", "the job runs without a Landlock domain"},
    {Wall::kCapabilities, "capabilities", "the job is the box's root, with its capabilities"},
    {Wall::kNoNewPrivileges, "no_new_privileges",
     "programs may gain rights when they are executed"},
    {Wall::kUserIds, "user_ids", "its user ids are those of its neighbour"},
    {Wall::kUserNamespace, "user_namespace", "its user ids are the host's"},
    {Wall::kPidNamespace, "pid_namespace", "it sees the host's processes"},
    {Wall::kIpcNamespace, "ipc_namespace", "it is in the host's IPC namespace"},
    {Wall::kNetworkNamespace, "network_namespace", "it is in the host's network"},
    {Wall::kUtsNamespace, "uts_namespace", "it has the host's name"},
    {Wall::kCgroupNamespace, "cgroup_namespace", "it sees the host's cgroups"},
    {Wall::kMaskedPaths, "masked_paths", "nothing of /proc and /sys is masked or read-only"},
    {Wall::kMountFlags, "mount_flags",
     "what comes from the host is writable and keeps set-user-id"},
    {Wall::kReadOnlyRoot, "read_only_root", "its root can be written to"},
    {Wall::kHostRoot, "host_root", "the host's root is mounted in it"},
    {Wall::kOwnFiles, "own_files", "/tmp and /dev/shm are its neighbour's too"},
    {Wall::kDescriptors, "descriptors", "a folder of the host is left open to it"},
    {Wall::kEnvironment, "environment", "the names of the host's variables are in its environment"},
    {Wall::kScrub, "scrub", "its card is not scrubbed before it starts"},
    {Wall::kGpuContext, "gpu_context", "it shares its card's context with its neighbour (MPS)"},
};

const Row& RowOf(Wall wall) {
  return *std::find_if(std::begin(kWalls), std::end(kWalls),
                       [&](const Row& row) { return row.wall == wall; });
}

}  // namespace

std::vector<Wall> AllWalls() {
  std::vector<Wall> all;
  for (const Row& row : kWalls) {
    all.push_back(row.wall);
  }
  return all;
}

std::string_view Name(Wall wall) { return RowOf(wall).name; }

std::string_view WithoutIt(Wall wall) { return RowOf(wall).without; }

std::optional<Wall> ParseWall(std::string_view name) {
  const auto* row = std::find_if(std::begin(kWalls), std::end(kWalls),
                                 [&](const Row& one) { return one.name == name; });
  return row == std::end(kWalls) ? std::nullopt : std::optional(row->wall);
}

Result<WallsAway> WallsAway::ForProbe(const std::vector<std::string>& command,
                                      const std::vector<std::string>& names) {
  if (command.empty() || command[0] != kBoxProbePath) {
    return Error{Code::kPermissionDenied,
                 "walls are taken away for nothing but Ringfence's own probes"};
  }
  std::vector<Wall> walls;
  for (const std::string& name : names) {
    const auto wall = ParseWall(name);
    if (!wall.has_value()) {
      return Error{Code::kInvalidArgument, "there is no wall of this name: " + name.substr(0, 64),
                   "`ringfence prove --list` names them", "walls_away"};
    }
    if (std::find(walls.begin(), walls.end(), *wall) != walls.end()) {
      return Error{
          Code::kInvalidArgument, "the wall " + name + " is named twice", {}, "walls_away"};
    }
    walls.push_back(*wall);
  }
  if (walls.empty()) {
    return Error{Code::kInvalidArgument, "no wall is named", {}, "walls_away"};
  }
  return WallsAway(std::move(walls));
}

bool WallsAway::Has(Wall wall) const {
  return std::find(walls_.begin(), walls_.end(), wall) != walls_.end();
}

}  // namespace ringfence::isolate
