// Goal: the simulated H200 says what a real one said.
// Method: inventory and raw NVML calls on it, held against the files of tests/vectors/h200.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>

#include "gpu/inventory.h"
#include "gpu/library.h"
#include "gpu/scenario.h"
#include "gpu/simulated_test_root.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

std::string Vector(const std::string& name) {
  return *os::ReadText(RINGFENCE_SOURCE_DIR "/tests/vectors/h200/" + name, 1U << 20U);
}

// The first element of that name; nvidia-smi indents, and never nests text in text.
std::string Element(const std::string& xml, const std::string& name) {
  const std::size_t start = xml.find("<" + name + ">");
  EXPECT_NE(start, std::string::npos) << name;
  const std::size_t from = start + name.size() + 2;
  return xml.substr(from, xml.find("</" + name + ">", from) - from);
}

class H200 : public testing::Test {
 protected:
  H200() : root_(H200Scenario()) {}
  SimulatedTestRoot root_;
};

TEST_F(H200, InventoryAgreesWithNvidiaSmi) {
  const std::string xml = Vector("nvidia-smi-q.xml");
  const Result<Inventory> inventory = ReadInventory(root_.path());
  ASSERT_TRUE(inventory.has_value()) << inventory.error().message;
  EXPECT_EQ(inventory->driver_version, Element(xml, "driver_version"));
  EXPECT_EQ(inventory->cuda_version, Element(xml, "cuda_version"));
  EXPECT_EQ(std::to_string(inventory->gpus.size()), Element(xml, "attached_gpus"));
  const Gpu& gpu = inventory->gpus.at(0);
  EXPECT_EQ(gpu.model, Element(xml, "product_name"));
  EXPECT_EQ(gpu.uuid, Element(xml, "uuid"));
  EXPECT_EQ(gpu.serial, Element(xml, "serial"));
  EXPECT_EQ(std::to_string(gpu.minor), Element(xml, "minor_number"));
  EXPECT_EQ(gpu.vbios, Element(xml, "vbios_version"));
  EXPECT_EQ(gpu.gsp_firmware, Element(xml, "gsp_firmware_version"));
  EXPECT_EQ(gpu.pci_address, Element(xml, "pci_bus_id"));
  EXPECT_EQ(std::stoul(gpu.pci_device_id, nullptr, 16),
            std::stoul(Element(xml, "pci_device_id"), nullptr, 16));
  const std::string memory = Element(xml, "fb_memory_usage");
  EXPECT_EQ(std::to_string(gpu.memory_bytes >> 20U) + " MiB", Element(memory, "total"));
  EXPECT_EQ(std::to_string(gpu.memory_used_bytes >> 20U) + " MiB", Element(memory, "reserved"));
  EXPECT_EQ(gpu.ecc_enabled, Element(xml, "current_ecc") == "Enabled");
  EXPECT_EQ(gpu.mig_enabled, Element(xml, "current_mig") == "Enabled");
  EXPECT_EQ(gpu.confidential_computing, "off");
}

TEST_F(H200, ProcFilesAgree) {
  const std::string proc = Vector("proc.txt");
  const std::string information =
      *os::ReadText(root_.path() + "/proc/driver/nvidia/gpus/0000:00:06.0/information", 4096);
  EXPECT_NE(proc.find(information), std::string::npos) << information;
  const std::string version = *os::ReadText(root_.path() + "/proc/driver/nvidia/version", 4096);
  // All but who built it, where ours says what it is.
  EXPECT_EQ(proc.substr(0, proc.find('(')), version.substr(0, version.find('(')));
  std::istringstream params(*os::ReadText(root_.path() + "/proc/driver/nvidia/params", 4096));
  for (std::string line; std::getline(params, line);) {
    EXPECT_NE(proc.find("\n" + line.substr(0, line.find(':') + 1)), std::string::npos) << line;
  }
}

TEST_F(H200, MigProfilesAndPlacementsAgree) {
  const Result<Library> library = Library::Open(root_.path(), kNvmlName);
  ASSERT_TRUE(library.has_value());
  const nvml::Api api = LoadNvml(*library);
  ASSERT_EQ(api.nvmlInit_v2(), nvml::kSuccess);
  nvml::Device device = nullptr;
  ASSERT_EQ(api.nvmlDeviceGetHandleByIndex_v2(0, &device), nvml::kSuccess);
  const std::string mig = Vector("mig.txt");
  std::istringstream lines(Vector("nvml.txt"));
  int profiles = 0;
  int refusals = 0;
  for (std::string line; std::getline(lines, line);) {
    unsigned lookup = 0;
    int code = 0;
    nvml::GpuInstanceProfile info{};
    nvml::GpuInstanceProfileV3 third{};
    third.version = nvml::StructVersion<nvml::GpuInstanceProfileV3>(3);
    auto* versioned = reinterpret_cast<nvml::GpuInstanceProfileV2*>(&third);
    if (std::sscanf(line.c_str(), "profile index %u rc %d", &lookup, &code) == 2) {
      ++refusals;
      EXPECT_EQ(api.nvmlDeviceGetGpuInstanceProfileInfo(device, lookup, &info), code) << line;
      EXPECT_EQ(api.nvmlDeviceGetGpuInstanceProfileInfoV(device, lookup, versioned), code) << line;
    } else if (std::sscanf(line.c_str(), "index %u id", &lookup) == 1) {
      ++profiles;
      ASSERT_EQ(api.nvmlDeviceGetGpuInstanceProfileInfo(device, lookup, &info), 0) << line;
      ASSERT_EQ(api.nvmlDeviceGetGpuInstanceProfileInfoV(device, lookup, versioned), 0) << line;
      nvml::GpuInstancePlacement placements[16];
      unsigned count = 16;
      code =
          api.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, third.id, placements, &count);
      std::ostringstream ours;
      ours << "index " << lookup << " id " << third.id << "  slices " << third.slices << " inst "
           << third.instances << " SM " << third.multiprocessors << " CE " << third.copy_engines
           << " memMB " << third.memory_mb << " cap " << third.capabilities << " placements rc "
           << code << " [";
      for (unsigned i = 0; i < count; ++i) {
        ours << (i == 0 ? "(" : ", (") << placements[i].start << ", " << placements[i].size << ")";
      }
      ours << "]";
      EXPECT_EQ(ours.str(), line);
      EXPECT_EQ(info.id, third.id);
      EXPECT_EQ(info.memory_mb, third.memory_mb);
      EXPECT_NE(mig.find(std::string(third.name) + " "), std::string::npos) << third.name;
    }
  }
  EXPECT_EQ(profiles, 7);
  EXPECT_EQ(refusals, 11);
  EXPECT_EQ(api.nvmlShutdown(), nvml::kSuccess);
}

}  // namespace
}  // namespace ringfence::gpu
