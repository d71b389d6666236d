// Goal: a baseline names every fact that changed, and one that was touched is refused.
// Method: made-up machines; every byte of a signed baseline damaged; the stand-in for NVML.

#include "assure/baseline.h"

#include <gtest/gtest.h>

#include "assure/probe.h"
#include "gpu/simulated_test_root.h"

namespace ringfence::assure {
namespace {

constexpr char kNvml[] =
    R"({"driver":"580.1","gpus":[{"uuid":"GPU-1","model":"H200","vbios":"96.1","ecc":true}]})";

std::map<std::string, MadeUpFile> Files() {
  return {
      {"/proc/sys/kernel/osrelease", {.text = "6.1.0\n"}},
      {"/sys/class/dmi/id/bios_version", {.text = "2.3\n"}},
      {"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
       {.text = std::string("\x06\0\0\0\x01", 5)}},
      {"/proc/modules", {.text = "nvidia 1 0 - Live 0x0\nxfs 1 0 - Live 0x0\n"}},
      {"/sys/module/nvidia/srcversion", {.text = "ABC\n"}},
      {"/sys/module/nvidia/taint", {.text = "OE\n"}},
      {"/sys/bus/pci/devices/0000:06:00.0/vendor", {.text = "0x10de\n"}},
      {"/sys/bus/pci/devices/0000:06:00.0/class", {.text = "0x030200\n"}},
      {kNvmlFile, {.text = kNvml}},
  };
}

BaselineSight See(std::map<std::string, MadeUpFile> files) {
  return SeeBaseline(*MakeMachine(std::move(files), 0), nullptr);
}

TEST(BaselineTest, SeesWhatAMachineIsMadeOf) {
  const BaselineSight sight = See(Files());
  EXPECT_TRUE(sight.unread.empty());
  EXPECT_EQ(sight.facts.at("kernel.release"), "6.1.0");
  EXPECT_EQ(sight.facts.at("boot.secure"), "on");
  EXPECT_EQ(sight.facts.at("module.nvidia"), "source ABC, taints OE");
  EXPECT_EQ(sight.facts.at("module.xfs"), "source unknown");
  EXPECT_EQ(sight.facts.at("gpu.GPU-1.vbios"), "96.1");
  EXPECT_EQ(sight.facts.at("gpu.GPU-1.ecc"), "on");
  EXPECT_EQ(sight.facts.at("driver.version"), "580.1");
  EXPECT_TRUE(sight.facts.at("pci.0000:06:00.0").starts_with("class 0x030200"));
}

TEST(BaselineTest, EveryChangeIsNamed) {
  const BaselineFacts recorded = See(Files()).facts;
  EXPECT_TRUE(CompareBaseline(recorded, recorded, {}).empty());
  auto files = Files();
  files["/sys/class/dmi/id/bios_version"].text = "2.4";
  files["/proc/modules"].text = "nvidia 1 0 - Live 0x0\nrootkit 1 0 - Live 0x0\n";
  files[kNvmlFile].text = R"({"driver":"580.1","gpus":[]})";
  files["/proc/sys/kernel/osrelease"].unreadable = true;
  const BaselineSight now = See(files);
  ASSERT_EQ(now.unread.size(), 1U);
  std::map<std::string, std::string> drifts;
  for (const Drift& drift : CompareBaseline(recorded, now.facts, {})) {
    drifts[drift.fact] = drift.what();
  }
  EXPECT_EQ(drifts.at("firmware.version"), "2.3 became 2.4");
  EXPECT_EQ(drifts.at("module.rootkit"), "new: source unknown");
  EXPECT_EQ(drifts.at("module.xfs"), "gone: was source unknown");
  EXPECT_EQ(drifts.at("gpu.GPU-1.vbios"), "gone: was 96.1");
  EXPECT_EQ(drifts.at("kernel.release"), "gone: was 6.1.0") << "unreadable is not unchanged";
  EXPECT_EQ(CompareBaseline(recorded, now.facts, {"module.*", "gpu.*", "kernel.*"}).size(), 1U);
}

TEST(BaselineTest, ADamagedOrForeignBaselineIsRefused) {
  const crypto::SigningKey key = crypto::SigningKey::Generate();
  const Baseline baseline{"n1", ParseTime("2026-11-16T12:00:00Z").value(), See(Files()).facts};
  const std::string text = SignBaseline(baseline, key);
  const auto opened = OpenBaseline(text, key.public_key());
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(opened->facts, baseline.facts);
  EXPECT_EQ(opened->when, baseline.when);
  EXPECT_FALSE(OpenBaseline(text, crypto::SigningKey::Generate().public_key()).has_value());
  const std::size_t id = text.find("\"keyid\":\"") + 9;  // says which key, and is no part of proof
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    if (i >= id && i < text.find('"', id)) {
      continue;
    }
    EXPECT_FALSE(OpenBaseline(damaged, key.public_key()).has_value()) << i << ": " << text[i];
  }
}

TEST(NvmlViewTest, AsksTheStandInAndReadsBackWhatItSaid) {
  const gpu::SimulatedTestRoot root(gpu::DefaultScenario("x"));
  const NvmlView view = AskNvml(root.path());
  ASSERT_TRUE(view.report.has_value()) << view.problem;
  EXPECT_TRUE(view.report->simulated);
  ASSERT_EQ(view.report->gpus.size(), 8U);
  const gpu::Firmware& card = view.report->gpus[3];
  EXPECT_EQ(card.problem, "");
  EXPECT_EQ(card.ecc, true);
  EXPECT_EQ(card.persistence, true);
  EXPECT_EQ(card.inforom_valid, true);
  EXPECT_EQ(card.inforom, "G520.0200.00.05");
  const std::string text = CanonicalJson(NvmlJson(*view.report));
  EXPECT_EQ(CanonicalJson(NvmlJson(ParseNvml(text).value())), text);
  EXPECT_FALSE(ParseNvml(text.substr(0, text.size() - 3)).has_value());
}

TEST(NvmlViewTest, OneBadCardHidesNoOther) {
  const gpu::SimulatedTestRoot root(R"({"gpus":[{"lost":true},{}]})");
  const NvmlView view = AskNvml(root.path());
  ASSERT_TRUE(view.report.has_value()) << view.problem;
  ASSERT_EQ(view.report->gpus.size(), 2U);
  EXPECT_NE(view.report->gpus[0].problem, "");
  EXPECT_EQ(view.report->gpus[1].problem, "");
  EXPECT_EQ(NvmlFact(view.report->gpus[1], "inforom_valid"), "yes");
  EXPECT_FALSE(AskNvml("/no/such/root").report.has_value());
}

}  // namespace
}  // namespace ringfence::assure
