// Goal: AMD's GPUs are seen, given to boxes and scrubbed behind the same interfaces as NVIDIA's,
// with the same errors, and are always marked as never run on hardware.
// Method: simulated drivers of MI300X cards, alone and beside NVIDIA's; every AMD SMI and HIP call
// fails in turn; residue planted in a card's memory file; bad memory; the kernel's files changed or
// taken away; a folder laid out as ROCm's.

#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/amd_sysfs.h"
#include "gpu/device_files.h"
#include "gpu/inventory.h"
#include "gpu/scenario.h"
#include "gpu/scrub.h"
#include "gpu/simulated_test_root.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

constexpr std::size_t kCardBytes = std::size_t{8} << 20U;

std::string OneSmallAmd(const std::string& more = {}) {
  return OneSmallGpu(R"(,"vendor":"amd")" + more);
}

std::string TwoAmd() { return R"({"gpus":[{"vendor":"amd"},{"vendor":"amd"}]})"; }

bool Says(const std::vector<std::string>& lines, const std::string& words) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(words) != std::string::npos;
  });
}

TEST(AmdInventory, SaysWhatTheScenarioSays) {
  const SimulatedTestRoot root(TwoAmd());
  const Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_TRUE(inventory.has_value()) << inventory.error().message;
  EXPECT_TRUE(inventory->simulated);
  EXPECT_EQ(inventory->driver_version, "6.12.12");
  EXPECT_EQ(inventory->kernel_driver, "amdgpu 6.12.12");
  EXPECT_EQ(inventory->cuda_version, "");
  EXPECT_TRUE(inventory->library_path.ends_with("/lib/libamd_smi.so"));
  ASSERT_TRUE(inventory->amd.has_value());
  EXPECT_EQ(inventory->amd->library_digest, inventory->library_digest);
  ASSERT_EQ(inventory->gpus.size(), 2U);
  const Gpu& gpu = inventory->gpus[1];
  EXPECT_EQ(gpu.vendor, "amd");
  EXPECT_TRUE(gpu.never_run_on_hardware());
  EXPECT_EQ(gpu.uuid, "GPU-00000000-0000-4000-8000-000000000002");
  EXPECT_EQ(gpu.model, "AMD Instinct MI300X");
  EXPECT_EQ(gpu.index, 1U);
  EXPECT_EQ(gpu.minor, 129U);
  EXPECT_EQ(gpu.pci_address, "00000000:02:00.0");
  EXPECT_EQ(gpu.pci_device_id, "74a11002");
  EXPECT_EQ(gpu.vbios, "113-M3000100-102");
  EXPECT_EQ(gpu.memory_bytes, 64U << 20U);
  EXPECT_EQ(gpu.memory_used_bytes, 1U << 20U);
  EXPECT_EQ(gpu.ecc_enabled, true);
  EXPECT_EQ(gpu.mig_enabled, std::nullopt);
  EXPECT_EQ(gpu.compute_partition, "SPX");
  EXPECT_EQ(gpu.memory_partition, "NPS1");
  EXPECT_EQ(AmdMinors(root.path()), (std::vector<std::uint32_t>{128, 129}));
}

