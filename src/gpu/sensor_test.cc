// Goal: a sensor says what its cards say, as a whole line each; a card that is lost, hangs or
// raises an XID is told of once, and the others are read on. Method: stand-ins whose scenario is
// written anew, or moves on by itself, while the sensor runs.

#include "gpu/sensor.h"

#include <gtest/gtest.h>

#include "gpu/simulated_test_root.h"
#include "os/file.h"
#include "os/memory_file.h"
#include "os/socket_pair.h"

namespace ringfence::gpu {
namespace {

constexpr const char* kFirst = "GPU-00000000-0000-4000-8000-000000000001";
constexpr const char* kSecond = "GPU-00000000-0000-4000-8000-000000000002";

// Runs until `seen` is content with a line; fails after many lines.
void RunUntil(Sensor& sensor, const std::function<bool(const SensorLine&)>& seen) {
  int lines = 0;
  bool found = false;
  sensor.Run([&](const SensorLine& line) {
    const auto again = ParseSensorLine(SensorLineToText(line));
    EXPECT_TRUE(again.has_value() && SensorLineToText(*again) == SensorLineToText(line));
    found = seen(line);
    return !found && ++lines < 2000;
  });
  EXPECT_TRUE(found);
}

std::unique_ptr<Sensor> Open(const SimulatedTestRoot& root) {
  auto sensor = Sensor::Open({root.path(), std::chrono::milliseconds(10), -1, Milliseconds(300)});
  EXPECT_TRUE(sensor.has_value());
  return std::move(*sensor);
}

TEST(Sensor, SaysWhatTheScenarioSays) {
  const SimulatedTestRoot root(
      R"({"gpus":[{"power_mw":410000,"temperature_c":61,"utilization_percent":88,)"
      R"("ecc_errors_corrected":5,"remapped_corrected":2,"sm_clock_mhz":1980,"pcie_rx_kbps":2000,)"
      R"("nvlink_tx_kib":7,"energy_mj":12345,"sm_active_percent":91,"tensor_active_percent":3},)"
      R"({"gpm":false,"ecc":null,"pcie_tx_kbps":9}]})");
  const auto sensor = Open(root);
  RunUntil(*sensor, [](const SensorLine& line) {
    if (line.readings.size() != 2 || !line.readings[0].Of(Signal::kSmActive).has_value()) {
      return false;
    }
    const Reading& one = line.readings[0];
    EXPECT_EQ(one.uuid, kFirst);
    EXPECT_EQ(one.Of(Signal::kPower), 410000);
    EXPECT_EQ(one.Of(Signal::kTemperature), 61);
    EXPECT_EQ(one.Of(Signal::kBusy), 88);
    EXPECT_EQ(one.Of(Signal::kEccCorrected), 5);
    EXPECT_EQ(one.Of(Signal::kRemappedCorrected), 2);
    EXPECT_EQ(one.Of(Signal::kSmClock), 1980);
    EXPECT_EQ(one.Of(Signal::kPcieRx), 2000);
    EXPECT_EQ(one.Of(Signal::kNvlinkTx), 7);
    EXPECT_EQ(one.Of(Signal::kEnergy), 12345);
    EXPECT_EQ(one.Of(Signal::kSmActive), 91);
    EXPECT_EQ(one.Of(Signal::kTensorActive), 3);
    const Reading& other = line.readings[1];
    EXPECT_FALSE(other.Of(Signal::kSmActive).has_value());
    EXPECT_FALSE(other.Of(Signal::kEccCorrected).has_value());
    EXPECT_EQ(other.Of(Signal::kPcieTx), 9);
    return true;
  });
}

TEST(Sensor, TellsOfAnXidAtItsTimeAndFollowsAScenarioThatIsWrittenAnew) {
  SimulatedTestRoot root(R"({"gpus":[{},{}]})");
  const auto sensor = Open(root);
  RunUntil(*sensor, [](const SensorLine& line) { return line.readings.size() == 2; });
  root.Make(R"({"gpus":[{},{"timeline":[{"after_ms":50,"set":{"power_mw":600000},"xid":31},)"
            R"({"after_ms":60,"xid":79}]}]})");
  std::vector<std::uint32_t> xids;
  RunUntil(*sensor, [&](const SensorLine& line) {
    if (line.fault.has_value()) {
      EXPECT_EQ(line.fault->uuid, kSecond);
      EXPECT_EQ(line.fault->kind, FaultKind::kXid);
      xids.push_back(line.fault->xid);
    }
    return xids.size() == 2 && line.readings.size() == 2 &&
           line.readings[1].Of(Signal::kPower) == 600000;
  });
  EXPECT_EQ(xids, (std::vector<std::uint32_t>{31, 79}));
}

TEST(Sensor, TheKernelsLogIsEvidenceAndSaysNothingTwice) {
  SimulatedTestRoot root(R"({"gpus":[{},{}]})");
  os::Pipe log = os::MakePipe().value();
  ASSERT_TRUE(os::SetNonBlocking(log.read.get(), true).has_value());
  auto sensor =
      Sensor::Open({root.path(), std::chrono::milliseconds(10), log.read.get(), Milliseconds(300)});
  ASSERT_TRUE(sensor.has_value());
  RunUntil(**sensor, [](const SensorLine& line) { return line.readings.size() == 2; });
  ASSERT_TRUE(os::WriteAll(log.write.get(),
                           AsBytes("4,9,1,-;NVRM: Xid (PCI:0000:02:00): 13, pid=77, name=job\n"))
                  .has_value());
  root.Make(R"({"gpus":[{},{"timeline":[{"after_ms":50,"xid":13},{"after_ms":60,"xid":31}]}]})");
  std::vector<std::string> seen;
  RunUntil(**sensor, [&](const SensorLine& line) {
    if (line.fault.has_value()) {
      EXPECT_EQ(line.fault->uuid, kSecond);
      seen.push_back(std::to_string(line.fault->xid) + " " + line.fault->why);
    }
    return !seen.empty() && seen.back().starts_with("31");
  });
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0], "13 NVRM: Xid (PCI:0000:02:00): 13, pid=77, name=job");
}

