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

std::vector<Probe> Make() {
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
       .control = {Wall::kSeccomp, Wall::kCapabilities, Wall::kUserNamespace}},
      {.name = "perf-event",
       .title = "Performance events",
       .what = "Counts the events of every process on a processor",
       .classes = Every(),
       .control = {Wall::kSeccomp, Wall::kCapabilities, Wall::kUserNamespace}},
      {.name = "io-uring",
       .title = "io_uring",
       .what = "Makes a queue whose requests pass no system call filter",
       .classes = Every(),
       .control = {Wall::kSeccomp},
       .needs = "io_uring"},
      {.name = "userfaultfd",
       .title = "userfaultfd",
       .what = "Holds up page faults, which makes races in the kernel easy to win",
       .classes = Every(),
       .control = {Wall::kSeccomp},
       .needs = "userfaultfd"},
      {.name = "keyring",
       .title = "Kernel keyrings",
       .what = "Reads a key that a neighbour keeps in the kernel",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kSeccomp, Wall::kUserIds}},
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
      {.name = "raw-socket",
       .title = "Raw sockets",
       .what = "Opens a packet socket, past the rules of the network",
       .classes = Every(),
       .control = {Wall::kSeccomp, Wall::kCapabilities}},
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
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kLandlock}},
      {.name = "proc-mem",
       .title = "Memory of others",
       .what = "Reads a neighbour's memory through /proc/PID/mem",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kLandlock}},
      {.name = "proc-root",
       .title = "Files of others' root",
       .what = "Reads a neighbour's files through /proc/PID/root",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kLandlock}},
      {.name = "proc-fd",
       .title = "Open files of others",
       .what = "Opens a neighbour's descriptors through /proc/PID/fd",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kLandlock}},
      {.name = "ptrace",
       .title = "Tracing others",
       .what = "Attaches to a neighbour as a debugger and reads its memory",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kLandlock, Wall::kSeccomp}},
      {.name = "process-vm-readv",
       .title = "Memory of others, by call",
       .what = "Reads a neighbour's memory by process_vm_readv",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kLandlock, Wall::kSeccomp}},
      {.name = "pidfd-getfd",
       .title = "Descriptors of others",
       .what = "Takes a copy of a neighbour's descriptor by pidfd_getfd",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kLandlock, Wall::kSeccomp}},
      {.name = "signal",
       .title = "Signals",
       .what = "Sends a neighbour a signal",
       .classes = Every(),
       .victim = true,
       .control = {Wall::kPidNamespace, Wall::kUserIds, Wall::kLandlock}},
  };
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
