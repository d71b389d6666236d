// Goal: a lease id that was used stays used for as long as its grant could be offered again, over
// restarts and however many there are, and what need not be kept any more is not.
// Method: the real records in a folder, with a clock that the test moves.

#include "jailer/records.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "os/self.h"

namespace ringfence::jailer {
namespace {

using isolate::BoxState;

class RecordsTest : public testing::Test {
 protected:
  Records Open() {
    auto records = Records::Open(folder_.path(), "boot-1", now_);
    EXPECT_TRUE(records.has_value()) << records.error().message;
    return std::move(records).value();
  }
  void Use(Records& records, const std::string& lease) const {
    LeaseRecord record;
    record.lease = lease;
    record.state = BoxState::kEnded;
    record.start_before = now_ + std::chrono::minutes(1);
    record.changed = now_;
    ASSERT_TRUE(records.Begin(record).has_value());
    ASSERT_TRUE(records.SetScrubbed(lease, {}, "receipt-1", "envelope", now_).has_value());
    ASSERT_TRUE(records.Forget(lease, now_).has_value());
  }

  os::TempFolder folder_ = os::TempFolder::Create("ringfence-records-test").value();
  Timestamp now_ = Timestamp(std::chrono::hours(24 * 365 * 50));
};

TEST_F(RecordsTest, AUsedLeaseStaysUsedForADayAndNotForEver) {
  {
    Records records = Open();
    Use(records, "lease-1");
    EXPECT_TRUE(records.WasUsed("lease-1"));
    EXPECT_FALSE(records.WasUsed("lease-2"));
  }
  now_ += std::chrono::hours(24);
  EXPECT_TRUE(Open().WasUsed("lease-1"));
  now_ += std::chrono::hours(1);
  EXPECT_FALSE(Open().WasUsed("lease-1"));
}

TEST_F(RecordsTest, WhoSharedAGpuIsKnownUntilItIsScrubbedAndNobodyJoinsAfterAScrubOrReboot) {
  const auto begin = [&](Records& records, const std::string& lease) {
    LeaseRecord record;
    record.lease = lease;
    record.gpus = {{"GPU-a", 0}};
    record.share = RecordShare{model::IsolationClass::kTime, "acme"};
    ASSERT_TRUE(records.Begin(record).has_value());
  };
  {
    Records records = Open();
    begin(records, "lease-1");
    begin(records, "lease-2");
  }
  {
    Records records = Open();
    ASSERT_NE(records.FindShared("GPU-a"), nullptr);
    EXPECT_EQ(records.FindShared("GPU-a")->leases,
              (std::vector<std::string>{"lease-1", "lease-2"}));
    EXPECT_TRUE(records.FindShared("GPU-a")->open);
    EXPECT_EQ(records.HoldersOf("GPU-a").size(), 2U);
    ASSERT_TRUE(records.SetScrubbed("lease-1", {}, "receipt-1", "envelope", now_).has_value());
    EXPECT_EQ(records.HoldersOf("GPU-a").size(), 1U);
    EXPECT_EQ(records.FindShared("GPU-a")->leases.size(), 2U);
    EXPECT_EQ(records.HoldersOf("GPU-a")[0]->share->tenant, "acme");
  }
  {
    auto records = Records::Open(folder_.path(), "boot-2", now_);
    ASSERT_TRUE(records.has_value());
    EXPECT_FALSE(records->FindShared("GPU-a")->open) << "memory may hold anything by now";
  }
  Records records = Open();
  ASSERT_TRUE(records.SetDirty({"GPU-a"}).has_value());
  EXPECT_FALSE(Open().FindShared("GPU-a")->open);
  ASSERT_TRUE(records.SetScrubbed("lease-2", {"GPU-a"}, "receipt-2", "envelope", now_).has_value());
  EXPECT_EQ(Open().FindShared("GPU-a"), nullptr);
}

TEST_F(RecordsTest, OldOnesAreDroppedWhileItRuns) {
  Records records = Open();
  const std::size_t many = kUsedLookedThrough - 1;
  for (std::size_t i = 0; i < many; ++i) {
    Use(records, "old-" + std::to_string(i));
  }
  const auto before = std::filesystem::file_size(folder_.path() + "/used");
  now_ += std::chrono::hours(30);
  Use(records, "new-1");
  EXPECT_LT(std::filesystem::file_size(folder_.path() + "/used"), before / 100);
  EXPECT_TRUE(records.WasUsed("new-1"));
  EXPECT_FALSE(records.WasUsed("old-1"));
  Use(records, "new-2");
  EXPECT_TRUE(Open().WasUsed("new-1"));
  EXPECT_TRUE(Open().WasUsed("new-2"));
}

}  // namespace
}  // namespace ringfence::jailer