TEST(AmdInventory, BesideNvidiasOnAMixedNode) {
  const SimulatedTestRoot root(R"({"gpus":[{},{"vendor":"amd"}]})");
  const Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_TRUE(inventory.has_value()) << inventory.error().message;
  ASSERT_EQ(inventory->gpus.size(), 2U);
  EXPECT_EQ(inventory->driver_version, "580.159.04");
  EXPECT_EQ(inventory->gpus[0].vendor, "nvidia");
  EXPECT_FALSE(inventory->gpus[0].never_run_on_hardware());
  EXPECT_EQ(inventory->gpus[1].vendor, "amd");
  EXPECT_EQ(inventory->gpus[1].index, 1U);
  EXPECT_EQ(inventory->amd->version, "6.12.12");
  // Of two libraries, that without its kernel's driver is left alone.
  ASSERT_TRUE(os::RemoveFile(root.path() + "/proc/driver/nvidia/version").has_value());
  const Result<Inventory> amd = ReadInventory(root.path());
  ASSERT_TRUE(amd.has_value()) << amd.error().message;
  EXPECT_EQ(amd->gpus.size(), 1U);
  const std::string nvidia_uuid = inventory->gpus[0].uuid;
  const SimulatedTestRoot both(R"({"gpus":[{},{"vendor":"amd"}]})");
  EXPECT_EQ(Scrub(both.path(), {nvidia_uuid, inventory->gpus[1].uuid}).error().code,
            Code::kInvalidArgument);
  EXPECT_TRUE(Scrub(both.path(), {nvidia_uuid}).has_value());
  EXPECT_TRUE(Scrub(both.path(), {inventory->gpus[1].uuid}).has_value());
}

TEST(AmdInventory, EveryFailingCallIsAnErrorThatNamesIt) {
  for (const std::string function :
       {"amdsmi_init", "amdsmi_get_socket_handles", "amdsmi_get_processor_handles"}) {
    const SimulatedTestRoot root(R"({"nvml_fail":{")" + function +
                                 R"(":10},"gpus":[{"vendor":"amd"}]})");
    const Result<Inventory> inventory = ReadInventory(root.path());
    ASSERT_FALSE(inventory.has_value()) << function;
    EXPECT_EQ(inventory.error().code, Code::kPermissionDenied);
    EXPECT_NE(inventory.error().message.find(function + ": Permission denied (10)"),
              std::string::npos)
        << inventory.error().message;
  }
  for (const std::string function :
       {"amdsmi_get_processor_type", "amdsmi_get_gpu_device_bdf", "amdsmi_get_gpu_device_uuid",
        "amdsmi_get_gpu_memory_total", "amdsmi_get_gpu_memory_usage", "amdsmi_get_gpu_ecc_enabled",
        "amdsmi_get_gpu_compute_partition", "amdsmi_get_gpu_memory_partition"}) {
    const SimulatedTestRoot root(R"({"gpus":[{"vendor":"amd"},{"vendor":"amd","nvml_fail":{")" +
                                 function + R"(":31}}]})");
    const Result<Inventory> inventory = ReadInventory(root.path());
    ASSERT_FALSE(inventory.has_value()) << function;
    EXPECT_NE(inventory.error().message.find(function + ": Device not found (31)"),
              std::string::npos)
        << inventory.error().message;
  }
  const SimulatedTestRoot lost(R"({"gpus":[{"vendor":"amd"},{"vendor":"amd","lost":true}]})");
  EXPECT_FALSE(ReadInventory(lost.path()).has_value());
}

TEST(AmdInventory, LeavesOpenWhatTheCardDoesNotSay) {
  const SimulatedTestRoot root(OneSmallAmd(
      R"(,"ecc":null,"compute_partition":"","memory_partition":"","serial":"","vbios":"")"));
  const Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_TRUE(inventory.has_value()) << inventory.error().message;
  EXPECT_EQ(inventory->gpus.at(0).ecc_enabled, std::nullopt);
  EXPECT_EQ(inventory->gpus.at(0).compute_partition, "");
  EXPECT_EQ(inventory->gpus.at(0).serial, "");
}

TEST(AmdInventory, ListsProcessesOfTheComputeDriver) {
  const SimulatedTestRoot root(TwoAmd());
  const std::string processes = root.path() + "/sys/class/kfd/kfd/proc";
  ASSERT_TRUE(os::MakeDirs(processes + "/4242").has_value());
  ASSERT_TRUE(os::WriteFile(processes + "/4242/vram_20129", AsBytes("1048576\n")).has_value());
  ASSERT_TRUE(os::WriteFile(processes + "/4242/vram_20128", AsBytes("0\n")).has_value());
  const Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_TRUE(inventory.has_value()) << inventory.error().message;
  EXPECT_TRUE(inventory->gpus[0].processes.empty());
  ASSERT_EQ(inventory->gpus[1].processes.size(), 1U);
  EXPECT_EQ(inventory->gpus[1].processes[0].pid, 4242U);
  EXPECT_EQ(inventory->gpus[1].processes[0].memory_bytes, 1048576U);
  EXPECT_EQ(Scrub(root.path(), {inventory->gpus[1].uuid}).error().code, Code::kFailedPrecondition);
}

