// Goal: the simulated driver makes and refuses MIG instances as a real board would, so that what
// works against it is worth something.
// Method: raw NVML calls; every layout that the planner calls possible is made, every place that
// it calls taken is refused, with NVML's own errors; capabilities are taken away.

#include <gtest/gtest.h>

#include <set>

#include "gpu/library.h"
#include "gpu/mig_layout.h"
#include "gpu/scenario.h"
#include "gpu/simulated_test_root.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

class MigStandIn : public testing::Test {
 protected:
  MigStandIn() : root_(OneSmallGpu()) { Open(); }
  ~MigStandIn() override { (void)api_.nvmlShutdown(); }

  void Open() {
    Result<Library> opened = Library::Open(root_.path(), kNvmlName);
    ASSERT_TRUE(opened.has_value());
    library_ = std::make_unique<Library>(std::move(*opened));
    api_ = LoadNvml(*library_);
    ASSERT_EQ(api_.nvmlInit_v2(), nvml::kSuccess);
    ASSERT_EQ(api_.nvmlDeviceGetHandleByIndex_v2(0, &device_), nvml::kSuccess);
  }
  nvml::Return SetMode(unsigned mode) {
    nvml::Return activation = nvml::kUnknown;
    const nvml::Return code = api_.nvmlDeviceSetMigMode(device_, mode, &activation);
    return code == nvml::kSuccess ? activation : code;
  }
  nvml::Return Make(const MigBoard& board, const MigInstance& one) {
    const MigProfile& profile = board.profiles[one.profile];
    const nvml::GpuInstancePlacement place{one.start, profile.slices};
    nvml::GpuInstance made = nullptr;
    const nvml::Return code =
        api_.nvmlDeviceCreateGpuInstanceWithPlacement(device_, profile.id, &place, &made);
    if (code == nvml::kSuccess) {
      made_.push_back(made);
    }
    return code;
  }
  void RemoveAll() {
    for (nvml::GpuInstance one : made_) {
      EXPECT_EQ(api_.nvmlGpuInstanceDestroy(one), nvml::kSuccess);
    }
    made_.clear();
  }
  std::string UuidOf(nvml::Device device) {
    char text[nvml::kUuidBytes];
    EXPECT_EQ(api_.nvmlDeviceGetUUID(device, text, sizeof text), nvml::kSuccess);
    return text;
  }

  SimulatedTestRoot root_;
  std::unique_ptr<Library> library_;
  nvml::Api api_;
  nvml::Device device_ = nullptr;
  std::vector<nvml::GpuInstance> made_;
};

const MigBoard& H200Board() { return **FindMigBoard("H200-141"); }

TEST_F(MigStandIn, NothingIsMadeOutsideMigMode) {
  EXPECT_EQ(Make(H200Board(), {0, 0}), nvml::kNotSupported);
  EXPECT_EQ(SetMode(1), nvml::kSuccess);
  EXPECT_EQ(Make(H200Board(), {0, 0}), nvml::kSuccess);
  EXPECT_EQ(SetMode(0), nvml::kInUse) << "an instance is there";
  RemoveAll();
  EXPECT_EQ(SetMode(0), nvml::kSuccess);
  EXPECT_EQ(Make(H200Board(), {0, 0}), nvml::kNotSupported);
}

