#pragma once

// The file system of a box that brings no image: the host's /usr, read-only, and an /etc of its
// own. Nothing of the host's /etc, /home, /root, /var, /opt or /run is in it.

#include <string>
#include <vector>

#include "base/result.h"
#include "isolate/box_config.h"

namespace ringfence::isolate {

// Lays the skeleton out in `folder` (empty, made by the caller), all of it owned by `owner_uid`,
// and returns what must be mounted into it from beneath `host_root`.
Result<std::vector<BoxFile>> BuildBoxRoot(const std::string& folder, const std::string& host_root,
                                          unsigned owner_uid);

// The part of it that every box has, with an image too: its own /etc files, home, and the places
// where the runtime mounts.
Status BuildSkeleton(const std::string& folder, unsigned owner_uid);

}  // namespace ringfence::isolate
