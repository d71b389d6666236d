#pragma once

// Layers onto a tree of files. What a box may not have is refused by name; what has no meaning in
// one (owners, set-user-id bits, extended attributes, times) is left out: every file is its own
// bytes and "may be executed" or not, so that the same image always gives the same tree.

#include <cstdint>
#include <string>

#include "base/result.h"
#include "image/limits.h"
#include "os/tree.h"
#include "unpack/manifest.h"
#include "unpack/source.h"

namespace ringfence::image {

struct Unpacked {
  std::uint64_t layers = 0;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;            // of files, holes counted
  std::uint64_t privileged_bits = 0;  // entries whose set-user-id or set-group-id bit was left out
};

// One layer, as it is stored, in the order of the image. `digest` is of these bytes, `diff_id` of
// what they are uncompressed; an empty `digest` is not checked, `diff_id` always is. On an error
// the tree is not to be used.
Status UnpackLayer(const Pull& pull, const std::string& digest, const std::string& diff_id,
                   const Limits& limits, os::Tree& tree, Unpacked& sum);

// A digest over all of a tree: names, kinds, modes, bytes of files, targets of links.
Result<std::string> TreeDigest(const os::Tree& tree);

}  // namespace ringfence::image
