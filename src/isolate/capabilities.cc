#include "isolate/capabilities.h"

#include "isolate/runtime.h"
#include "os/cgroup.h"
#include "os/file.h"
#include "os/identity.h"
#include "os/landlock.h"
#include "os/mount.h"
#include "os/privileges.h"
#include "os/seccomp.h"

namespace ringfence::isolate {
namespace {

void CheckNamespaces(std::vector<std::string>& missing) {
  if (const Status tried = os::TryNamespaces(); !tried.has_value()) {
    missing.push_back("no namespaces (" + tried.error().message +
                      "): run on the host, or in a container with CAP_SYS_ADMIN");
  }
  if (const Status tried = os::TryUserNamespace(); !tried.has_value()) {
    missing.push_back("no user namespaces (" + tried.error().message +
                      "): set sysctl user.max_user_namespaces above 0");
  }
}

void CheckCgroups(std::vector<std::string>& missing) {
  const auto hierarchies = os::CgroupHierarchies();
  if (!hierarchies.has_value() || hierarchies->empty()) {
    missing.emplace_back("no cgroups are mounted: mount -t cgroup2 none /sys/fs/cgroup");
    return;
  }
  if (!os::HasDeviceControl(*hierarchies)) {
    missing.emplace_back(
        "no control over devices: mount the v1 devices controller, or cgroup v2 alone");
  }
  for (const char* controller : {"memory", "cpu", "pids"}) {
    if (!os::HasController(*hierarchies, controller)) {
      missing.push_back(std::string("the cgroup controller '") + controller +
                        "' is not there: enable it on the kernel's command line");
    }
  }
}

}  // namespace

std::vector<std::string> MissingForBoxes(const NeededFiles& files) {
  std::vector<std::string> missing;
  if (!os::IsRoot()) {
    missing.emplace_back("not root: start the node's jailer as root (sudo)");
    return missing;  // without it the trials below would fail for that reason alone
  }
  CheckNamespaces(missing);
  CheckCgroups(missing);
  if (const auto runtime = FindRuntime(); !runtime.has_value()) {
    missing.push_back(runtime.error().message + ": " + runtime.error().hint);
  }
  if (os::LandlockAbi() < 1) {
    missing.emplace_back(
        "this kernel has no Landlock: use Linux 5.13 or later with 'landlock' in its lsm= list");
  }
  if (!os::SeccompAvailable()) {
    missing.emplace_back("this kernel has no seccomp: use one built with CONFIG_SECCOMP_FILTER");
  }
  for (const std::string& file : {files.init, files.worker}) {
    if (!os::Exists(file)) {
      missing.push_back("the program " + file + " is not there: build or install all of Ringfence");
    }
  }
  return missing;
}

}  // namespace ringfence::isolate
