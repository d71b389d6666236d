// ringfence-hook: an OCI hook (createRuntime, or prestart where there is no other) that a container
// runtime runs on the host once a container is built and before anything of it runs. It refuses a
// container that asks for GPUs without a lease that has them, and writes down the others, so that
// they end with their lease. Everything it reads was chosen by strangers: the program is static, so
// that no library is loaded; it starts itself anew without an environment; it keeps two
// capabilities; it opens nothing by a path that somebody could change under it.
//
//   ringfence-hook --held FOLDER [--lease LEASE]
//
// Exit status: 0 lets the container run, anything else makes the runtime give it up.

#include <boost/json/src.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "isolate/held.h"
#include "isolate/names.h"
#include "isolate/oci_check.h"
#include "isolate/oci_look.h"
#include "os/bare.h"
#include "os/beneath.h"
#include "os/holders.h"
#include "os/identity.h"
#include "os/privileges.h"

namespace ringfence::isolate {
namespace {

constexpr std::size_t kProcBytesMax = 64 * 1024;

constexpr const char* kUsage =
    "usage: ringfence-hook --held FOLDER [--lease LEASE] < STATE\n"
    "An OCI hook: refuses a container that asks for GPUs without a lease.\n"
    "`ringfence cdi hook` prints how podman is told about it; docs/cdi.md has the others.\n";

struct HookOptions {
  std::string held;
  std::string lease;
};

Result<HookOptions> ParseHookOptions(const std::vector<std::string>& words) {
  HookOptions options;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const bool held = words[i] == "--held";
    if ((!held && words[i] != "--lease") || i + 1 >= words.size()) {
      return Error{Code::kInvalidArgument, "unknown or unfinished option " + words[i]};
    }
    (held ? options.held : options.lease) = words[i + 1];
  }
  if (!options.held.starts_with('/')) {
    return Error{Code::kInvalidArgument, "--held must be an absolute path"};
  }
  if (!options.lease.empty() && !IsName(options.lease)) {
    return Error{Code::kInvalidArgument, "--lease is no lease's id"};
  }
  return options;
}

Result<std::string> ReadProc(const std::string& folder, const std::string& name) {
  RINGFENCE_ASSIGN(const os::UniqueFd opened, os::OpenFolder(folder));
  return os::ReadBeneath(opened.get(), name, kProcBytesMax);
}

// Looking into another process and into folders of other users; nothing else.
Status Harden() {
  RINGFENCE_TRY(os::SetLimit(os::Limit::kCoreBytes, 0));
  if (!os::IsRoot()) {
    return os::DropAllPrivileges();
  }
  return os::KeepCapabilities({"CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"});
}

Result<HeldContainer> Describe(const ContainerState& state) {
  HeldContainer container;
  container.id = state.id;
  container.pid = state.pid;
  RINGFENCE_ASSIGN(container.started, os::StartOf(state.pid));
  RINGFENCE_ASSIGN(const std::string cgroups,
                   ReadProc("/proc/" + std::to_string(state.pid), "cgroup"));
  container.cgroups = OwnCgroups(cgroups, state.id);
  if (container.cgroups.empty()) {
    return Error{
        Code::kFailedPrecondition,
        "the container has no cgroup of its own, by which it could be ended with its lease",
        "start it without --cgroups=disabled"};
  }
  return container;
}

Result<std::vector<HeldLease>> HeldLeases(const std::string& folder,
                                          const std::set<std::string>& names) {
  std::vector<HeldLease> leases;
  if (names.empty()) {
    return leases;
  }
  if (!os::IsRoot()) {
    return Error{Code::kPermissionDenied, "only root's containers can take a lease's devices",
                 "start it with root's podman"};
  }
  RINGFENCE_ASSIGN(const HeldFolder held, HeldFolder::Open(folder));
  RINGFENCE_ASSIGN(const std::string boot, os::BootId());
  for (const std::string& name : names) {
    auto lease = held.Find(name);
    if (!lease.has_value() || lease->boot != boot) {
      return Error{Code::kFailedPrecondition, "lease " + name + " is not held on this node",
                   "it has ended, or is another node's: `ringfence lease show " + name + "`"};
    }
    leases.push_back(std::move(*lease));
  }
  return leases;
}

Status Check(const HookOptions& options) {
  RINGFENCE_TRY(Harden());
  RINGFENCE_ASSIGN(const std::string own, os::OwnPath());
  RINGFENCE_ASSIGN(const std::string input, os::ReadInput(kContainerStateBytesMax));
  RINGFENCE_ASSIGN(const ContainerState state, ReadContainerState(input));
  RINGFENCE_ASSIGN(const std::string devices, ReadProc("/proc", "devices"));
  std::set<std::uint32_t> majors = GpuMajors(devices);
  const auto held = HeldFolder::Open(options.held);
  if (held.has_value()) {
    const auto known = held->Majors();
    if (known.has_value()) {
      majors.insert(known->begin(), known->end());
    }
  }
  RINGFENCE_ASSIGN(const os::UniqueFd bundle, os::OpenFolder(state.bundle));
  RINGFENCE_ASSIGN(const std::string text,
                   os::ReadBeneath(bundle.get(), "config.json", kContainerConfigBytesMax));
  RINGFENCE_ASSIGN(ContainerConfig config, ReadContainerConfig(text, majors, own));
  if (!options.lease.empty()) {
    config.leases.insert(options.lease);
  }
  const std::string root =
      config.root.starts_with('/') ? config.root : state.bundle + "/" + config.root;
  RINGFENCE_ASSIGN(const auto found, LookInside(state.pid, root, majors));
  config.asked.insert(config.asked.end(), found.begin(), found.end());
  RINGFENCE_ASSIGN(const auto leases, HeldLeases(options.held, config.leases));
  RINGFENCE_TRY(CheckCovered(config.asked, leases));
  if (leases.empty()) {
    return {};
  }
  RINGFENCE_ASSIGN(const HeldContainer container, Describe(state));
  RINGFENCE_ASSIGN(HeldFolder folder, HeldFolder::Open(options.held));
  for (const HeldLease& lease : leases) {
    RINGFENCE_TRY(folder.Join(lease.lease, container));
  }
  return {};
}

int Main(char** arguments) {
  const std::vector<std::string> words = [&] {
    std::vector<std::string> all;
    for (char** word = arguments; *word != nullptr; ++word) {
      all.emplace_back(*word);
    }
    return all;
  }();
  if (words.size() == 2 && (words[1] == "--help" || words[1] == "--version")) {
    (void)std::fputs(words[1] == "--help" ? kUsage : "ringfence-hook " RINGFENCE_VERSION "\n",
                     stdout);
    return 0;
  }
  const auto run = [&]() -> Status {
    RINGFENCE_TRY(os::LeaveEnvironment(arguments));
    RINGFENCE_ASSIGN(const HookOptions options,
                     ParseHookOptions({words.begin() + (words.empty() ? 0 : 1), words.end()}));
    return Check(options);
  };
  const Status status = run();
  if (!status.has_value()) {
    (void)std::fprintf(stderr, "ringfence-hook: refused: %s%s%s\n", status.error().message.c_str(),
                       status.error().hint.empty() ? "" : "; ", status.error().hint.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace ringfence::isolate

int main(int /*argc*/, char** argv) { return ringfence::isolate::Main(argv); }
