#pragma once

// A simulated driver for one run of a program.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "gpu/simulated_root.h"

namespace ringfence::gpu {

// Calls `run` with the root; `libraries` is the build's sim/lib. 2: it could not be made.
template <typename Run>
int WithSimulatedRoot(const std::string& libraries, Run run) {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "ringfence-gpu-XXXXXX");
  if (mkdtemp(name.data()) == nullptr) {
    std::fprintf(stderr, "no temporary folder can be made\n");
    return 2;
  }
  int result = 2;
  const Status made = MakeSimulatedRoot(name, libraries, R"({"gpus":[{}]})");
  if (made.has_value()) {
    result = run(name);
  } else {
    std::fprintf(stderr, "%s\n", made.error().message.c_str());
  }
  std::filesystem::remove_all(name, error);
  return result;
}

}  // namespace ringfence::gpu
