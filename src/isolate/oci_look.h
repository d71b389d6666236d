#pragma once

// What GPU devices lie in a container's root, as its runtime has built it and nothing of it has run
// yet. The image, its volumes and whoever shares them may change anything there meanwhile: every
// name is opened beneath the root, without following links.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "isolate/oci_check.h"

namespace ringfence::isolate {

// `pid` is the container's process 1, which waits for us; `root` its root's path, absolute, in the
// view of that process. Looked at: its /dev, every device that is mounted by itself, and every
// mount of the kernel's own device folder. Device nodes elsewhere in its files are stopped by the
// rules of its cgroup, which CheckCovered looks at.
Result<std::vector<AskedDevice>> LookInside(int pid, const std::string& root,
                                            const std::set<std::uint32_t>& majors);

}  // namespace ringfence::isolate
