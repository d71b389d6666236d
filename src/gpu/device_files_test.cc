// Goal: a box gets the device nodes and files of its own GPUs, all of them and no others.
// Method: a simulated root, and a folder laid out as a real driver's; wrong questions.

#include "gpu/device_files.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/scenario.h"
#include "gpu/simulated_test_root.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

const DriverMount* MountAt(const DriverFiles& files, const std::string& box_path) {
  const auto found = std::find_if(files.mounts.begin(), files.mounts.end(),
                                  [&](const auto& mount) { return mount.box_path == box_path; });
  return found == files.mounts.end() ? nullptr : &*found;
}

TEST(DeviceFiles, OfASimulatedDriver) {
  const SimulatedTestRoot root(DefaultScenario("x"));
  const Result<Scenario> scenario = ParseScenario(DefaultScenario("x"));
  const std::string uuid = scenario->gpus[5].uuid;
  const Result<DriverFiles> files = FilesFor(root.path(), {{uuid, 5}});
  ASSERT_TRUE(files.has_value()) << files.error().message;
  ASSERT_EQ(files->nodes.size(), 3U);
  EXPECT_EQ(files->nodes[0].path, "/dev/nvidia5");
  EXPECT_EQ(files->nodes[0].major, 195U);
  EXPECT_EQ(files->nodes[0].minor, 5U);
  EXPECT_EQ(files->nodes[1].path, "/dev/nvidiactl");
  EXPECT_EQ(files->nodes[1].minor, 255U);
  EXPECT_EQ(files->nodes[2].path, "/dev/nvidia-uvm");
  EXPECT_EQ(files->nodes[2].major, 238U);
  EXPECT_EQ(files->library_folders, std::vector<std::string>{"/run/ringfence/driver/lib"});
  const DriverMount* memory = MountAt(*files, "/run/ringfence/driver/memory/" + uuid);
  ASSERT_NE(memory, nullptr);
  EXPECT_TRUE(memory->writable);
  EXPECT_TRUE(memory->give_to_box);
  int writable = 0;
  for (const DriverMount& mount : files->mounts) {
    EXPECT_TRUE(os::Exists(mount.host_path)) << mount.host_path;
    EXPECT_TRUE(mount.box_path.starts_with(kBoxDriverRoot));
    writable += mount.writable ? 1 : 0;
    for (const SimulatedGpu& gpu : scenario->gpus) {
      EXPECT_TRUE(gpu.uuid == uuid || mount.host_path.find(gpu.uuid) == std::string::npos);
    }
  }
  EXPECT_EQ(writable, 1);
  for (const char* name : {"lib", "simulated", "scenario.json", "proc/driver/nvidia/version",
                           "proc/driver/nvidia/gpus/0000:06:00.0/information"}) {
    EXPECT_NE(MountAt(*files, std::string("/run/ringfence/driver/") + name), nullptr) << name;
  }
  EXPECT_EQ(MountAt(*files, "/run/ringfence/driver/dev"), nullptr);
}

TEST(DeviceFiles, OfARealDriversLayout) {
  const Result<os::TempFolder> folder = os::TempFolder::Create("ringfence-gpu-test");
  const std::string libraries = folder->path() + "/usr/lib/x86_64-linux-gnu";
  ASSERT_TRUE(os::MakeDirs(libraries).has_value());
  ASSERT_TRUE(os::MakeDirs(folder->path() + "/proc").has_value());
  for (const char* name : {"libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-nvvm.so.4", "libc.so.6",
                           "libnvidia-notes.txt"}) {
    ASSERT_TRUE(os::WriteFile(libraries + "/" + name, {}).has_value());
  }
  const std::string devices = folder->path() + "/proc/devices";
  ASSERT_TRUE(os::WriteFile(devices, AsBytes("Character devices:\n  1 mem\n195 nvidia\n"
                                             "2380 nvidia-uvm-tools\n507 nvidia-uvm\n"))
                  .has_value());
  const Result<DriverFiles> files = FilesFor(folder->path(), {{"GPU-a", 0}, {"GPU-b", 3}});
  ASSERT_TRUE(files.has_value()) << files.error().message;
  ASSERT_EQ(files->nodes.size(), 4U);
  EXPECT_EQ(files->nodes[1].path, "/dev/nvidia3");
  EXPECT_EQ(files->nodes[3].major, 507U);
  EXPECT_EQ(files->mounts.size(), 3U);
  EXPECT_NE(MountAt(*files, "/run/ringfence/driver/lib/libnvidia-nvvm.so.4"), nullptr);
  for (const DriverMount& mount : files->mounts) {
    EXPECT_FALSE(mount.writable);
  }
  ASSERT_TRUE(os::WriteFile(devices, AsBytes("195 nvidia\n")).has_value());
  EXPECT_EQ(FilesFor(folder->path(), {{"GPU-a", 0}}).error().code, Code::kNotFound);
}

TEST(DeviceFiles, RefusesWhatIsNotThere) {
  const SimulatedTestRoot root(OneSmallGpu());
  EXPECT_TRUE(FilesFor(root.path(), {{kSmallUuid, 0}}).has_value());
  EXPECT_EQ(FilesFor(root.path(), {{kSmallUuid, 1}}).error().code, Code::kNotFound);
  EXPECT_EQ(FilesFor(root.path(), {{"GPU-x", 0}}).error().code, Code::kNotFound);
  EXPECT_EQ(FilesFor(root.path(), {{kSmallUuid, 255}}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(FilesFor(root.path(), {{kSmallUuid, 0}, {kSmallUuid, 0}}).error().code,
            Code::kInvalidArgument);
  const Result<DriverFiles> none = FilesFor(root.path(), {});
  ASSERT_TRUE(none.has_value());
  EXPECT_TRUE(none->nodes.empty());
  EXPECT_TRUE(none->mounts.empty());
  ASSERT_TRUE(os::WriteFile(root.path() + "/scenario.json", AsBytes("{")).has_value());
  EXPECT_FALSE(FilesFor(root.path(), {{kSmallUuid, 0}}).has_value());
}

}  // namespace
}  // namespace ringfence::gpu
