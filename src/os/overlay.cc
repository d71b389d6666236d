#include "os/overlay.h"

#include <sys/mount.h>

#include "os/error.h"

namespace ringfence::os {

Status MountLayers(const std::string& upper, const std::string& lower, const std::string& to) {
  if ((upper + lower).find_first_of(":,\\") != std::string::npos) {
    return Error{Code::kInvalidArgument, "a layer's path holds one of : , \\"};
  }
  const std::string options = "lowerdir=" + upper + ":" + lower;
  if (mount("ringfence", to.c_str(), "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV,
            options.c_str()) != 0) {
    Error error = ErrnoError("mount the image on " + to);
    error.hint = "the kernel needs overlayfs: `modprobe overlay`";
    return error;
  }
  return {};
}

}  // namespace ringfence::os
