#include "isolate/probe_table.h"

#include <algorithm>

namespace ringfence::isolate {
namespace {

using model::IsolationClass;

// A wall of the kernel stands around a box whatever its GPU.
const std::vector<IsolationClass>& Every() {
  static const std::vector<IsolationClass> all = {IsolationClass::kNode, IsolationClass::kGpu,
                                                  IsolationClass::kMig, IsolationClass::kTime,
                                                  IsolationClass::kMps};
  return all;
}

std::vector<Probe> KernelProbes() {
  return {
      {.name = "user-namespace",
       .title = "New user namespace",
       .what = "Becomes root of a new user namespace, the first step of most kernel exploits",
       .classes = Every(),
       .control = {Wall::kSeccomp}},
      {.name = "bpf",
       .title = "BPF programs",
       .what = "Loads a program into the kernel",
       .classes = Every(),
       .control = {Wall::kSeccomp, Wall::kCapabilities, Wall::kUserNamespace},
       .needs = "a kernel with BPF"},
      {.name = "perf-event",
       .title = "Performance events",
       .what = "Counts the events of every process on a processor",
       .classes = Every(),
       .control = {Wall::kSeccomp, Wall::kCapabilities, Wall::kUserNamespace},
       .needs = "a kernel with performance events"},
      {.name = "io-uring",
       .title = "io_uring",
       .what = "Makes a queue whose requests pass no system call filter",
       .classes = Every(),
       .control = {Wall::kSeccomp},
       .needs = "a kernel with io_uring"},
      {.name = "userfaultfd",
       .title = "userfaultfd",
       .what = "Holds up page faults, which makes races in the kernel easy to win",
       .classes = Every(),
       .control = {Wall::kSeccomp},
       .needs = "a kernel with userfaultfd"},
      {.name = "keyring",
       .title = "Kernel keyrings",
       .what = "Reads a key that a neighbour keeps in the kernel",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kSeccomp, Wall::kUserIds},
       .needs = "a kernel with keyrings"},
      {.name = "kernel-module",
       .title = "Kernel modules",
       .what = "Loads a module into the kernel",
       .classes = Every(),
       .control = {Wall::kSeccomp, Wall::kCapabilities, Wall::kUserNamespace},
       .needs = "a kernel with loadable modules"},
      {.name = "kexec",
       .title = "Another kernel",
       .what = "Loads a kernel to start instead of this one",
       .classes = Every(),
       .control = {Wall::kSeccomp, Wall::kCapabilities, Wall::kUserNamespace},
       .needs = "a kernel with kexec"},
      {.name = "kernel-memory",
       .title = "Kernel memory",
       .what = "Reads /proc/kcore, /dev/mem, /dev/kmem or /dev/port",
       .classes = Every(),
       .control = {Wall::kMaskedPaths, Wall::kCapabilities, Wall::kUserNamespace},
       .needs = "a kernel with /proc/kcore"},
      {.name = "kernel-knobs",
       .title = "Kernel settings",
       .what = "Opens sysrq-trigger and sysctls for writing, where CVE-2025-52881 turned the "
               "runtime's writes to",
       .classes = Every(),
       .control = {Wall::kMaskedPaths, Wall::kCapabilities, Wall::kUserNamespace}},
      {.name = "core-pattern",
       .title = "Core pattern",
       .what = "Opens core_pattern for writing, which names a program that the host runs as root",
       .classes = Every(),
       .control = {Wall::kMaskedPaths, Wall::kCapabilities, Wall::kUserNamespace}},
      {.name = "raw-socket",
       .title = "Raw sockets",
       .what = "Opens a packet socket, past the rules of the network",
       .classes = Every(),
       .control = {Wall::kSeccomp, Wall::kCapabilities},
       .needs = "a kernel with packet sockets"},
      {.name = "vsock",
       .title = "Hypervisor sockets",
       .what = "Opens a socket to the hypervisor, past every network namespace",
       .classes = Every(),
       .control = {Wall::kSeccomp},
       .needs = "a kernel with vsock"},
      {.name = "af-alg",
       .title = "Kernel crypto sockets",
       .what = "Opens the kernel's crypto interface, a way in of several exploits",
       .classes = Every(),
       .control = {Wall::kSeccomp},
       .needs = "a kernel with AF_ALG"},
  };
}

std::vector<Probe> ProcessProbes() {
  return {
      {.name = "proc-cmdline",
       .title = "Command lines of others",
       .what = "Reads a neighbour's command line through /proc/PID/cmdline",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace}},
      {.name = "proc-environ",
       .title = "Environment of others",
       .what = "Reads a neighbour's environment through /proc/PID/environ",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kUserNamespace, Wall::kLandlock}},
      {.name = "proc-mem",
       .title = "Memory of others",
       .what = "Reads a neighbour's memory through /proc/PID/mem",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kUserNamespace, Wall::kLandlock}},
      {.name = "proc-root",
       .title = "Root of others",
       .what = "Reads a neighbour's files through /proc/PID/root",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kUserNamespace, Wall::kLandlock}},
      {.name = "proc-fd",
       .title = "Open files of others",
       .what = "Opens a neighbour's descriptors through /proc/PID/fd",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kUserNamespace, Wall::kLandlock}},
      {.name = "ptrace",
       .title = "Tracing others",
       .what = "Attaches to a neighbour as a debugger and reads its memory",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kUserNamespace, Wall::kLandlock,
                   Wall::kSeccomp}},
      {.name = "process-vm-readv",
       .title = "Memory of others, by call",
       .what = "Reads a neighbour's memory by process_vm_readv",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kUserNamespace, Wall::kLandlock,
                   Wall::kSeccomp}},
      {.name = "pidfd-getfd",
       .title = "Descriptors of others",
       .what = "Takes a copy of a neighbour's descriptor by pidfd_getfd",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kUserNamespace, Wall::kLandlock,
                   Wall::kSeccomp}},
      {.name = "signal",
       .title = "Signals",
       .what = "Sends a neighbour a signal",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kLandlock}},
  };
}

