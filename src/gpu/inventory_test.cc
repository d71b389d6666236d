// Goal: an inventory is whole and true, or an error that names the card and NVML's words.
// Method: simulated drivers whose content is known; every NVML call that it makes fails in turn;
// device files are taken away.

#include "gpu/inventory.h"

#include <gtest/gtest.h>

#include "base/encoding.h"
#include "crypto/sha256.h"
#include "gpu/scenario.h"
#include "gpu/simulated_test_root.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

TEST(Inventory, SaysWhatTheScenarioSays) {
  const SimulatedTestRoot root(DefaultScenario("seed"));
  const Result<Scenario> scenario = ParseScenario(DefaultScenario("seed"));
  const Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_TRUE(inventory.has_value()) << inventory.error().message;
  EXPECT_TRUE(inventory->simulated);
  EXPECT_EQ(inventory->driver_version, "580.159.04");
  EXPECT_EQ(inventory->cuda_version, "13.0");
  EXPECT_EQ(inventory->nvml_version, "13.580.159.04");
  EXPECT_EQ(inventory->kernel_driver,
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  "
            "(simulated)");
  EXPECT_EQ(inventory->library_path, *os::AbsolutePath(root.path() + "/lib/libnvidia-ml.so.1"));
  const auto library = os::ReadFile(inventory->library_path, std::size_t{64} << 20U);
  EXPECT_EQ(inventory->library_digest, "sha256:" + Hex(crypto::Sha256(*library)));
  ASSERT_EQ(inventory->gpus.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    const Gpu& gpu = inventory->gpus[i];
    EXPECT_EQ(gpu.uuid, scenario->gpus[i].uuid);
    EXPECT_EQ(gpu.index, i);
    EXPECT_EQ(gpu.minor, i);
    EXPECT_EQ(gpu.model, "NVIDIA H200");
    EXPECT_EQ(gpu.serial, scenario->gpus[i].serial);
    EXPECT_EQ(gpu.pci_address, scenario->gpus[i].pci_address);
    EXPECT_EQ(gpu.pci_device_id, "233510de");
    EXPECT_EQ(gpu.memory_bytes, 64U << 20U);
    EXPECT_EQ(gpu.memory_used_bytes, 1U << 20U);
    EXPECT_EQ(gpu.vbios, "96.00.A5.00.1A");
    EXPECT_EQ(gpu.gsp_firmware, "580.159.04");
    EXPECT_EQ(gpu.ecc_enabled, true);
    EXPECT_EQ(gpu.mig_enabled, false);
    EXPECT_EQ(gpu.confidential_computing, "off");
    EXPECT_TRUE(gpu.processes.empty());
  }
}

TEST(Inventory, LeavesOpenWhatTheCardDoesNotSay) {
  const SimulatedTestRoot root(
      R"({"confidential_computing":"unsupported",
          "gpus":[{"ecc":null,"mig":null,"gsp_firmware":"","serial":""}]})");
  const Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_TRUE(inventory.has_value()) << inventory.error().message;
  const Gpu& gpu = inventory->gpus.at(0);
  EXPECT_EQ(gpu.ecc_enabled, std::nullopt);
  EXPECT_EQ(gpu.mig_enabled, std::nullopt);
  EXPECT_EQ(gpu.gsp_firmware, "");
  EXPECT_EQ(gpu.serial, "");
  EXPECT_EQ(gpu.confidential_computing, "unknown");
}

TEST(Inventory, NeverTakesDevtoolsForConfidential) {
  for (const std::string mode : {"on", "devtools"}) {
    const SimulatedTestRoot root(R"({"confidential_computing":")" + mode + R"(","gpus":[{}]})");
    const Result<Inventory> inventory = ReadInventory(root.path());
    ASSERT_TRUE(inventory.has_value());
    EXPECT_EQ(inventory->gpus.at(0).confidential_computing, mode);
  }
}

TEST(Inventory, NoDriverIsNotFound) {
  const Result<os::TempFolder> folder = os::TempFolder::Create("ringfence-gpu-test");
  const Result<Inventory> inventory = ReadInventory(folder->path());
  ASSERT_FALSE(inventory.has_value());
  EXPECT_EQ(inventory.error().code, Code::kNotFound);
}

TEST(Inventory, ALibraryThatIsNoneIsNotFound) {
  const SimulatedTestRoot root(R"({"gpus":[]})");
  ASSERT_TRUE(os::WriteFile(root.path() + "/lib/libnvidia-ml.so.1", AsBytes("no library")));
  EXPECT_FALSE(ReadInventory(root.path()).has_value());
}

