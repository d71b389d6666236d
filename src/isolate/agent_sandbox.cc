#include "isolate/agent_sandbox.h"

#include "isolate/controls.h"
#include "os/landlock.h"
#include "os/seccomp.h"
#include "os/socket_families.h"

namespace ringfence::isolate {
namespace {

// What name lookup, TLS and the C library read while a program runs.
constexpr const char* kReadPaths[] = {
    "/etc/resolv.conf",        "/etc/hosts",           "/etc/nsswitch.conf",
    "/etc/host.conf",          "/etc/gai.conf",        "/etc/services",
    "/etc/protocols",          "/etc/ssl/openssl.cnf", "/etc/localtime",
    "/etc/ld.so.cache",        "/etc/passwd",          "/usr/lib",
    "/usr/share/zoneinfo",     "/proc/self",           "/proc/sys/vm",
    "/proc/meminfo",           "/proc/cpuinfo",        "/proc/uptime",
    "/sys/devices/system/cpu",
};

}  // namespace

Status EnterAgentSandbox(const AgentSandbox& options) {
  RINGFENCE_TRY(Require(Wearer::kAgent, ProbeCalls()));
  os::LandlockRules landlock;
  for (const char* path : kReadPaths) {
    landlock.paths.push_back({path, os::PathUse::kRead, false});
  }
  // Shared objects of the name service are mapped executable, which Landlock does not count as
  // executing; nothing anywhere may be executed.
  for (const std::string& path : options.read_paths) {
    landlock.paths.push_back({path, os::PathUse::kRead, false});
  }
  landlock.paths.push_back({"/dev/null", os::PathUse::kDevice, false});
  landlock.paths.push_back({"/dev/urandom", os::PathUse::kRead, false});
  landlock.paths.push_back({options.state_folder, os::PathUse::kReadWrite, true});
  landlock.connect_ports = options.connect_ports;
  RINGFENCE_TRY(os::EnterLandlock(landlock));

  std::vector<os::SeccompRule> rules = os::DenySystemAdministration();
  const auto add = [&rules](std::vector<os::SeccompRule> more) {
    rules.insert(rules.end(), more.begin(), more.end());
  };
  add(os::DenyNewProcesses());
  add(os::DenyExec());
  add(os::DenyRawSockets());
  add(os::DenySocketsExcept(os::LocalAndInternetFamilies()));
  return os::EnterSeccompDenyList(rules);
}

}  // namespace ringfence::isolate
