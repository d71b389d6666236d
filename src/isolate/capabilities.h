#pragma once

// Whether this machine can run boxes, found out by trying.

#include <string>
#include <vector>

namespace ringfence::isolate {

struct NeededFiles {
  std::string init;
  std::string worker;
};

// A sentence for each thing that is missing, with how to mend it. Empty: boxes can run.
std::vector<std::string> MissingForBoxes(const NeededFiles& files);

}  // namespace ringfence::isolate
