#pragma once

// The leases of this node that another runtime's containers may take (`--runtime cdi`), and which
// containers have. A folder of root's, written by the jailer; ringfence-hook reads it, and adds
// each container before anything of it runs.
//   node.json                 the majors of GPU devices here
//   LEASE/lease.json          the lease is held; its devices
//   LEASE/ended.json          it was: no container joins any more
//   LEASE/spec.json           its CDI document, byte for byte
//   LEASE/containers/ID       a container that has taken it

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device_files.h"
#include "os/holders.h"
#include "os/unique_fd.h"

namespace ringfence::isolate {

struct HeldLease {
  std::string lease;
  std::string boot;  // the kernel's id of the boot it was given in: it does not outlive that
  std::vector<gpu::DeviceNode> nodes;
  std::vector<os::Holder> before;  // who had its devices open when it was given: the host's own
};

struct HeldContainer {
  std::string id;
  int pid = 0;  // its process 1, as the host sees it
  std::uint64_t started = 0;
  std::vector<std::string> cgroups;  // of its own, in whichever hierarchies
};

// Letters, digits, '.', '_' and '-', as runtimes choose ids: never a path.
bool IsContainerId(std::string_view text);

class HeldFolder {
 public:
  // kNotFound when it is not there; kFailedPrecondition when it is not root's alone.
  static Result<HeldFolder> Open(const std::string& path);

  // Those that have a folder, held or being ended.
  Result<std::vector<std::string>> Names() const;
  // kNotFound when it is not held (any more).
  Result<HeldLease> Find(const std::string& lease) const;
  // The same for one that Close has ended.
  Result<HeldLease> FindEnded(const std::string& lease) const;
  Result<std::string> Spec(const std::string& lease) const;
  Result<std::vector<HeldContainer>> Containers(const std::string& lease) const;
  Result<std::set<std::uint32_t>> Majors() const;

  // Durable, each of them.
  Status SetMajors(const std::set<std::uint32_t>& majors);
  Status Add(const HeldLease& lease, const std::string& spec);
  // Whoever has not joined by the time this returns never will: see Join.
  Status Close(const std::string& lease);
  Status Drop(const std::string& lease, const std::string& container);
  Status Remove(const std::string& lease);  // absent is OK

  // Writes the container down first and looks then whether the lease is still held. Close takes
  // the lease away first and lists the containers then. So one of the two sees the other.
  Status Join(const std::string& lease, const HeldContainer& container);

 private:
  explicit HeldFolder(os::UniqueFd folder) : folder_(std::move(folder)) {}
  Result<HeldLease> Read(const std::string& lease, const char* file) const;

  os::UniqueFd folder_;
};

}  // namespace ringfence::isolate
