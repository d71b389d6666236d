// Goal: a lease counts from its placement to its job's end, the part inside the window and nothing
// else; the scrub is apart, quarantine is nobody's; sums by tenant, principal, GPU and lease agree.
// Method: one lease against every window; many at random leases against a plain count, second by
// second.

#include "lease/usage.h"

#include <gtest/gtest.h>

#include <random>

namespace ringfence::lease {
namespace {

Timestamp At(int second) { return Timestamp(std::chrono::seconds(second)); }

UsageWindow Window(int from, int to) { return {At(from), At(to)}; }

model::Lease LeaseOf(const std::string& id, const char* tenant, std::vector<std::string> gpus) {
  model::Lease lease;
  lease.id = id;
  lease.request.tenant = model::TenantPath::Create(tenant).value();
  lease.principal = "alice";
  lease.node = "n1";
  lease.gpus = std::move(gpus);
  return lease;
}

void Live(model::Lease& lease, int placed, int ended, int closed) {
  using enum model::LeaseState;
  lease.steps = {{kRequested, At(placed), {}}, {kPlaced, At(placed), {}}};
  if (ended >= 0) {
    lease.ended = At(ended);
    lease.steps.push_back({kScrubbing, At(ended), {}});
  }
  if (closed >= 0) {
    lease.steps.push_back({kClosed, At(closed), {}});
  }
}

model::Gpu GpuOf(const std::string& uuid, std::uint64_t gib) {
  model::Gpu gpu;
  gpu.uuid = uuid;
  gpu.memory_bytes = gib << 30U;
  return gpu;
}

TEST(UsageTest, OnlyWhatLiesInTheWindowAndTheScrubApart) {
  model::Lease lease = LeaseOf("lease-1", "acme", {"a"});
  Live(lease, 100, 160, 170);
  for (int from = 80; from < 190; from += 7) {
    for (int to = from + 1; to < 190; to += 5) {
      int used = 0;
      int scrubbed = 0;
      for (int second = from; second < to; ++second) {
        used += second >= 100 && second < 160;
        scrubbed += second >= 160 && second < 170;
      }
      const Held held = HeldWithin(lease, Window(from, to));
      EXPECT_EQ(held.used, std::chrono::seconds(used)) << from << " " << to;
      EXPECT_EQ(held.scrubbed, std::chrono::seconds(scrubbed)) << from << " " << to;
    }
  }
}

TEST(UsageTest, WhatGoesOnCountsUntilNowAndWhatWasNeverPlacedNotAtAll) {
  model::Lease lease = LeaseOf("lease-1", "acme", {"a"});
  Live(lease, 100, -1, -1);
  EXPECT_EQ(HeldWithin(lease, Window(0, 500)).used, std::chrono::seconds(400));
  lease.steps = {{model::LeaseState::kRequested, At(100), {}}};
  EXPECT_EQ(HeldWithin(lease, Window(0, 500)).used.count(), 0);
  // A clock that was put back.
  Live(lease, 100, 90, 95);
  EXPECT_EQ(HeldWithin(lease, Window(0, 500)).used.count(), 0);
}

TEST(UsageTest, AShareIsAsMuchOfAGpuAsOfItsMemory) {
  model::Lease lease = LeaseOf("lease-1", "acme", {"a"});
  lease.request.share =
      model::ShareRequest{model::IsolationClass::kTime, std::uint64_t{20} << 30U, 0};
  Live(lease, 100, 160, 170);
  UsageLedger ledger(UsageBy::kTenant, Window(0, 500), {GpuOf("a", 80)});
  ledger.Add(lease);
  EXPECT_EQ(ledger.total().gpu, std::chrono::seconds(15));
  EXPECT_EQ(ledger.total().slice, std::chrono::seconds(60));
  EXPECT_EQ(ledger.total().memory_mib_seconds, 60U * 20 * 1024);
  UsageLedger unknown(UsageBy::kGpu, Window(0, 500), {});
  unknown.Add(lease);
  EXPECT_EQ(unknown.total().gpu, std::chrono::seconds(60)) << "of a GPU that nobody knows any more";
}

TEST(UsageTest, QuarantineIsNobodysUse) {
  model::Lease lease = LeaseOf("lease-1", "acme", {"a"});
  Live(lease, 100, 160, -1);
  lease.steps.push_back({model::LeaseState::kQuarantined, At(163), {}});
  lease.steps.push_back({model::LeaseState::kScrubbing, At(10'000), {}});
  lease.steps.push_back({model::LeaseState::kClosed, At(10'002), {}});
  const Held held = HeldWithin(lease, Window(0, 20'000));
  EXPECT_EQ(held.used, std::chrono::seconds(60));
  EXPECT_EQ(held.scrubbed, std::chrono::seconds(3));
}

TEST(UsageTest, EveryWayOfSummingUpComesToTheSame) {
  std::mt19937 random(11);
  const char* const tenants[] = {"acme", "acme/a", "globex"};
  const char* const people[] = {"alice", "bob"};
  std::vector<model::Gpu> gpus = {GpuOf("g0", 80), GpuOf("g1", 80), GpuOf("g2", 141)};
  for (int round = 0; round < 50; ++round) {
    std::vector<model::Lease> leases;
    std::int64_t gpu_seconds = 0;
    std::uint64_t gib_seconds = 0;
    std::int64_t unknown = 0;
    const UsageWindow window = Window(200, 700);
    for (int i = 0; i < 20; ++i) {
      std::vector<std::string> held;
      for (int g = 0; g < 4; ++g) {  // g3 is not known any more
        if (random() % 2 == 0) {
          held.push_back("g" + std::to_string(g));
        }
      }
      model::Lease lease = LeaseOf("lease-" + std::to_string(i), tenants[random() % 3], held);
      lease.principal = people[random() % 2];
      const int placed = static_cast<int>(random() % 900);
      const int ended = placed + static_cast<int>(random() % 300);
      Live(lease, placed, ended, ended + 5);
      const int seconds = std::max(0, std::min(ended, 700) - std::max(placed, 200));
      for (const std::string& uuid : held) {
        gpu_seconds += seconds;
        if (uuid == "g3") {
          unknown += seconds;
        } else {
          gib_seconds += static_cast<std::uint64_t>(seconds) * (uuid == "g2" ? 141 : 80);
        }
      }
      leases.push_back(std::move(lease));
    }
    for (const UsageBy by :
         {UsageBy::kTenant, UsageBy::kPrincipal, UsageBy::kGpu, UsageBy::kLease}) {
      UsageLedger ledger(by, window, gpus);
      for (const model::Lease& lease : leases) {
        ledger.Add(lease);
      }
      EXPECT_EQ(ledger.total().gpu, std::chrono::seconds(gpu_seconds));
      EXPECT_EQ(ledger.total().memory_mib_seconds, gib_seconds * 1024);
      EXPECT_EQ(ledger.total().memory_unknown, std::chrono::seconds(unknown));
      Milliseconds sum{0};
      std::uint64_t memory = 0;
      for (const UsageRow& row : ledger.rows()) {
        sum += row.sums.gpu;
        memory += row.sums.memory_mib_seconds;
      }
      EXPECT_EQ(sum, ledger.total().gpu) << Name(by);
      EXPECT_EQ(memory, ledger.total().memory_mib_seconds) << Name(by);
    }
  }
}

TEST(UsageTest, ASliceCountsAsItsPartOfAGpuAlsoWhenItIsNoMore) {
  model::Lease lease = LeaseOf("lease-1", "acme", {"MIG-a"});
  Live(lease, 100, 160, 170);
  lease.slice = {"GPU-a", "1g.18gb", std::uint64_t{16} << 30U, 125};
  UsageLedger ledger(UsageBy::kTenant, Window(0, 200), {});
  ledger.Add(lease);
  EXPECT_EQ(ledger.total().gpu, Milliseconds(7500));
  EXPECT_EQ(ledger.total().slice, std::chrono::seconds(60));
  EXPECT_EQ(ledger.total().scrub, Milliseconds(1250));
  EXPECT_EQ(ledger.total().memory_mib_seconds, 16U * 1024 * 60);
  EXPECT_EQ(ledger.total().memory_unknown, Milliseconds(0));
}

TEST(UsageTest, NamesGoBothWays) {
  for (const UsageBy by : {UsageBy::kTenant, UsageBy::kPrincipal, UsageBy::kGpu, UsageBy::kLease}) {
    EXPECT_EQ(ParseUsageBy(Name(by)).value(), by);
  }
  EXPECT_FALSE(ParseUsageBy("node").has_value());
}

}  // namespace
}  // namespace ringfence::lease
