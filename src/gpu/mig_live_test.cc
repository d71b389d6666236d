// Goal: a GPU becomes what it should be, or stays what it was, whatever fails on the way.
// Method: the simulated driver, which enforces the boards' rules; every NVML call of a reshape
// fails in turn; what a killed worker would leave is made by hand.

#include "gpu/mig_live.h"

#include <gtest/gtest.h>

#include "gpu/device_files.h"
#include "gpu/inventory.h"
#include "gpu/library.h"
#include "gpu/scrub.h"
#include "gpu/simulated_test_root.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

MigTarget Target(const std::string& text) { return *ParseMigTarget(text); }

Result<LiveMig> Apply(const SimulatedTestRoot& root, const std::string& target) {
  return ApplyMig(root.path(), kSmallUuid, Target(target));
}

std::string Now(const SimulatedTestRoot& root) {
  const Result<LiveMig> live = ReadMig(root.path(), kSmallUuid);
  return live.has_value() ? FormatMigTarget(TargetOf(*live)) : live.error().message;
}

// Another scenario for the same root, whose stand-ins need no second look.
void Put(const SimulatedTestRoot& root, const std::string& more) {
  const std::string scenario = OneSmallGpu(more);
  ASSERT_TRUE(os::WriteFile(root.path() + "/" + kScenarioFile, AsBytes(scenario)).has_value());
}

const std::string* UuidAt(const LiveMig& live, std::uint32_t start) {
  for (const MigSlice& slice : live.slices) {
    if (slice.start == start) {
      return &slice.uuid;
    }
  }
  return nullptr;
}

TEST(MigLive, MakesALayoutAndLeavesAloneWhatIsThere) {
  const SimulatedTestRoot root(OneSmallGpu());
  EXPECT_EQ(Now(root), "off");
  const Result<LiveMig> first = Apply(root, "on 1g.18gb@0, 1g.18gb@1, 3g.71gb@4");
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_EQ(first->board, "H200-141");
  ASSERT_EQ(first->slices.size(), 3U);
  EXPECT_EQ(first->slices[2].profile, "3g.71gb");
  EXPECT_EQ(first->slices[2].memory_bytes, 4U << 20U);
  const Result<LiveMig> again = Apply(root, "on 1g.18gb@0, 1g.18gb@1, 3g.71gb@4");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->slices, first->slices);
  const Result<LiveMig> second = Apply(root, "on 1g.18gb@0, 2g.35gb@2, 3g.71gb@4");
  ASSERT_TRUE(second.has_value()) << second.error().message;
  EXPECT_EQ(*UuidAt(*second, 0), *UuidAt(*first, 0));
  EXPECT_EQ(*UuidAt(*second, 4), *UuidAt(*first, 4));
  ASSERT_TRUE(Apply(root, "off").has_value());
  EXPECT_EQ(Now(root), "off");
}

TEST(MigLive, AnImpossibleLayoutChangesNothing) {
  const SimulatedTestRoot root(OneSmallGpu());
  ASSERT_TRUE(Apply(root, "on 4g.71gb@0").has_value());
  const std::string before = Now(root);
  for (const char* layout : {"on 4g.71gb@0, 1g.18gb@2", "on 4g.71gb@4", "on 9g.999gb@0"}) {
    const Result<LiveMig> refused = Apply(root, layout);
    ASSERT_FALSE(refused.has_value()) << layout;
    EXPECT_EQ(Now(root), before) << refused.error().message;
  }
}

// The k-th call of each function fails, for all functions and every k until one run is clean.
TEST(MigLive, WhateverCallFailsWhatWasThereIsThereAgain) {
  const std::string from = "on 1g.18gb@0, 1g.18gb@1, 3g.71gb@4";
  const std::string to = "on 1g.18gb@1, 2g.35gb@2, 1g.35gb@4, 1g.35gb@6";
  int failures = 0;
  const SimulatedTestRoot root(OneSmallGpu());
  for (const char* function :
       {"nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceCreateComputeInstance",
        "nvmlGpuInstanceDestroy", "nvmlComputeInstanceDestroy", "nvmlDeviceGetGpuInstances"}) {
    for (int k = 0; k < 40; ++k) {
      ASSERT_TRUE(Apply(root, from).has_value());
      Put(root, R"(,"nvml_fail":{")" + std::string(function) +
                    R"(":{"result":999,"times":1,"after":)" + std::to_string(k) + "}}");
      const Result<LiveMig> applied = Apply(root, to);
      Put(root, "");
      if (applied.has_value()) {
        EXPECT_EQ(Now(root), to);
        EXPECT_GT(k, 0) << function;
        break;
      }
      ++failures;
      EXPECT_NE(applied.error().message.find(function), std::string::npos);
      // A failure after the last step cannot be told from one before it: either layout is whole.
      EXPECT_TRUE(Now(root) == from || Now(root) == to)
          << function << " " << k << ": " << Now(root);
    }
  }
  EXPECT_GT(failures, 15);
}