TEST(Sensor, ALostAndAHungCardAreToldOfOnceAndTheOthersAreReadOn) {
  for (const auto& [member, kind] : {std::pair(R"("lost":true)", FaultKind::kLost),
                                     std::pair(R"("hang":true)", FaultKind::kHung)}) {
    SimulatedTestRoot root(R"({"gpus":[{},{}]})");
    const auto sensor = Open(root);
    RunUntil(*sensor, [](const SensorLine& line) { return line.readings.size() == 2; });
    root.Make(std::string(R"({"gpus":[{)") + member + R"(},{}]})");
    int faults = 0;
    int readings = 0;
    RunUntil(*sensor, [&, wanted = kind](const SensorLine& line) {
      if (line.fault.has_value()) {
        EXPECT_EQ(line.fault->uuid, kFirst);
        EXPECT_EQ(line.fault->kind, wanted);
        EXPECT_FALSE(line.fault->why.empty());
        ++faults;
      }
      const bool second = line.readings.size() == 1 && line.readings[0].uuid == kSecond;
      readings += second && faults > 0 ? 1 : 0;
      return readings == 5;
    });
    EXPECT_EQ(faults, 1) << member;
    root.Make(R"({"gpus":[{},{}]})");
    bool back = false;
    RunUntil(*sensor, [&](const SensorLine& line) {
      back = back || (line.fault.has_value() && line.fault->kind == FaultKind::kBack);
      return back && line.readings.size() == 2;
    });
  }
}

TEST(Readings, WhatNoSensorWritesIsRefused) {
  for (const char* text : {"", "{}", "[]", R"({"time":1})", R"({"time":-1,"readings":[]})",
                           R"({"time":1,"readings":[{"gpu":"a"}]})",
                           R"({"time":1,"readings":[{"gpu":"a","processes":[],"power_mw":"x"}]})",
                           R"({"time":1,"readings":[{"gpu":"a","processes":[],"more":1}]})",
                           R"({"time":1,"fault":{"gpu":"a","kind":"bad"}})",
                           R"({"time":1,"fault":{"gpu":"a","kind":"xid"},"readings":[]})",
                           R"({"time":1,"readings":[],"more":1})"}) {
    EXPECT_FALSE(ParseSensorLine(text).has_value()) << text;
  }
}

TEST(Readings, XidsAreReadFromTheKernelsLog) {
  const auto now = ParseXidLine("NVRM: Xid (PCI:0000:10:1C): 63, pid=1234, name=x, Row Remapper");
  ASSERT_TRUE(now.has_value());
  EXPECT_EQ(now->pci_address, "0000:10:1c");
  EXPECT_EQ(now->xid, 63U);
  EXPECT_EQ(ParseXidLine("[12.1] NVRM: Xid (0000:01:00): 79, GPU has fallen off the bus.")->xid,
            79U);
  for (const char* text :
       {"", "NVRM: Xid (", "NVRM: Xid (PCI:0000:10:1c): x", "NVRM: Xid (short): 3",
        "NVRM: Xid (PCI:0000:10:1c): 0", "usb 1-1: new device"}) {
    EXPECT_FALSE(ParseXidLine(text).has_value()) << text;
  }
}

TEST(Readings, TheLeaseIsInTheCgroupOfItsBox) {
  EXPECT_EQ(LeaseOfCgroup("0::/ringfence/n1/l-12\n"), "l-12");
  EXPECT_EQ(LeaseOfCgroup("3:cpu:/a\n2:pids:/x/ringfence/n1/l-12/sub\n"), "l-12");
  EXPECT_EQ(LeaseOfCgroup("0::/user.slice/session\n"), "");
  EXPECT_EQ(LeaseOfCgroup("0::/ringfence/n1\n"), "");
}

TEST(Scenario, ATimelineThatCannotBeIsRefusedWithItsField) {
  const auto refused = [](const std::string& timeline, const std::string& field) {
    os::TempFolder folder = os::TempFolder::Create("ringfence-gpu-test").value();
    const Status made = MakeSimulatedRoot(folder.path() + "/driver", SimulatedTestRoot::kStandIns,
                                          R"({"gpus":[{"timeline":)" + timeline + "}]}");
    ASSERT_FALSE(made.has_value()) << timeline;
    EXPECT_NE(made.error().message.find(field), std::string::npos) << made.error().message;
  };
  refused(R"([{"set":{}}])", "after_ms");
  refused(R"([{"after_ms":1,"set":{"uuid":"x"}}])", "uuid");
  refused(R"([{"after_ms":1,"set":{"power_mw":-1}}])", "power_mw");
  refused(R"([{"after_ms":2},{"after_ms":1}])", "after_ms");
  refused(R"([{"after_ms":2,"xid":0}])", "xid");
}

}  // namespace
}  // namespace ringfence::gpu
