#pragma once

// The OCI runtime that runs boxes.

#include <string>

#include "base/result.h"

namespace ringfence::isolate {

struct Runtime {
  std::string path;
  std::string name;     // "runc"
  std::string version;  // "1.1.5"
};

// runc where packages put it (never by PATH), if it is new enough: 1.1.5. kNotFound says what was
// looked for, or that it is too old.
Result<Runtime> FindRuntime();

// "runc version 1.1.5+ds1\n..." -> {1, 1, 5}; exposed for its test.
bool VersionAtLeast(const std::string& version, const std::string& least);

}  // namespace ringfence::isolate
