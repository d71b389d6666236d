#pragma once

// The OCI runtime that runs boxes.

#include <string>

#include "base/result.h"

namespace ringfence::isolate {

struct Runtime {
  std::string path;
  std::string name;     // "runc", "crun"
  std::string version;  // "1.1.5"
};

// The first that is installed where packages put it (never by PATH) and new enough: runc 1.1.5,
// crun 1.8. kNotFound says which was looked for, or which is too old.
Result<Runtime> FindRuntime();

// "runc version 1.1.5+ds1\n..." -> {1, 1, 5}; exposed for its test.
bool VersionAtLeast(const std::string& version, const std::string& least);

}  // namespace ringfence::isolate
