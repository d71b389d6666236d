// Goal: a minute of readings is one record with means, growth and peaks; faults, new processes and
// growing errors are told at once. Method: lines of an invented sensor.

#include "sense/digest.h"

#include <gtest/gtest.h>

namespace ringfence::sense {
namespace {

using gpu::Signal;

gpu::SensorLine Line(int second, std::int64_t power, std::int64_t errors,
                     const std::vector<std::uint32_t>& pids = {}) {
  gpu::Reading reading;
  reading.uuid = "GPU-1";
  reading.Set(Signal::kPower, power);
  reading.Set(Signal::kEccCorrected, errors);
  for (const std::uint32_t pid : pids) {
    reading.processes.push_back({pid, "job", 1, "l-1"});
  }
  return {Timestamp(std::chrono::seconds(1000 + second)), {reading}, {}};
}

TEST(Digest, AMinuteIsOneRecord) {
  Digest digest;
  std::vector<JsonObject> records;
  for (int second = 0; second < 181; ++second) {
    for (JsonObject& record :
         digest.Take(Line(second, 100 + second % 2 * 100, 7), std::chrono::seconds(60))) {
      records.push_back(std::move(record));
    }
  }
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].at("samples"), 61);
  EXPECT_EQ(records[0].at("peak").at("power_mw"), 200);
  EXPECT_NEAR(static_cast<double>(records[1].at("mean").at("power_mw").get_int64()), 150, 2);
  EXPECT_EQ(records[1].at("grown").at("ecc_corrected"), 0);
}

TEST(Digest, GrowingErrorsAndFaultsAndNewProcessesDoNotWait) {
  Digest digest;
  EXPECT_TRUE(digest.Take(Line(0, 1, 5), std::chrono::seconds(60)).empty());
  std::vector<JsonObject> records;
  for (int second = 1; second < 8; ++second) {
    for (JsonObject& record : digest.Take(Line(second, 1, 5 + second), std::chrono::seconds(60))) {
      records.push_back(std::move(record));
    }
  }
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].at("grown").at("ecc_corrected"), 5);
  const auto fault = digest.Take({Timestamp(std::chrono::seconds(2000)),
                                  {},
                                  gpu::GpuFault{"GPU-1", gpu::FaultKind::kXid, 79, "seen"}},
                                 std::chrono::seconds(60));
  ASSERT_EQ(fault.size(), 1U);
  EXPECT_EQ(fault[0].at("xid"), 79);
  digest = {};
  const auto first = digest.Take(Line(9, 1, 12, {7, 8}), std::chrono::seconds(60));
  EXPECT_EQ(first.size(), 2U);
  EXPECT_TRUE(digest.Take(Line(10, 1, 12, {7, 8}), std::chrono::seconds(60)).empty());
  EXPECT_TRUE(digest.Take(Line(11, 1, 12, {8}), std::chrono::seconds(60)).empty());
  EXPECT_EQ(digest.Take(Line(12, 1, 12, {8, 9}), std::chrono::seconds(60)).size(), 1U);
}

}  // namespace
}  // namespace ringfence::sense
