#include "os/network_namespace.h"

#include <fcntl.h>
#include <sched.h>

#include <string>

#include "base/check.h"
#include "os/error.h"

namespace ringfence::os {
namespace {

Result<UniqueFd> Open(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return ErrnoError("open the network namespace " + path);
  }
  return fd;
}

}  // namespace

Result<UniqueFd> OwnNetworkNamespace() { return Open("/proc/thread-self/ns/net"); }

Result<UniqueFd> NetworkNamespaceOf(int pid) {
  return Open("/proc/" + std::to_string(pid) + "/ns/net");
}

Result<UniqueFd> MakeNetworkNamespace() {
  RINGFENCE_ASSIGN(const UniqueFd before, OwnNetworkNamespace());
  if (unshare(CLONE_NEWNET) != 0) {
    return ErrnoError("make a network namespace");
  }
  auto made = OwnNetworkNamespace();
  RINGFENCE_CHECK(setns(before.get(), CLONE_NEWNET) == 0);
  return made;
}

Status InNetworkNamespace(int name_space, const std::function<Status()>& work) {
  RINGFENCE_ASSIGN(const UniqueFd before, OwnNetworkNamespace());
  if (setns(name_space, CLONE_NEWNET) != 0) {
    return ErrnoError("enter a network namespace");
  }
  Status done = work();
  RINGFENCE_CHECK(setns(before.get(), CLONE_NEWNET) == 0);
  return done;
}

Status EnterNetworkNamespace(int name_space) {
  if (setns(name_space, CLONE_NEWNET) != 0) {
    return ErrnoError("enter a network namespace");
  }
  return {};
}

}  // namespace ringfence::os
