#pragma once

// A simulated driver root for one test, removed with it. RINGFENCE_BINARY_DIR is where the build
// put the stand-ins.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "gpu/simulated_root.h"
#include "os/self.h"

namespace ringfence::gpu {

class SimulatedTestRoot {
 public:
  explicit SimulatedTestRoot(const std::string& scenario) {
    Result<os::TempFolder> folder = os::TempFolder::Create("ringfence-gpu-test");
    EXPECT_TRUE(folder.has_value());
    folder_ = std::make_unique<os::TempFolder>(std::move(*folder));
    path_ = folder_->path() + "/driver";
    Make(scenario);
  }

  // Another scenario in the same root, with what the GPUs' memory holds kept.
  void Make(const std::string& scenario) {
    const Status made = MakeSimulatedRoot(path_, kStandIns, scenario);
    EXPECT_TRUE(made.has_value()) << (made.has_value() ? "" : made.error().message);
  }

  const std::string& path() const { return path_; }
  static constexpr const char* kStandIns = RINGFENCE_BINARY_DIR "/sim/lib";

 private:
  std::unique_ptr<os::TempFolder> folder_;
  std::string path_;
};

// One card of 8 MiB, all of it reachable; `more` are further members of the GPU, with a comma.
inline std::string OneSmallGpu(const std::string& more = {}) {
  return R"({"gpus":[{"uuid":"GPU-0a0b0c0d-0000-4000-8000-000000000001","memory_mib":8,)"
         R"("reserved_mib":0)" +
         more + "}]}";
}
inline constexpr const char* kSmallUuid = "GPU-0a0b0c0d-0000-4000-8000-000000000001";

// A GPU on which NVML makes one compute instance in a process's life, and then no other.
inline std::string OneComputeInstanceOnly() {
  return R"({"gpus":[{"nvml_fail":{"nvmlGpuInstanceCreateComputeInstance":)"
         R"({"result":999,"after":1}}}]})";
}

}  // namespace ringfence::gpu