TEST(Inventory, EveryFailingCallIsAnErrorThatNamesIt) {
  for (const std::string function :
       {"nvmlInit_v2", "nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion",
        "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetConfComputeState",
        "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2"}) {
    const SimulatedTestRoot root(R"({"nvml_fail":{")" + function + R"(":999},"gpus":[{}]})");
    const Result<Inventory> inventory = ReadInventory(root.path());
    ASSERT_FALSE(inventory.has_value()) << function;
    EXPECT_NE(inventory.error().message.find(function + ": Unknown Error (999)"), std::string::npos)
        << inventory.error().message;
  }
  for (const std::string function :
       {"nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetSerial",
        "nvmlDeviceGetVbiosVersion", "nvmlDeviceGetGspFirmwareVersion", "nvmlDeviceGetMinorNumber",
        "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetEccMode",
        "nvmlDeviceGetMigMode", "nvmlDeviceGetComputeRunningProcesses_v3"}) {
    const SimulatedTestRoot root(R"({"gpus":[{},{"nvml_fail":{")" + function + R"(":15}}]})");
    const Result<Inventory> inventory = ReadInventory(root.path());
    ASSERT_FALSE(inventory.has_value()) << function;
    const std::string& message = inventory.error().message;
    EXPECT_TRUE(message.starts_with("GPU 1")) << message;
    EXPECT_NE(message.find(function + ": GPU is lost (15)"), std::string::npos) << message;
  }
}

TEST(Inventory, ALostCardIsAnError) {
  const SimulatedTestRoot root(R"({"gpus":[{},{"lost":true}]})");
  const Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_FALSE(inventory.has_value());
  EXPECT_NE(inventory.error().message.find("GPU is lost"), std::string::npos);
}

TEST(Inventory, ShowsOnlyGpusWhoseDeviceFileOpens) {
  const SimulatedTestRoot root(R"({"gpus":[{},{},{}]})");
  ASSERT_TRUE(os::RemoveFile(root.path() + "/dev/nvidia1").has_value());
  const Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_TRUE(inventory.has_value());
  ASSERT_EQ(inventory->gpus.size(), 2U);
  EXPECT_EQ(inventory->gpus[0].minor, 0U);
  EXPECT_EQ(inventory->gpus[1].minor, 2U);
  EXPECT_EQ(inventory->gpus[1].index, 1U);
}

TEST(Inventory, NeedsTheControlFile) {
  const SimulatedTestRoot root(R"({"gpus":[{}]})");
  ASSERT_TRUE(os::RemoveFile(root.path() + "/dev/nvidiactl").has_value());
  const Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_FALSE(inventory.has_value());
  EXPECT_NE(inventory.error().message.find("Driver Not Loaded"), std::string::npos);
}

TEST(Inventory, NeedsTheKernelDriversVersion) {
  const SimulatedTestRoot root(R"({"gpus":[{}]})");
  const std::string version = root.path() + "/proc/driver/nvidia/version";
  ASSERT_TRUE(os::WriteFile(version, AsBytes("\n")).has_value());
  EXPECT_FALSE(ReadInventory(root.path()).has_value());
  ASSERT_TRUE(os::RemoveFile(version).has_value());
  EXPECT_FALSE(ReadInventory(root.path()).has_value());
}

TEST(InventoryJson, ComesBackAndRefusesWhatIsMissing) {
  const SimulatedTestRoot root(R"({"gpus":[{},{"ecc":null}]})");
  Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_TRUE(inventory.has_value());
  inventory->gpus[0].processes.push_back({4242, 1 << 20});
  const Json json = InventoryToJson(*inventory);
  const Result<Inventory> again = InventoryFromJson(json);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(CanonicalJson(InventoryToJson(*again)), CanonicalJson(json));
  EXPECT_EQ(again->gpus[0].processes.at(0).pid, 4242U);
  EXPECT_EQ(again->gpus[1].ecc_enabled, std::nullopt);
  for (const auto& member : json.get_object()) {
    JsonObject without = json.get_object();
    without.erase(member.key());
    const Result<Inventory> read = InventoryFromJson(without);
    if (member.key() == "scrub_on_free") {  // an older worker does not say: not known
      EXPECT_TRUE(read.has_value() && !read->scrub_on_free.has_value());
    } else {
      EXPECT_FALSE(read.has_value()) << member.key();
    }
  }
  JsonObject more = json.get_object();
  more["extra"] = 1;
  EXPECT_FALSE(InventoryFromJson(more).has_value());
}

}  // namespace
}  // namespace ringfence::gpu
