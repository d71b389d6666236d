#include "isolate/controls.h"

#include <algorithm>

#include "os/file.h"
#include "os/identity.h"
#include "os/kernel_probe.h"
#include "os/landlock.h"
#include "os/mount.h"
#include "os/seccomp.h"

namespace ringfence::isolate {
namespace {

using Why = std::optional<std::string>;

template <int least>
Why NoLandlock(const KernelFacts& facts) {
  if (facts.landlock_abi >= least) {
    return {};
  }
  return facts.landlock_abi == 0
             ? "this kernel has no Landlock"
             : "this kernel's Landlock has ABI " + std::to_string(facts.landlock_abi) +
                   ", needed is " + std::to_string(least);
}

Why NoSeccomp(const KernelFacts& facts) {
  return facts.seccomp ? Why() : "this kernel has no seccomp";
}

template <bool KernelFacts::* member>
Why NoCall(const KernelFacts& facts) {
  return facts.*member ? Why() : "this kernel (" + facts.release + ") does not have it";
}

Why NoNamespaces(const KernelFacts& facts) {
  return facts.namespaces.empty() ? Why() : "no namespaces (" + facts.namespaces + ")";
}
Why NoUserNamespaces(const KernelFacts& facts) {
  return facts.user_namespaces.empty() ? Why()
                                       : "no user namespaces (" + facts.user_namespaces + ")";
}

bool OnlyUnified(const KernelFacts& facts) {
  return !facts.cgroups.empty() &&
         std::all_of(facts.cgroups.begin(), facts.cgroups.end(),
                     [](const os::CgroupHierarchy& one) { return one.unified; });
}

Why NoCgroups(const KernelFacts& facts) {
  return facts.cgroups.empty() ? "no cgroups are mounted" : Why();
}

Why NoDeviceControl(const KernelFacts& facts) {
  if (facts.cgroups.empty()) {
    return {};  // said once, by the control above
  }
  if (!os::HasDeviceControl(facts.cgroups)) {
    return "no control over devices";
  }
  return OnlyUnified(facts) && !facts.device_program
             ? "no control over devices: a BPF device program cannot be loaded"
             : Why();
}

template <const char* const& controller>
Why NoController(const KernelFacts& facts) {
  if (facts.cgroups.empty() || os::HasController(facts.cgroups, controller)) {
    return {};
  }
  return "the cgroup controller '" + std::string(controller) + "' is not there";
}
constexpr const char* kMemory = "memory";
constexpr const char* kCpu = "cpu";
constexpr const char* kPids = "pids";

constexpr std::string_view kUseLandlock =
    "use Linux 5.13 or later with 'landlock' in its lsm= list";
constexpr std::string_view kEnableController = "enable it on the kernel's command line";
constexpr std::string_view kAskAbi = "landlock_create_ruleset, version query";

constexpr Control kControls[] = {
    {"agent.landlock", Wearer::kAgent, true, "the agent opens and executes only what it needs",
     "Linux 5.13 with Landlock", kAskAbi, kUseLandlock, false, NoLandlock<1>},
    {"agent.seccomp", Wearer::kAgent, true,
     "the agent starts no process and makes no call it has no business with",
     "CONFIG_SECCOMP_FILTER", "prctl(PR_GET_SECCOMP)",
     "use a kernel built with CONFIG_SECCOMP_FILTER", false, NoSeccomp},
    {"agent.landlock.ports", Wearer::kAgent, false, "the agent connects to the server's port only",
     "Linux 6.7 (Landlock ABI 4)", kAskAbi, "use Linux 6.7 or later", false, NoLandlock<4>},
    {"agent.landlock.scope", Wearer::kAgent, false,
     "the agent signals nobody outside and reaches no abstract socket",
     "Linux 6.12 (Landlock ABI 6)", kAskAbi, "use Linux 6.12 or later", false, NoLandlock<6>},
    {"jailer.descriptors", Wearer::kJailer, true,
     "no descriptor of root's leaks into a box or a worker",
     "Linux 5.11 (close_range with CLOSE_RANGE_CLOEXEC)", "close_range on an empty range",
     "use Linux 5.11 or later", false, NoCall<&KernelFacts::close_range>},
    {"jailer.pidfd", Wearer::kJailer, true,
     "what is ended is the process that was started, never one that got its number",
     "Linux 5.3 (pidfd_open, pidfd_send_signal)", "a pidfd of this process",
     "use Linux 5.3 or later", false, NoCall<&KernelFacts::pidfd>},
    {"jailer.tmpfs", Wearer::kJailer, true, "bundles and device nodes vanish with the jailer",
     "CONFIG_TMPFS", "/proc/filesystems", "use a kernel built with CONFIG_TMPFS", false,
     NoCall<&KernelFacts::tmpfs>},
    {"box.namespaces", Wearer::kBox, true,
     "a job sees no process, mount, network or name of others",
     "pid, mount, network, ipc, uts and cgroup namespaces", "unshare in a short-lived process",
     "run on the host, or in a container with CAP_SYS_ADMIN", true, NoNamespaces},
    {"box.user_namespace", Wearer::kBox, true, "root in a box is nobody outside", "user namespaces",
     "unshare in a short-lived process", "set sysctl user.max_user_namespaces above 0", true,
     NoUserNamespaces},
    {"box.cgroups", Wearer::kBox, true, "a box is one group: limited, counted and ended whole",
     "cgroups, v1 or v2, mounted", "/proc/self/mountinfo", "mount -t cgroup2 none /sys/fs/cgroup",
     true, NoCgroups},
    {"box.devices", Wearer::kBox, true, "a job opens the devices of its own lease only",
     "the v1 devices controller, or v2 with BPF device programs (Linux 4.15)",
     "mounted controllers; on v2 a device program is loaded",
     "mount the v1 devices controller, or cgroup v2 alone", true, NoDeviceControl},
    {"box.memory", Wearer::kBox, true, "a job's memory is limited", "the memory controller",
     "mounted controllers", kEnableController, true, NoController<kMemory>},
    {"box.cpu", Wearer::kBox, true, "a job's share of the processors is limited",
     "the cpu controller", "mounted controllers", kEnableController, true, NoController<kCpu>},
    {"box.pids", Wearer::kBox, true, "a job's number of processes is limited",
     "the pids controller", "mounted controllers", kEnableController, true, NoController<kPids>},
    {"box.landlock", Wearer::kBox, true, "what a mistake in the mounts would open stays closed",
     "Linux 5.13 with Landlock", kAskAbi, kUseLandlock, false, NoLandlock<1>},
    {"box.seccomp", Wearer::kBox, true, "a job makes only calls of an allow-list",
     "CONFIG_SECCOMP_FILTER", "prctl(PR_GET_SECCOMP)", "use one built with CONFIG_SECCOMP_FILTER",
     false, NoSeccomp},
    {"box.landlock.ioctl", Wearer::kBox, false,
     "a job makes ioctls only on the devices of its own lease", "Linux 6.10 (Landlock ABI 5)",
     kAskAbi, "use Linux 6.10 or later", false, NoLandlock<5>},
    {"box.kill", Wearer::kBox, false, "a whole box is ended at once, whatever it forks meanwhile",
     "cgroup v2 with cgroup.kill (Linux 5.14)", "cgroup.kill in the v2 hierarchy",
     "use cgroup v2 and Linux 5.14 or later; without, a box is frozen or signalled again until "
     "none "
     "of it is left",
     true, NoCall<&KernelFacts::cgroup_kill>},
};

bool HasCgroupKill(const std::vector<os::CgroupHierarchy>& hierarchies) {
  return std::any_of(hierarchies.begin(), hierarchies.end(), [](const os::CgroupHierarchy& one) {
    if (!one.unified) {
      return false;
    }
    // The root has no such file, every other group has.
    const auto names = os::ListDir(one.mount);
    return names.has_value() &&
           std::any_of(names->begin(), names->end(), [&](const std::string& name) {
             return os::Exists(one.mount + "/" + name + "/cgroup.kill");
           });
  });
}

}  // namespace

std::string_view Name(Wearer wearer) {
  switch (wearer) {
    case Wearer::kAgent:
      return "agent";
    case Wearer::kJailer:
      return "jailer";
    case Wearer::kBox:
      return "box";
  }
  return "?";
}

std::span<const Control> Controls() { return kControls; }

KernelFacts ProbeCalls() {
  KernelFacts facts;
  facts.release = os::KernelRelease();
  facts.landlock_abi = os::LandlockAbi();
  facts.seccomp = os::SeccompAvailable();
  facts.pidfd = os::HasPidfd();
  facts.close_range = os::HasCloseRange();
  facts.openat2 = os::HasOpenat2();
  facts.tmpfs = os::HasFileSystem("tmpfs");
  return facts;
}

KernelFacts ProbeKernel() {
  KernelFacts facts = ProbeCalls();
  facts.tried = os::IsRoot();
  if (const Status tried = os::TryNamespaces(); !tried.has_value()) {
    facts.namespaces = tried.error().message;
  }
  if (const Status tried = os::TryUserNamespace(); !tried.has_value()) {
    facts.user_namespaces = tried.error().message;
  }
  auto cgroups = os::CgroupHierarchies();
  if (cgroups.has_value()) {
    facts.cgroups = std::move(cgroups).value();
  }
  facts.cgroup_kill = HasCgroupKill(facts.cgroups);
  facts.device_program = os::CanLoadDeviceProgram();
  return facts;
}

std::vector<std::string> MissingControls(std::span<const Wearer> wearers,
                                         const KernelFacts& facts) {
  std::vector<std::string> missing;
  for (const Control& control : Controls()) {
    if (!control.required ||
        std::find(wearers.begin(), wearers.end(), control.wearer) == wearers.end()) {
      continue;
    }
    if (const auto why = control.missing(facts)) {
      missing.push_back(*why + ": " + std::string(control.mend) + " (" + std::string(control.id) +
                        " needs " + std::string(control.needs) + ")");
    }
  }
  return missing;
}

Status Require(Wearer wearer, const KernelFacts& facts) {
  const std::vector<std::string> missing = MissingControls(std::span(&wearer, 1), facts);
  if (!missing.empty()) {
    return Error{
        Code::kFailedPrecondition,
        "the " + std::string(Name(wearer)) + " does not run without its walls: " + missing.front(),
        "`ringfence doctor` shows all that is missing on this machine"};
  }
  return {};
}

}  // namespace ringfence::isolate
