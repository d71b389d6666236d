#pragma once

// The file system of a box that brings an image: the image's tree, which many boxes share and none
// can change, beneath a skeleton of the box's own.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "image/store.h"
#include "isolate/box_config.h"
#include "os/unique_fd.h"

namespace ringfence::isolate {

// Of a stored image what a box needs. `hold` keeps it from being removed; shared because plans are
// copied on their way to the box.
struct BoxImage {
  std::string digest;
  std::string tree;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string working_folder;  // may be empty
  std::shared_ptr<os::UniqueFd> hold;
};
// Leaves out of the image's environment what would speak for others: LD_PRELOAD, NVIDIA_*, ...
BoxImage ImageForBox(const image::StoredImage& stored, os::UniqueFd hold);

// Mounts the root at `spec.root_folder`, with a mount point for everything that `spec` puts into
// it: inside nothing can be made. The skeleton lies in `bundle`.
Status MountImageRoot(const std::string& bundle, const BoxImage& image, const BoxSpec& spec);
// What MountImageRoot mounted; fine when there is nothing.
Status UnmountImageRoot(const std::string& bundle);

}  // namespace ringfence::isolate
