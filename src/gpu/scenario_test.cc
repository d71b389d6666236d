// Goal: a scenario means what it says, and a wrong one is refused by the name of its field.
// Method: defaults, a round trip through text, and a table of wrong documents with the field that
// each must name; a root is not touched by a scenario that is refused.

#include "gpu/scenario.h"

#include <gtest/gtest.h>

#include <set>

#include "gpu/simulated_test_root.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

TEST(Scenario, FillsInAnH200) {
  const Result<Scenario> scenario = ParseScenario(R"({"gpus":[{},{}]})");
  ASSERT_TRUE(scenario.has_value());
  EXPECT_EQ(scenario->cuda_version, 13000);
  ASSERT_EQ(scenario->gpus.size(), 2U);
  EXPECT_EQ(scenario->gpus[1].model, "NVIDIA H200");
  EXPECT_EQ(scenario->gpus[1].uuid, "GPU-00000000-0000-4000-8000-000000000002");
  EXPECT_EQ(scenario->gpus[1].minor, 1U);
  EXPECT_EQ(scenario->gpus[1].memory_mib, 64U);
  EXPECT_EQ(scenario->gpus[1].ecc, true);
}

TEST(Scenario, ComesBackFromItsText) {
  const std::string text =
      R"({"driver_version":"600.1","cuda_version":"13.2","confidential_computing":"devtools",
      "fail":{"cuInit":3},"gpus":[
      {"pci_address":"00000000:1F:00.0","memory_mib":4,"reserved_mib":0,"ecc":null,"mig":true,
       "fail":{"cuMemAlloc_v2":{"result":2,"after":5}},"nvml_fail":{"nvmlDeviceGetUUID":15},
       "bad_memory":[{"offset":4096,"and":254,"or":16}],"lost":true},
      {"pci_address":"00000000:0A:00.0"}]})";
  const Result<Scenario> first = ParseScenario(text);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_EQ(first->gpus[0].pci_address, "00000000:0A:00.0");  // in order of address
  const SimulatedGpu& odd = first->gpus[1];
  EXPECT_EQ(odd.ecc, std::nullopt);
  EXPECT_EQ(odd.cuda_failures.at("cuMemAlloc_v2").after, 5U);
  EXPECT_EQ(odd.bad_memory.at(0).or_mask, 16);
  const std::string written = ScenarioToJson(*first);
  const Result<Scenario> second = ParseScenario(written);
  ASSERT_TRUE(second.has_value()) << second.error().message;
  EXPECT_EQ(ScenarioToJson(*second), written);
}

struct WrongScenario {
  const char* text;
  const char* field;
};

TEST(Scenario, NamesTheWrongField) {
  const WrongScenario wrong[] = {
      {R"({})", "gpus"},
      {R"({"gpus":{}})", "gpus"},
      {R"({"gpus":[],"gpu":1})", "gpu"},
      {R"({"gpus":[],"cuda_version":"13"})", "cuda_version"},
      {R"({"gpus":[],"cuda_version":"13.0x"})", "cuda_version"},
      {R"({"gpus":[],"confidential_computing":"maybe"})", "confidential_computing"},
      {R"({"gpus":[],"fail":{"cuInit":0}})", "fail.cuInit"},
      {R"({"gpus":[],"fail":[]})", "fail"},
      {R"({"gpus":[3]})", "gpus[0]"},
      {R"({"gpus":[{},{"uuid":"GPU-1"}]})", "gpus[1].uuid"},
      {R"({"gpus":[{"uuid":"GPU-0A0B0C0D-0000-4000-8000-000000000001"}]})", "gpus[0].uuid"},
      {R"({"gpus":[{"pci_address":"0000:00:00.0"}]})", "gpus[0].pci_address"},
      {R"({"gpus":[{"pci_device_id":"10de"}]})", "gpus[0].pci_device_id"},
      {R"({"gpus":[{"memory_mib":1}]})", "gpus[0].memory_mib"},
      {R"({"gpus":[{"memory_mib":8,"reserved_mib":8}]})", "gpus[0].reserved_mib"},
      {R"({"gpus":[{"minor":255}]})", "gpus[0].minor"},
      {R"({"gpus":[{},{"minor":0}]})", "gpus[1].minor"},
      {R"({"gpus":[{"ecc":1}]})", "gpus[0].ecc"},
      {R"({"gpus":[{"fail":{"cuInit":{"result":1,"when":2}}}]})", "gpus[0].fail.cuInit.when"},
      {R"({"gpus":[{"bad_memory":[{"offset":67108864}]}]})", "gpus[0].bad_memory[0].offset"},
      {R"({"gpus":[{"bad_memory":[{"offset":0,"and":256}]}]})", "gpus[0].bad_memory[0].and"},
      {R"({"gpus":[{"memory":64}]})", "gpus[0].memory"},
  };
  for (const WrongScenario& one : wrong) {
    const Result<Scenario> scenario = ParseScenario(one.text);
    ASSERT_FALSE(scenario.has_value()) << one.text;
    EXPECT_EQ(scenario.error().code, Code::kInvalidArgument) << one.text;
    EXPECT_EQ(scenario.error().field, one.field) << scenario.error().message;
  }
}

