// Goal: who waits is served in the order of asking; a later request takes nothing that an earlier
// one could have, but passes one that waits for its own quota; too long, abandoned and no longer
// allowed fall out; the queue outlives the server.
// Method: a core on a real database with one node of four GPUs, and a clock of the test's.

#include "server/queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "crypto/random.h"
#include "lease/life.h"
#include "server/placing.h"
#include "store/queue_records.h"

namespace ringfence::server {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;

const std::string kPolicy = std::string(RINGFENCE_SOURCE_DIR) + "/content/sample-policy";
constexpr const char* kAlice = "alice@acme.example";
constexpr const char* kBob = "bob@acme.example";
constexpr const char* kGrace = "grace@globex.example";

class HandClock final : public Clock {
 public:
  Timestamp Now() const override { return Timestamp(Milliseconds(now_.load())); }
  void Move(Milliseconds by) { now_ += by.count(); }

 private:
  std::atomic<std::int64_t> now_{1'790'000'000'000};
};

class QueueTest : public testing::Test {
 protected:
  QueueTest() : folder_(std::filesystem::temp_directory_path() / crypto::RandomId("queue")) {
    std::filesystem::create_directories(folder_);
    Start();
    Do([&](store::Connection& db) -> Status {
      model::Node node;
      node.name = "n1";
      node.last_seen = clock_.Now();
      RINGFENCE_TRY(store::PutNode(db, node));
      for (std::uint32_t i = 0; i < 4; ++i) {
        model::Gpu gpu;
        gpu.uuid = "GPU-" + std::to_string(i);
        gpu.node = "n1";
        gpu.index = i;
        gpu.state = model::GpuState::kFree;
        RINGFENCE_TRY(store::PutGpu(db, gpu));
      }
      return {};
    });
  }
  ~QueueTest() override {
    core_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Start() {
    core_.reset();
    Core::Parts parts{store::OpenSqlite(folder_ / "db").value(),
                      OpenKeys({folder_ / "keys", {"localhost"}, {}, {}}, clock_.Now()).value(),
                      kPolicy, policy::Policy::Load(kPolicy).value()};
    core_ = std::make_unique<Core>(std::move(parts), clock_);
    core_->waiters().SetLater([](Milliseconds, const std::function<void()>&) {});
    core_->SawNode("n1");
  }

  void Do(const std::function<Status(store::Connection&)>& work) {
    const Status done = core_->database().Write(work);
    ASSERT_TRUE(done.has_value()) << done.error().message;
  }

  // As the route does it: placed, or in the queue, or "" and why not.
  std::string Ask(const char* principal, const char* tenant, std::uint32_t gpus,
                  Milliseconds wait = 1h, bool attended = false) {
    model::Lease lease;
    lease.id = crypto::RandomId("lease");
    lease.principal = principal;
    lease.request.tenant = model::TenantPath::Create(tenant).value();
    lease.request.gpus = gpus;
    lease.request.command = {"true"};
    lease.request.wait = wait;
    lease.request.attended = attended;
    const Status asked = core_->database().Write([&](store::Connection& db) -> Status {
      lease.created = clock_.Now();
      lease.updated = lease.created;
      lease.steps.push_back({model::LeaseState::kRequested, lease.created, {}});
      RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kAdmitted, lease.created));
      const auto placement = PlaceInside(*core_, db, lease.request, lease.image);
      if (!placement.has_value()) {
        RINGFENCE_TRY(MayWait(*core_, db, lease.request, placement.error()));
        return JoinQueue(*core_, db, lease, placement.error());
      }
      RINGFENCE_TRY(HoldPlace(*core_, db, lease, *placement));
      return store::InsertLease(db, lease);
    });
    refused_ = asked.has_value() ? "" : asked.error().message + " / " + asked.error().hint;
    return asked.has_value() ? lease.id : "";
  }

  model::Lease Get(const std::string& id) {
    model::Lease lease;
    Do([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(lease, store::GetLease(db, id));
      return {};
    });
    return lease;
  }
  std::string StateOf(const std::string& id) { return std::string(Name(Get(id).state)); }
  std::int64_t PositionOf(const std::string& id) {
    std::int64_t position = -1;
    Do([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(position, store::QueuePosition(db, id));
      return {};
    });
    return position;
  }

  // The lease is over, and its GPUs are clean again.
  void Finish(const std::string& id) {
    Do([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(model::Lease lease, store::GetLease(db, id));
      for (const std::string& uuid : lease.gpus) {
        RINGFENCE_ASSIGN(model::Gpu gpu, store::GetGpu(db, uuid));
        lease::Free(gpu, "receipt");
        RINGFENCE_TRY(store::PutGpu(db, gpu));
      }
      RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kClosed, clock_.Now()));
      lease.ended = clock_.Now();
      return store::UpdateLease(db, lease);
    });
    Serve();
  }
  void Serve() {
    const Status served = ServeQueue(*core_);
    ASSERT_TRUE(served.has_value()) << served.error().message;
  }
  void Pass(Milliseconds time) {
    clock_.Move(time);
    core_->SawNode("n1");
  }

  const std::filesystem::path folder_;
  HandClock clock_;
  std::unique_ptr<Core> core_;
  std::string refused_;
};