TEST_F(MigStandIn, AgreesWithThePlannerOnEveryLayout) {
  ASSERT_EQ(SetMode(1), nvml::kSuccess);
  const MigBoard& board = H200Board();
  const std::vector<std::vector<MigInstance>> layouts = MaximalMigLayouts(board);
  for (std::size_t i = 0; i < layouts.size(); i += 5) {
    const std::vector<MigInstance>& layout = layouts[i];
    for (const MigInstance& one : layout) {
      ASSERT_EQ(Make(board, one), nvml::kSuccess);
    }
    for (std::size_t profile = 0; profile < board.profiles.size(); ++profile) {
      for (std::uint32_t start = 0; start <= board.slices; ++start) {
        const auto& starts = board.profiles[profile].starts;
        const bool place = std::find(starts.begin(), starts.end(), start) != starts.end();
        EXPECT_EQ(Make(board, {profile, start}),
                  place ? nvml::kInsufficientResources : nvml::kInvalidArgument);
      }
      unsigned room = 99;
      EXPECT_EQ(api_.nvmlDeviceGetGpuInstanceRemainingCapacity(device_, board.profiles[profile].id,
                                                               &room),
                nvml::kSuccess);
      EXPECT_EQ(room, 0U);
    }
    RemoveAll();
  }
}

TEST_F(MigStandIn, IdsFollowFromPlacesAndUuidsFromIds) {
  ASSERT_EQ(SetMode(1), nvml::kSuccess);
  const MigBoard& board = H200Board();
  const std::size_t small = board.Find("1g.18gb");
  for (const std::uint32_t start : {6U, 0U}) {
    ASSERT_EQ(Make(board, {small, start}), nvml::kSuccess);
    nvml::ComputeInstance compute = nullptr;
    EXPECT_EQ(api_.nvmlGpuInstanceCreateComputeInstance(made_.back(), 1, &compute),
              nvml::kInvalidArgument)
        << "two compute slices in one";
    ASSERT_EQ(api_.nvmlGpuInstanceCreateComputeInstance(made_.back(), 0, &compute), nvml::kSuccess);
    EXPECT_EQ(api_.nvmlGpuInstanceCreateComputeInstance(made_.back(), 0, &compute),
              nvml::kInsufficientResources);
    nvml::GpuInstanceInfo info{};
    ASSERT_EQ(api_.nvmlGpuInstanceGetInfo(made_.back(), &info), nvml::kSuccess);
    EXPECT_EQ(info.id, 7 + start);
    EXPECT_EQ(info.profile_id, 19U);
    EXPECT_EQ(info.placement.start, start);
    EXPECT_EQ(api_.nvmlGpuInstanceDestroy(made_.back()), nvml::kInUse);
  }
  std::set<std::string> uuids;
  for (unsigned i = 0; i < 2; ++i) {
    nvml::Device slice = nullptr;
    ASSERT_EQ(api_.nvmlDeviceGetMigDeviceHandleByIndex(device_, i, &slice), nvml::kSuccess);
    unsigned instance = 0;
    EXPECT_EQ(api_.nvmlDeviceGetGpuInstanceId(slice, &instance), nvml::kSuccess);
    EXPECT_EQ(instance, i == 0 ? 7U : 13U);
    nvml::Device parent = nullptr;
    EXPECT_EQ(api_.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(slice, &parent), nvml::kSuccess);
    EXPECT_EQ(parent, device_);
    nvml::Memory memory{};
    EXPECT_EQ(api_.nvmlDeviceGetMemoryInfo(slice, &memory), nvml::kSuccess);
    EXPECT_EQ(memory.total, 1U << 20U) << "an eighth of 8 MiB";
    const std::string uuid = UuidOf(slice);
    EXPECT_TRUE(uuid.starts_with("MIG-"));
    uuids.insert(uuid);
    nvml::Device same = nullptr;
    EXPECT_EQ(api_.nvmlDeviceGetHandleByUUID(uuid.c_str(), &same), nvml::kSuccess);
    EXPECT_EQ(same, slice);
  }
  EXPECT_EQ(uuids.size(), 2U);
  nvml::Device none = nullptr;
  EXPECT_EQ(api_.nvmlDeviceGetMigDeviceHandleByIndex(device_, 2, &none), nvml::kNotFound);
  unsigned gpus = 0;
  EXPECT_EQ(api_.nvmlDeviceGetCount_v2(&gpus), nvml::kSuccess);
  EXPECT_EQ(gpus, 1U) << "MIG devices are no GPUs of the list";
}