std::vector<Probe> FileProbes() {
  return {
      {.name = "sysv-shm",
       .title = "System V shared memory",
       .what = "Attaches a neighbour's shared memory segments",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kIpcNamespace}},
      {.name = "posix-shm",
       .title = "POSIX shared memory",
       .what = "Reads a neighbour's files in /dev/shm",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kOwnFiles}},
      {.name = "leftover-files",
       .title = "Files left behind",
       .what = "Looks for what an earlier lease left in /tmp, /dev/shm and its home",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kOwnFiles},
       .victim_ends_before = "what it left is looked for"},
      {.name = "other-lease-files",
       .title = "Bundles of other leases",
       .what = "Reads another lease's bundle, with its command and environment",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kHostRoot, Wall::kUserNamespace, Wall::kCapabilities, Wall::kLandlock},
       .facts = {"victim_lease"}},
      {.name = "host-files",
       .title = "The host's files",
       .what = "Reads the host's /etc/shadow through any mount",
       .classes = Every(),
       .control = {Wall::kHostRoot, Wall::kUserNamespace, Wall::kCapabilities, Wall::kLandlock}},
  };
}

std::vector<Probe> SocketProbes() {
  return {
      {.name = "abstract-socket",
       .title = "Abstract sockets",
       .what = "Connects to a neighbour's abstract socket",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kNetworkNamespace, Wall::kLandlock}},
      {.name = "network-neighbour",
       .title = "Network to a neighbour",
       .what = "Connects to a neighbour's port",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kNetworkNamespace, Wall::kLandlock}},
      {.name = "network-host",
       .title = "Network to the host",
       .what = "Connects to a port that the host listens on",
       .classes = Every(),
       .control = {Wall::kNetworkNamespace, Wall::kLandlock},
       .facts = {"host_port"}},
      {.name = "network-metadata",
       .title = "Network to a metadata service",
       .what = "Connects to 169.254.169.254, where clouds keep a machine's credentials",
       .classes = Every(),
       .control = {Wall::kNetworkNamespace, Wall::kLandlock},
       .needs = "a metadata service"},
      {.name = "service-socket",
       .title = "Sockets of services",
       .what = "Connects to the sockets of the agent, docker, containerd, systemd or D-Bus",
       .classes = Every(),
       .control = {Wall::kHostRoot, Wall::kUserNamespace, Wall::kCapabilities},
       .facts = {"agent_socket"}},
  };
}

