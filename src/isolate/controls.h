#pragma once

// Every control of a node that needs something of the kernel, in one table: what it is, which
// kernel it needs, how that is found out, and what to do. The agent, the jailer and `ringfence
// doctor` all go by it. A required control that cannot be had is a refusal, never a warning.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/cgroup.h"

namespace ringfence::isolate {

// What a kernel can do, as values: a test can make any kernel of them.
struct KernelFacts {
  std::string release;
  int landlock_abi = 0;
  bool seccomp = false;
  bool pidfd = false;
  bool close_range = false;
  bool openat2 = false;
  bool tmpfs = false;
  // Tried as root only:
  bool tried = false;
  std::string namespaces;       // why they cannot be made; empty: they can
  std::string user_namespaces;  // the same
  std::vector<os::CgroupHierarchy> cgroups;
  bool cgroup_kill = false;     // v2's way to end a whole group at once
  bool device_program = false;  // v2's way to decide about devices
};
// What any process may ask.
KernelFacts ProbeCalls();
// That, and what must be tried as root.
KernelFacts ProbeKernel();

enum class Wearer { kAgent, kJailer, kBox };
std::string_view Name(Wearer wearer);

struct Control {
  std::string_view id;
  Wearer wearer;
  bool required;           // false: another wall that a newer kernel adds
  std::string_view what;   // what it does
  std::string_view needs;  // the kernel it needs
  std::string_view probe;  // how that is found out
  std::string_view mend;   // what to do
  bool needs_root;         // to be tried at all
  // Why it cannot be had with these facts; nothing: it can.
  std::optional<std::string> (*missing)(const KernelFacts& facts);
};
std::span<const Control> Controls();

// A sentence for each required control of these wearers that cannot be had: what, and how to mend
// it.
std::vector<std::string> MissingControls(std::span<const Wearer> wearers, const KernelFacts& facts);

// kFailedPrecondition, naming control and need, when a required control of `wearer` cannot be had.
Status Require(Wearer wearer, const KernelFacts& facts);

}  // namespace ringfence::isolate