TEST(SimulatedRoot, RefusesAWrongScenarioBeforeMakingAnything) {
  const Result<os::TempFolder> folder = os::TempFolder::Create("ringfence-gpu-test");
  ASSERT_TRUE(folder.has_value());
  const std::string root = folder->path() + "/driver";
  const Status made =
      MakeSimulatedRoot(root, SimulatedTestRoot::kStandIns, R"({"gpus":[{"minor":-1}]})");
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().field, "gpus[0].minor");
  EXPECT_FALSE(os::Exists(root));
  EXPECT_FALSE(MakeSimulatedRoot(root, folder->path(), R"({"gpus":[]})").has_value());
}

TEST(SimulatedRoot, KeepsMemoryWhenMadeAgain) {
  SimulatedTestRoot root(OneSmallGpu());
  const std::string memory = MemoryPath(root.path(), kSmallUuid);
  Bytes bytes(8U << 20U);
  bytes[12345] = std::byte{7};
  ASSERT_TRUE(os::WriteFile(memory, bytes, 0600).has_value());
  root.Make(OneSmallGpu());
  EXPECT_EQ(*os::ReadFile(memory, bytes.size()), bytes);
  EXPECT_TRUE(IsSimulatedRoot(root.path()));
  EXPECT_TRUE(IsSimulatedRoot(root.path() + "/"));
  EXPECT_FALSE(IsSimulatedRoot("/"));
}

TEST(SimulatedRoot, DropsDeviceFilesOfGpusThatAreGone) {
  SimulatedTestRoot root(R"({"gpus":[{},{},{}]})");
  EXPECT_TRUE(os::Exists(root.path() + "/dev/nvidia2"));
  root.Make(R"({"gpus":[{}]})");
  EXPECT_TRUE(os::Exists(root.path() + "/dev/nvidia0"));
  EXPECT_FALSE(os::Exists(root.path() + "/dev/nvidia2"));
}

TEST(DefaultScenario, FollowsFromItsSeedAlone) {
  EXPECT_EQ(DefaultScenario("a"), DefaultScenario("a"));
  std::set<std::string> uuids;
  std::set<std::string> serials;
  for (const char* seed : {"a", "b"}) {
    const Result<Scenario> scenario = ParseScenario(DefaultScenario(seed));
    ASSERT_TRUE(scenario.has_value());
    ASSERT_EQ(scenario->gpus.size(), 8U);
    for (const SimulatedGpu& gpu : scenario->gpus) {
      uuids.insert(gpu.uuid);
      serials.insert(gpu.serial);
      EXPECT_EQ(gpu.memory_mib, 64U);
    }
  }
  EXPECT_EQ(uuids.size(), 16U);
  EXPECT_EQ(serials.size(), 16U);
}

}  // namespace
}  // namespace ringfence::gpu
