// Goal: what a card says of its firmware is read as it is, and a card that does not say is no
// error. Method: the stand-in, with functions that fail as the vendor's do.

#include "gpu/firmware.h"

#include <gtest/gtest.h>

#include "gpu/simulated_test_root.h"

namespace ringfence::gpu {
namespace {

TEST(FirmwareTest, ADamagedInforomIsToldFromOneThatIsNotSpokenOf) {
  const SimulatedTestRoot root(
      R"({"gpus":[{"nvml_fail":{"nvmlDeviceValidateInforom":14}},)"
      R"({"nvml_fail":{"nvmlDeviceGetInforomImageVersion":3,"nvmlDeviceGetPersistenceMode":3,)"
      R"("nvmlDeviceValidateInforom":3}},{"ecc":false}]})");
  const auto report = ReadFirmware(root.path());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  ASSERT_EQ(report->gpus.size(), 3U);
  EXPECT_EQ(report->gpus[0].problem, "");
  EXPECT_EQ(report->gpus[0].inforom_valid, false);
  EXPECT_EQ(report->gpus[1].problem, "");
  EXPECT_EQ(report->gpus[1].inforom, "");
  EXPECT_EQ(report->gpus[1].inforom_valid, std::nullopt);
  EXPECT_EQ(report->gpus[1].persistence, std::nullopt);
  EXPECT_EQ(report->gpus[2].ecc, false);
  EXPECT_EQ(report->gpus[2].uncorrected_errors, std::nullopt);
}

TEST(FirmwareTest, AFailingAnswerIsTheCardsProblem) {
  const SimulatedTestRoot root(R"({"gpus":[{"nvml_fail":{"nvmlDeviceGetVbiosVersion":999}},{}]})");
  const auto report = ReadFirmware(root.path());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_NE(report->gpus[0].problem.find("999"), std::string::npos) << report->gpus[0].problem;
  EXPECT_EQ(report->gpus[1].problem, "");
  EXPECT_EQ(ReadFirmware("/no/such/root").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace ringfence::gpu