TEST_F(QueueTest, FirstComeFirstServedAndTheQueueOutlivesTheServer) {
  const std::string holds = Ask(kGrace, "globex/genomics/folding", 3);
  ASSERT_EQ(StateOf(holds), "placed");
  const std::string large = Ask(kGrace, "globex/genomics/folding", 2);
  const std::string small = Ask(kAlice, "acme/research/vision", 1);
  EXPECT_EQ(StateOf(large), "queued");
  EXPECT_EQ(StateOf(small), "queued") << "one GPU is free, but it is not its turn";
  EXPECT_NE(Get(small).reason.find("kept for lease " + large), std::string::npos)
      << Get(small).reason;
  EXPECT_NE(Get(large).reason.find("earliest release by"), std::string::npos);
  EXPECT_EQ(PositionOf(large), 1);
  EXPECT_EQ(PositionOf(small), 2);
  EXPECT_EQ(PositionOf(holds), 0);
  // Who does not wait overtakes nobody either.
  EXPECT_EQ(Ask(kBob, "acme/finance/risk", 1, 0s), "");
  EXPECT_NE(refused_.find("waits longer"), std::string::npos) << refused_;
  EXPECT_NE(refused_.find("--wait joins the queue"), std::string::npos) << refused_;

  Start();
  Serve();
  EXPECT_EQ(StateOf(large), "queued");
  Finish(holds);
  EXPECT_EQ(StateOf(large), "placed");
  EXPECT_EQ(Get(large).gpus.size(), 2U);
  EXPECT_EQ(StateOf(small), "placed");
  EXPECT_EQ(Get(small).reason, "");
}

TEST_F(QueueTest, WhoWaitsForTheirOwnQuotaKeepsNobodyElse) {
  const std::string first = Ask(kBob, "acme/finance/risk", 2);
  ASSERT_EQ(StateOf(first), "placed");
  const std::string over = Ask(kBob, "acme/finance/risk", 1);
  EXPECT_EQ(StateOf(over), "queued");
  EXPECT_NE(Get(over).reason.find("quota of acme/finance"), std::string::npos);
  EXPECT_EQ(StateOf(Ask(kGrace, "globex/genomics/folding", 2)), "placed");
  // More than the quota ever allows is no matter of waiting.
  EXPECT_EQ(Ask(kBob, "acme/finance/risk", 3), "");
  EXPECT_NE(refused_.find("quota"), std::string::npos);
  Finish(first);
  EXPECT_EQ(StateOf(over), "placed");
}

TEST_F(QueueTest, ARoleThatCountsOnCertainDaysCountsWhileItWaits) {
  auto files = policy::Policy::Load(kPolicy).value()->files();
  files["dora.yaml"] =
      "apiVersion: ringfence.dev/v1\nkind: Principal\nmetadata: {name: dora@acme.example}\n"
      "spec: {kind: user}\n---\napiVersion: ringfence.dev/v1\nkind: Binding\n"
      "metadata: {name: dora}\nspec:\n  principal: dora@acme.example\n  role: developer\n"
      "  tenant: acme/research\n  when: {days: [mon, tue, wed, thu, fri, sat, sun]}\n";
  const auto applied = core_->ApplyPolicy(policy::Policy::Parse(files).value(),
                                          {{"test", "system", "", ""}, kFromApply});
  ASSERT_TRUE(applied.has_value()) << applied.error().message;
  const std::string holds = Ask(kGrace, "globex/genomics/folding", 4);
  const std::string waits = Ask("dora@acme.example", "acme/research/vision", 1);
  Serve();
  EXPECT_EQ(StateOf(waits), "queued") << Get(waits).reason;
  Finish(holds);
  EXPECT_EQ(StateOf(waits), "placed");
}

TEST_F(QueueTest, TooLongAbandonedAndNoLongerAllowedFallOut) {
  const std::string holds = Ask(kGrace, "globex/genomics/folding", 4);
  const std::string brief = Ask(kAlice, "acme/research/vision", 1, 3min);
  const std::string alone = Ask(kAlice, "acme/research/vision", 1, 1h, true);
  const std::string followed = Ask(kAlice, "acme/research/vision", 1, 1h, true);
  const std::string stranger = Ask("nobody@acme.example", "acme/research/vision", 1);
  for (int i = 0; i < 10; ++i) {
    Pass(20s);
    ASSERT_TRUE(StillWaits(*core_, followed, kAlice).has_value());
    ASSERT_TRUE(StillWaits(*core_, alone, kGrace).has_value());  // not who asked for it
  }
  Serve();
  EXPECT_EQ(StateOf(brief), "closed");
  EXPECT_NE(Get(brief).reason.find("waited 3m in vain"), std::string::npos) << Get(brief).reason;
  EXPECT_EQ(StateOf(alone), "closed");
  EXPECT_EQ(Get(alone).reason, "whoever waited for it has gone");
  EXPECT_EQ(StateOf(stranger), "closed");
  EXPECT_NE(Get(stranger).reason.find("may not run any more"), std::string::npos);
  EXPECT_EQ(StateOf(followed), "queued");
  EXPECT_EQ(PositionOf(followed), 1);
  // A server that was away itself gives those who wait the time to come back.
  Pass(10min);
  Start();
  Serve();
  EXPECT_EQ(StateOf(followed), "queued");
  Finish(holds);
  EXPECT_EQ(StateOf(followed), "placed");
}

}  // namespace
}  // namespace ringfence::server