TEST(AmdInventory, NeedsARenderNodeAndSensibleFiles) {
  const SimulatedTestRoot hidden(TwoAmd());
  ASSERT_TRUE(os::RemoveFile(hidden.path() + "/dev/dri/renderD128").has_value());
  const Result<Inventory> one = ReadInventory(hidden.path());
  ASSERT_TRUE(one.has_value()) << one.error().message;
  ASSERT_EQ(one->gpus.size(), 1U);
  EXPECT_EQ(one->gpus[0].minor, 129U);
  const SimulatedTestRoot none(OneSmallAmd());
  ASSERT_TRUE(os::RemoveTree(none.path() + "/sys/bus/pci/devices/0000:01:00.0/drm/renderD128"));
  EXPECT_EQ(ReadInventory(none.path()).error().code, Code::kFailedPrecondition);
  const SimulatedTestRoot bad(OneSmallAmd());
  const std::string id = bad.path() + "/sys/class/kfd/kfd/topology/nodes/128/gpu_id";
  ASSERT_TRUE(os::WriteFile(id, AsBytes("none\n")).has_value());
  EXPECT_EQ(ReadInventory(bad.path()).error().code, Code::kCorrupt);
}

TEST(AmdInventory, JsonComesBackAndCannotLoseItsMark) {
  const SimulatedTestRoot root(R"({"gpus":[{},{"vendor":"amd"}]})");
  const Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_TRUE(inventory.has_value());
  Json json = InventoryToJson(*inventory);
  EXPECT_FALSE(json.at("gpus").at(0).get_object().contains("vendor"));
  EXPECT_TRUE(json.at("gpus").at(1).at("never_run_on_hardware").get_bool());
  const Result<Inventory> again = InventoryFromJson(json);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(CanonicalJson(InventoryToJson(*again)), CanonicalJson(json));
  json.at("gpus").at(1).get_object()["never_run_on_hardware"] = false;
  EXPECT_FALSE(InventoryFromJson(json).has_value());
}

TEST(AmdFiles, OfASimulatedDriver) {
  const SimulatedTestRoot root(TwoAmd());
  const std::string uuid = "GPU-00000000-0000-4000-8000-000000000002";
  const Result<DriverFiles> files = FilesFor(root.path(), {{uuid, 129}});
  ASSERT_TRUE(files.has_value()) << files.error().message;
  ASSERT_EQ(files->nodes.size(), 2U);
  EXPECT_EQ(files->nodes[0].path, "/dev/dri/renderD129");
  EXPECT_EQ(files->nodes[0].major, 226U);
  EXPECT_EQ(files->nodes[0].minor, 129U);
  EXPECT_EQ(files->nodes[1].path, "/dev/kfd");
  EXPECT_EQ(files->nodes[1].major, 234U);
  int writable = 0;
  for (const DriverMount& mount : files->mounts) {
    EXPECT_TRUE(os::Exists(mount.host_path)) << mount.host_path;
    EXPECT_EQ(mount.host_path.find("0000:01:00.0"), std::string::npos) << mount.host_path;
    EXPECT_EQ(mount.host_path.find("/128"), std::string::npos) << mount.host_path;
    EXPECT_EQ(mount.host_path.find("000000000001"), std::string::npos) << mount.host_path;
    writable += mount.writable ? 1 : 0;
  }
  EXPECT_EQ(writable, 1);
}

