#pragma once

// Network namespaces. One lives as long as a descriptor of it, or a process in it, does: what dies
// with SIGKILL leaves none behind.

#include <functional>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

// A new one, with nothing in it but a loopback that is down.
Result<UniqueFd> MakeNetworkNamespace();
Result<UniqueFd> OwnNetworkNamespace();
// Of a process that cannot be another's meanwhile: a child that is not reaped.
Result<UniqueFd> NetworkNamespaceOf(int pid);

// Runs `work` with the calling thread in that namespace: sockets made there stay there. The thread
// is back afterwards, or the program ends: it must never go on in the wrong one.
Status InNetworkNamespace(int name_space, const std::function<Status()>& work);

// For good: the calling process must have one thread.
Status EnterNetworkNamespace(int name_space);

}  // namespace ringfence::os