TEST(MigLive, WhereEverythingFailsTheErrorSaysSo) {
  const SimulatedTestRoot root(OneSmallGpu());
  ASSERT_TRUE(Apply(root, "on 3g.71gb@0").has_value());
  Put(root, R"(,"nvml_fail":{"nvmlDeviceCreateGpuInstanceWithPlacement":{"result":999}})");
  const Result<LiveMig> applied = Apply(root, "on 1g.18gb@0");
  ASSERT_FALSE(applied.has_value());
  EXPECT_EQ(applied.error().code, Code::kCorrupt);
  EXPECT_NE(applied.error().message.find("putting back what was there failed"), std::string::npos);
  Put(root, "");
  EXPECT_TRUE(Apply(root, "on 3g.71gb@0").has_value()) << "and a later try mends it";
  EXPECT_EQ(Now(root), "on 3g.71gb@0");
}

// A worker that was killed between an instance and its compute instance.
TEST(MigLive, GoesOnFromWhatAKilledWorkerLeft) {
  const SimulatedTestRoot root(OneSmallGpu());
  ASSERT_TRUE(Apply(root, "on 1g.18gb@0").has_value());
  {
    const Result<Library> library = Library::Open(root.path(), kNvmlName);
    const nvml::Api api = LoadNvml(*library);
    ASSERT_EQ(api.nvmlInit_v2(), nvml::kSuccess);
    nvml::Device device = nullptr;
    ASSERT_EQ(api.nvmlDeviceGetHandleByIndex_v2(0, &device), nvml::kSuccess);
    const nvml::GpuInstancePlacement place{2, 2};
    nvml::GpuInstance made = nullptr;
    ASSERT_EQ(api.nvmlDeviceCreateGpuInstanceWithPlacement(device, 14, &place, &made),
              nvml::kSuccess);
    ASSERT_EQ(api.nvmlShutdown(), nvml::kSuccess);
  }
  const Result<LiveMig> half = ReadMig(root.path(), kSmallUuid);
  ASSERT_TRUE(half.has_value());
  ASSERT_EQ(half->slices.size(), 2U);
  EXPECT_EQ(half->slices[1].uuid, "") << "nobody can use it";
  const Result<LiveMig> forward = Apply(root, "on 1g.18gb@0, 2g.35gb@2");
  ASSERT_TRUE(forward.has_value()) << forward.error().message;
  EXPECT_NE(forward->slices[1].uuid, "");
  const Result<LiveMig> back = Apply(root, "on 1g.18gb@0");
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->slices.size(), 1U);
}

TEST(MigLive, ABoardThatLiesIsNotTouched) {
  const SimulatedTestRoot root(OneSmallGpu(R"(,"mig_lies":true)"));
  const Result<LiveMig> applied = Apply(root, "on 1g.18gb@0");
  ASSERT_FALSE(applied.has_value());
  EXPECT_EQ(applied.error().code, Code::kCorrupt);
  EXPECT_NE(applied.error().message.find("other places for"), std::string::npos)
      << applied.error().message;
  Put(root, "");
  EXPECT_EQ(Now(root), "off");
  // A board that nobody knows.
  const SimulatedTestRoot other(OneSmallGpu(R"(,"pci_device_id":"123410DE")"));
  EXPECT_EQ(Apply(other, "on 1g.18gb@0").error().code, Code::kFailedPrecondition);
}