std::vector<Probe> MountProbes() {
  return {
      {.name = "mount",
       .title = "Mounting",
       .what = "Mounts a file system, as root of a new user namespace if need be",
       .classes = Every(),
       .control = {Wall::kSeccomp, Wall::kLandlock}},
      {.name = "remount",
       .title = "Remounting",
       .what = "Makes the host's /usr writable by mounting it again",
       .classes = Every(),
       .control = {Wall::kSeccomp, Wall::kCapabilities, Wall::kLandlock}},
      {.name = "setns",
       .title = "Namespaces of others",
       .what = "Enters a neighbour's mount namespace and reads its files",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserNamespace, Wall::kSeccomp, Wall::kCapabilities,
                   Wall::kLandlock}},
      {.name = "open-by-handle",
       .title = "Files by handle",
       .what = "Opens the root of the host's file system by a guessed handle (shocker)",
       .classes = Every(),
       .control = {Wall::kUserNamespace, Wall::kCapabilities, Wall::kSeccomp},
       .needs = "/usr on ext4 or XFS"},
      {.name = "write-root",
       .title = "Writing to the root",
       .what = "Makes files outside of the job's own folders",
       .classes = Every(),
       .control = {Wall::kReadOnlyRoot, Wall::kCapabilities, Wall::kLandlock}},
      {.name = "release-agent",
       .title = "cgroup release agent",
       .what = "Opens release_agent for writing, which names a program that the host runs as root "
               "(CVE-2022-0492)",
       .classes = Every(),
       .control = {Wall::kUserNamespace, Wall::kCapabilities, Wall::kSeccomp, Wall::kLandlock,
                   Wall::kCgroupNamespace},
       .needs = "cgroup hierarchies of version 1"},
      {.name = "cgroup-limits",
       .title = "Own limits",
       .what = "Opens its own cgroup for writing, to change its limits or leave them",
       .classes = Every(),
       .control = {Wall::kUserNamespace, Wall::kCapabilities, Wall::kSeccomp, Wall::kLandlock}},
      {.name = "cgroup-view",
       .title = "cgroup names",
       .what = "Reads the host's cgroup tree from /proc/self/cgroup",
       .classes = Every(),
       .control = {Wall::kCgroupNamespace}},
  };
}

std::vector<Probe> RuntimeProbes() {
  return {
      {.name = "leaked-descriptor",
       .title = "Descriptors of the runtime",
       .what = "Uses a folder of the host that the runtime left open, or a working folder outside "
               "of the root (CVE-2024-21626)",
       .classes = Every(),
       .control = {Wall::kDescriptors}},
      {.name = "masked-paths",
       .title = "Masked paths",
       .what = "Reads what /proc and /sys must not show, as CVE-2025-31133 allowed",
       .classes = Every(),
       .control = {Wall::kMaskedPaths}},
      {.name = "console",
       .title = "Console and terminals",
       .what = "Opens a console or a terminal that is not the box's, as CVE-2025-52565 allowed",
       .classes = Every(),
       .control = {Wall::kDeviceNodes, Wall::kDeviceRules}},
      {.name = "runtime-programs",
       .title = "Programs of the runtime",
       .what = "Opens the host's runtime, init and programs for writing (CVE-2019-5736)",
       .classes = Every(),
       .control = {Wall::kMountFlags, Wall::kUserNamespace, Wall::kCapabilities, Wall::kLandlock}},
      {.name = "environment",
       .title = "Environment injection",
       .what =
           "Looks for variables of the host or for its hooks, such as LD_PRELOAD (CVE-2025-23266)",
       .classes = Every(),
       .control = {Wall::kEnvironment}},
      {.name = "hostname",
       .title = "The host's name",
       .what = "Reads the host's name",
       .classes = Every(),
       .control = {Wall::kUtsNamespace}},
      {.name = "setuid",
       .title = "Set-user-id programs",
       .what = "Becomes root by a program of the host with the set-user-id bit",
       .classes = Every(),
       .control = {Wall::kNoNewPrivileges, Wall::kLandlock, Wall::kMountFlags,
                   Wall::kUserNamespace},
       .needs = "a program with the set-user-id bit"},
  };
}

std::vector<Probe> DeviceProbes() {
  return {
      {.name = "mknod",
       .title = "Making device nodes",
       .what = "Makes a node of another GPU and opens it",
       .classes = Every(),
       .control = {Wall::kUserNamespace, Wall::kCapabilities, Wall::kSeccomp, Wall::kLandlock,
                   Wall::kDeviceRules}},
      {.name = "foreign-gpu",
       .title = "Nodes of other GPUs",
       .what = "Opens a GPU that its lease does not have",
       .classes = Every(),
       .control = {Wall::kDeviceNodes, Wall::kDeviceRules}},
      {.name = "mig-capability",
       .title = "Capabilities of MIG slices",
       .what = "Opens the capability node of another lease's MIG slice",
       .classes = Every(),
       .control = {Wall::kDeviceNodes, Wall::kDeviceRules}},
  };
}

std::vector<Probe> Make() {
  std::vector<Probe> all;
  for (const auto& family : {KernelProbes(), ProcessProbes(), FileProbes(), SocketProbes(),
                             MountProbes(), RuntimeProbes(), DeviceProbes()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

}  // namespace

std::span<const Probe> Probes() {
  static const std::vector<Probe> probes = Make();
  return probes;
}

const Probe* FindProbe(std::string_view name) {
  const std::span<const Probe> probes = Probes();
  const auto found = std::find_if(probes.begin(), probes.end(),
                                  [&](const Probe& probe) { return probe.name == name; });
  return found == probes.end() ? nullptr : &*found;
}

}  // namespace ringfence::isolate
