#pragma once

// An image from where it lies to a tree of files: what the worker does, in two steps.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "image/limits.h"
#include "image/report.h"
#include "os/tree.h"
#include "unpack/manifest.h"
#include "unpack/source.h"

namespace ringfence::image {

struct Found {
  std::string digest;    // of `document`: what the image is known by from here on
  std::string document;  // the manifest; of a docker archive, which has none, the configuration
  Manifest manifest;
  Config config;
  std::vector<std::string> names;
};
// Chooses the image for this machine and checks every digest on the way to its configuration.
Result<Found> FindImage(Source& source, const Wanted& wanted);

// Into a tree that is empty.
Result<Report> UnpackImage(Source& source, const Found& found, os::Tree& tree,
                           const Limits& limits);
}  // namespace ringfence::image