TEST(MigLive, ASliceIsAGpuOfItsOwnToInventoryBoxesAndScrub) {
  const SimulatedTestRoot root(OneSmallGpu());
  const Result<LiveMig> live = Apply(root, "on 1g.18gb@0, 3g.71gb@4");
  ASSERT_TRUE(live.has_value());
  const Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_TRUE(inventory.has_value()) << inventory.error().message;
  ASSERT_EQ(inventory->gpus.size(), 3U);
  EXPECT_EQ(inventory->gpus[0].mig_enabled, true);
  EXPECT_EQ(inventory->gpus[0].slice, std::nullopt);
  for (const Gpu& gpu : std::span(inventory->gpus).subspan(1)) {
    ASSERT_TRUE(gpu.slice.has_value());
    EXPECT_EQ(gpu.slice->parent, kSmallUuid);
    EXPECT_EQ(gpu.slice->start, gpu.slice->profile == "1g.18gb" ? 0U : 4U);
    EXPECT_EQ(gpu.minor, 0U);
  }
  const Gpu& small =
      inventory->gpus.back().slice->profile == "1g.18gb" ? inventory->gpus[2] : inventory->gpus[1];
  EXPECT_EQ(small.memory_bytes, 1U << 20U);
  const Result<Inventory> read = InventoryFromJson(InventoryToJson(*inventory));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->gpus[1].slice, inventory->gpus[1].slice);

  const WantedGpu wanted{small.uuid, 0, WantedGpu::Slice{kSmallUuid, 7, 0}};
  const Result<DriverFiles> files = FilesFor(root.path(), {wanted});
  ASSERT_TRUE(files.has_value()) << files.error().message;
  std::vector<std::string> nodes;
  for (const DeviceNode& node : files->nodes) {
    nodes.push_back(node.path + " " + std::to_string(node.major) + ":" +
                    std::to_string(node.minor));
  }
  EXPECT_EQ(nodes,
            (std::vector<std::string>{
                "/dev/nvidia0 195:0", "/dev/nvidiactl 195:255", "/dev/nvidia-uvm 238:0",
                "/dev/nvidia-caps/nvidia-cap66 241:66", "/dev/nvidia-caps/nvidia-cap67 241:67"}));
  EXPECT_FALSE(FilesFor(root.path(), {wanted, {kSmallUuid, 0}}).has_value());

  const std::string memory = root.path() + "/mig/" + kSmallUuid + "/gi7/memory";
  ASSERT_TRUE(os::WriteFile(memory, Bytes(1U << 20U, std::byte{7}), 0600).has_value());
  // CUDA shows a process the first slice whose capabilities it can open: not the other one.
  ASSERT_TRUE(os::RemoveFile(root.path() + "/dev/nvidia-caps/nvidia-cap21").has_value());
  const Result<ScrubReport> report = Scrub(root.path(), {small.uuid});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->gpus.at(0).residue_bytes, 1U << 20U);
  EXPECT_EQ(report->gpus.at(0).on_chip.multiprocessors, 16U);
  EXPECT_EQ(*os::ReadFile(memory, 2U << 20U), Bytes(1U << 20U));
  EXPECT_EQ(Scrub(root.path(), {kSmallUuid}).error().code, Code::kFailedPrecondition)
      << "the whole card cannot be reached";
}

TEST(MigLive, AScenarioCanBeginCutAsTheDriverWouldHaveCutIt) {
  constexpr const char* kCut = R"(,"mig":true,"mig_slices":"1g.18gb@1, 3g.71gb@4")";
  const SimulatedTestRoot cut(OneSmallGpu(kCut));
  const SimulatedTestRoot applied(OneSmallGpu());
  const Result<LiveMig> expected = Apply(applied, "on 1g.18gb@1, 3g.71gb@4");
  const Result<LiveMig> live = ReadMig(cut.path(), kSmallUuid);
  ASSERT_TRUE(expected.has_value() && live.has_value());
  EXPECT_EQ(live->slices, expected->slices);
  const std::string state = std::string("/mig/") + kSmallUuid + "/state";
  EXPECT_EQ(os::ReadText(cut.path() + state, 65536).value(),
            os::ReadText(applied.path() + state, 65536).value());
  EXPECT_EQ(os::ListDir(cut.path() + "/dev/nvidia-caps")->size(),
            os::ListDir(applied.path() + "/dev/nvidia-caps")->size());
  ASSERT_TRUE(Apply(cut, "on 1g.18gb@6").has_value());
  ASSERT_TRUE(
      MakeSimulatedRoot(cut.path(), SimulatedTestRoot::kStandIns, OneSmallGpu(kCut)).has_value());
  EXPECT_EQ(ReadMig(cut.path(), kSmallUuid)->slices.at(0).start, 6U) << "what was done stays";
  for (const char* bad : {R"(,"mig_slices":"1g.18gb")", R"(,"mig":true,"mig_slices":"9g.1gb")",
                          R"(,"mig":true,"mig_slices":"7g.141gb x2")"}) {
    EXPECT_FALSE(MakeSimulatedRoot(applied.path(), SimulatedTestRoot::kStandIns, OneSmallGpu(bad))
                     .has_value())
        << bad;
  }
}

TEST(MigLive, TextsAndJsonComeBack) {
  for (const char* text : {"off", "on", "on 1g.18gb@0, 4g.71gb@4"}) {
    EXPECT_EQ(FormatMigTarget(Target(text)), text);
  }
  for (const char* text : {"", "on ", "on 1g.18gb", "on 1g.18gb x2", "maybe"}) {
    EXPECT_FALSE(ParseMigTarget(text).has_value()) << text;
  }
  const SimulatedTestRoot root(OneSmallGpu());
  const Result<LiveMig> live = Apply(root, "on 1g.18gb@6, 3g.71gb@0");
  ASSERT_TRUE(live.has_value());
  const Result<LiveMig> read = LiveMigFromJson(LiveMigToJson(*live));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->slices, live->slices);
  EXPECT_EQ(read->board, live->board);
}

}  // namespace
}  // namespace ringfence::gpu
