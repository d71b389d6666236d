#pragma once

// Control groups, v1, v2 and both side by side. A group is named by its path beneath every
// hierarchy's mount ("/ringfence/node/lease").

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::os {

struct CgroupHierarchy {
  std::string mount;  // where it is mounted
  bool unified = false;
  std::vector<std::string> controllers;  // v1: of this hierarchy; v2: available at its root
};
// As mounted for the calling process.
Result<std::vector<CgroupHierarchy>> CgroupHierarchies();
// Whether device rules can be enforced: the v1 controller, or v2 (by BPF).
bool HasDeviceControl(const std::vector<CgroupHierarchy>& hierarchies);
bool HasController(const std::vector<CgroupHierarchy>& hierarchies, const std::string& name);

// Processes in the group or beneath it, in any hierarchy.
Result<std::vector<int>> CgroupProcesses(const std::string& group);
// SIGKILL to all of them, again until none is left. kUnavailable when some do not go.
Status KillCgroup(const std::string& group);
// Removes the group from every hierarchy; absent is OK. It must be empty.
Status RemoveCgroup(const std::string& group);
// One attempt, without what lies beneath; one that is still used stays.
void RemoveCgroupIfUnused(const std::string& group);
bool CgroupExists(const std::string& group);
// How often the kernel killed a process of the group for want of memory.
std::uint64_t CgroupOomKills(const std::string& group);

}  // namespace ringfence::os