TEST(AmdFiles, OfRocmsLayout) {
  const Result<os::TempFolder> folder = os::TempFolder::Create("ringfence-gpu-test");
  const std::string libraries = folder->path() + "/opt/rocm/lib";
  ASSERT_TRUE(os::MakeDirs(libraries).has_value());
  ASSERT_TRUE(os::MakeDirs(folder->path() + "/proc").has_value());
  for (const char* name : {"libamdhip64.so.6", "libamd_smi.so.25", "libhsa-runtime64.so.1",
                           "librocblas.so.4", "libamdhip64.txt"}) {
    ASSERT_TRUE(os::WriteFile(libraries + "/" + name, {}).has_value());
  }
  const std::string devices = folder->path() + "/proc/devices";
  ASSERT_TRUE(os::WriteFile(devices, AsBytes("226 drm\n511 kfd\n")).has_value());
  const Result<DriverFiles> files = FilesFor(folder->path(), {{"GPU-a", 128}, {"GPU-b", 136}});
  ASSERT_TRUE(files.has_value()) << files.error().message;
  ASSERT_EQ(files->nodes.size(), 3U);
  EXPECT_EQ(files->nodes[1].path, "/dev/dri/renderD136");
  EXPECT_EQ(files->nodes[2].major, 511U);
  EXPECT_EQ(files->mounts.size(), 3U);
  EXPECT_EQ(FilesFor(folder->path(), {{"GPU-a", 0}, {"GPU-b", 136}}).error().code,
            Code::kInvalidArgument);
  ASSERT_TRUE(os::WriteFile(devices, AsBytes("226 drm\n")).has_value());
  EXPECT_EQ(FilesFor(folder->path(), {{"GPU-a", 128}}).error().code, Code::kNotFound);
}

TEST(AmdScrub, CountsEveryByteLeftLeavesNoneAndSaysWhatItDoesNotReach) {
  const SimulatedTestRoot root(OneSmallAmd());
  Bytes memory(kCardBytes);
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{70000}, kCardBytes / 2, kCardBytes - 1}) {
    memory[at] = std::byte{0x80};
  }
  ASSERT_TRUE(os::WriteFile(MemoryPath(root.path(), kSmallUuid), memory, 0600).has_value());
  const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->simulated);
  EXPECT_EQ(report->driver_version, "HIP 6.4");
  EXPECT_EQ(report->kernel_driver, "amdgpu 6.12.12");
  EXPECT_EQ(report->kernels_digest, "none: done by the host");
  const ScrubResult& result = report->gpus.at(0);
  EXPECT_EQ(result.reached_bytes, kCardBytes);
  EXPECT_EQ(result.residue_bytes, 4U);
  EXPECT_EQ(result.mismatch_bytes, 0U);
  EXPECT_EQ(result.on_chip.multiprocessors, 304U);
  EXPECT_EQ(result.on_chip.multiprocessors_reached, 0U);
  EXPECT_EQ(result.on_chip.shared_bytes, 304U * 65536);
  EXPECT_EQ(result.on_chip.shared_reached_bytes, 0U);
  EXPECT_TRUE(Says(report->not_covered, "never been run on hardware"));
  EXPECT_TRUE(Says(report->not_covered, "LDS, registers, every cache"));
  EXPECT_TRUE(Says(report->not_covered, "304 of 304 multiprocessors"));
  EXPECT_FALSE(Says(report->covered, "L2"));
  EXPECT_EQ(*os::ReadFile(MemoryPath(root.path(), kSmallUuid), kCardBytes), Bytes(kCardBytes));
  const Result<ScrubReport> back = ScrubReportFromJson(ScrubReportToJson(*report));
  EXPECT_TRUE(back.has_value());
  EXPECT_EQ(Scrub(root.path(), {kSmallUuid})->gpus.at(0).residue_bytes, 0U);
}

TEST(AmdScrub, BadMemoryIsAMismatch) {
  for (const char* bad : {R"([{"offset":4096,"and":254},{"offset":4104,"and":254}])",
                          R"([{"offset":8388607,"or":1}])"}) {
    const SimulatedTestRoot root(OneSmallAmd(R"(,"bad_memory":)" + std::string(bad)));
    const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_GT(report->gpus[0].mismatch_bytes, 0U) << bad;
  }
}