TEST_F(MigStandIn, WithoutTheCapabilityNothingChangesAndNothingIsSeen) {
  const std::string caps = root_.path() + "/dev/nvidia-caps/nvidia-cap";
  ASSERT_EQ(SetMode(1), nvml::kSuccess);
  ASSERT_EQ(Make(H200Board(), {0, 0}), nvml::kSuccess);
  nvml::ComputeInstance compute = nullptr;
  ASSERT_EQ(api_.nvmlGpuInstanceCreateComputeInstance(made_[0], 0, &compute), nvml::kSuccess);
  ASSERT_TRUE(os::RemoveFile(caps + "1").has_value());
  EXPECT_EQ(Make(H200Board(), {0, 1}), nvml::kNoPermission);
  EXPECT_EQ(api_.nvmlComputeInstanceDestroy(compute), nvml::kNoPermission);
  EXPECT_EQ(SetMode(0), nvml::kNoPermission);
  nvml::Device slice = nullptr;
  ASSERT_TRUE(os::RemoveFile(caps + "2").has_value());
  EXPECT_EQ(api_.nvmlDeviceGetMigDeviceHandleByIndex(device_, 0, &slice), nvml::kSuccess);
  const std::string own = caps + std::to_string(SimulatedCapMinor(0, 7, 0));
  ASSERT_TRUE(os::RemoveFile(own).has_value());
  EXPECT_EQ(api_.nvmlDeviceGetMigDeviceHandleByIndex(device_, 0, &slice), nvml::kNotFound);
}

// Every board of the table that has a PCI id can be simulated.
TEST(MigStandInBoards, EveryBoardTakesItsLargestLayouts) {
  const SimulatedTestRoot root(OneSmallGpu());
  for (const MigBoard& board : MigBoards()) {
    if (board.pci_ids.empty()) {
      continue;
    }
    ASSERT_TRUE(os::RemoveTree(root.path() + "/mig").has_value());
    const std::string scenario =
        OneSmallGpu(R"(,"mig":true,"pci_device_id":")" + board.pci_ids[0].substr(2) + "\"");
    ASSERT_TRUE(os::WriteFile(root.path() + "/scenario.json", AsBytes(scenario)).has_value());
    const Result<Library> library = Library::Open(root.path(), kNvmlName);
    const nvml::Api api = LoadNvml(*library);
    ASSERT_EQ(api.nvmlInit_v2(), nvml::kSuccess);
    nvml::Device device = nullptr;
    ASSERT_EQ(api.nvmlDeviceGetHandleByIndex_v2(0, &device), nvml::kSuccess);
    const std::vector<std::vector<MigInstance>> layouts = MaximalMigLayouts(board);
    for (const MigInstance& one : layouts.back()) {
      const MigProfile& profile = board.profiles[one.profile];
      const nvml::GpuInstancePlacement place{one.start, profile.slices};
      nvml::GpuInstance made = nullptr;
      EXPECT_EQ(api.nvmlDeviceCreateGpuInstanceWithPlacement(device, profile.id, &place, &made),
                nvml::kSuccess)
          << board.name << " " << profile.name;
    }
    EXPECT_EQ(api.nvmlShutdown(), nvml::kSuccess);
  }
}

TEST(MigStandInMinors, AreListedAsTheDriverNumbersThem) {
  const SimulatedTestRoot root(R"({"gpus":[{},{}]})");
  const std::string text =
      *os::ReadText(root.path() + "/proc/driver/nvidia-caps/mig-minors", 1U << 20U);
  for (const char* line :
       {"config 1\n", "monitor 2\n", "gpu0/gi0/access 3\n", "gpu0/gi0/ci0/access 4\n",
        "gpu0/gi1/access 12\n", "gpu1/gi0/access 138\n", "gpu1/gi7/ci0/access 202\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace ringfence::gpu