TEST(AmdScrub, RefusesADividedCardTooLittleReachAndMissingDeviceFiles) {
  const SimulatedTestRoot divided(
      OneSmallAmd(R"(,"compute_partition":"CPX","memory_partition":"NPS4")"));
  EXPECT_EQ(Scrub(divided.path(), {kSmallUuid}).error().code, Code::kFailedPrecondition);
  const SimulatedTestRoot held(R"({"gpus":[{"uuid":"GPU-0a0b0c0d-0000-4000-8000-000000000001",
      "vendor":"amd","memory_mib":64,"reserved_mib":3}]})");
  EXPECT_EQ(Scrub(held.path(), {kSmallUuid}).error().code, Code::kFailedPrecondition);
  const SimulatedTestRoot no_kfd(OneSmallAmd());
  ASSERT_TRUE(os::RemoveFile(no_kfd.path() + "/dev/kfd").has_value());
  EXPECT_NE(Scrub(no_kfd.path(), {kSmallUuid}).error().message.find("hipErrorNoDevice"),
            std::string::npos);
  const SimulatedTestRoot no_hip(OneSmallAmd());
  ASSERT_TRUE(os::RemoveFile(no_hip.path() + "/lib/libamdhip64.so").has_value());
  EXPECT_EQ(Scrub(no_hip.path(), {kSmallUuid}).error().code, Code::kNotFound);
}

TEST(AmdScrub, EveryFailingCallIsAnError) {
  constexpr int kCallsMax = 200;
  for (const std::string function :
       {"hipInit", "hipRuntimeGetVersion", "hipDeviceGetByPCIBusId", "hipSetDevice",
        "hipDeviceReset", "hipDeviceSynchronize", "hipMemGetInfo", "hipMalloc", "hipFree",
        "hipHostMalloc", "hipHostFree", "hipMemcpyHtoD", "hipMemcpyDtoH", "hipMemsetD32"}) {
    SimulatedTestRoot root(OneSmallAmd());
    int after = 0;
    for (; after < kCallsMax; ++after) {
      std::string scenario = OneSmallAmd();
      scenario.insert(1, R"("fail":{")" + function + R"(":{"result":999,"times":1,"after":)" +
                             std::to_string(after) + "}},");
      root.Make(scenario);
      const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
      if (report.has_value()) {
        break;
      }
      EXPECT_NE(report.error().message.find("hipErrorUnknown"), std::string::npos)
          << report.error().message;
    }
    EXPECT_GT(after, 0) << function << " is never called";
    EXPECT_LT(after, kCallsMax) << function;
  }
}

TEST(AmdScenario, RefusesWhatIsNone) {
  for (const char* wrong :
       {R"({"gpus":[{"vendor":"x"}]})", R"({"gpus":[{"vendor":"amd","minor":5}]})",
        R"({"gpus":[{"minor":128}]})", R"({"gpus":[{"compute_partition":"SPX"}]})"}) {
    EXPECT_EQ(ParseScenario(wrong).error().code, Code::kInvalidArgument) << wrong;
  }
  const std::string text = ScenarioToJson(*ParseScenario(TwoAmd()));
  EXPECT_EQ(ScenarioToJson(*ParseScenario(text)), text);
}

TEST(AmdScenario, ARootChangesBetweenVendors) {
  SimulatedTestRoot root(OneSmallGpu());
  root.Make(OneSmallAmd());
  EXPECT_EQ(ReadInventory(root.path())->gpus.at(0).vendor, "amd");
  EXPECT_FALSE(os::Exists(root.path() + "/dev/nvidia0"));
  root.Make(OneSmallGpu());
  EXPECT_EQ(ReadInventory(root.path())->gpus.at(0).vendor, "nvidia");
  EXPECT_FALSE(os::Exists(root.path() + "/dev/kfd"));
}

}  // namespace
}  // namespace ringfence::gpu
